"""Qualcomm's compiler, in `onnxruntime-qnn`: its chips, its trace, its worker."""
