"""Qualcomm's compiler in `onnxruntime-qnn`: its log, its worker."""
