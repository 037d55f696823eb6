"""Runs Qualcomm's compiler in its own environment, on the job in the current folder.

It reads `job.json` and writes `result.json`; the compiler's words go to its output. It imports what
is installed beside the compiler only, never parapipe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

JOB, RESULT, ARTEFACT, OUTPUTS = "job.json", "result.json", "segment_ctx.onnx", "outputs.npz"
TRACE = "qnn_op_trace.json"
PACKAGES = ("onnxruntime-qnn", "onnxruntime", "onnx")
PROVIDER, CPU = "QNNExecutionProvider", "CPUExecutionProvider"
REFUSALS = ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented")
"""ONNX Runtime's errors that speak of the model; others are failures of the tool."""


class RefusedError(Exception):
    """The compiler does not take the model; the message is in its own words."""


def session(model: str, job: dict[str, Any], context: str | None = None) -> Any:  # noqa: ANN401
    """Compile a model; return the session of ONNX Runtime that holds it.

    Parameters
    ----------
    context
        File for a model whose nodes are the compiled parts, in a form that the device loads.
    """
    import onnxruntime
    import onnxruntime_qnn

    onnxruntime.register_execution_provider_library(PROVIDER, onnxruntime_qnn.get_library_path())
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == PROVIDER]
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if context:
        options.add_session_config_entry("ep.context_enable", "1")
        options.add_session_config_entry("ep.context_embed_mode", "1")
        options.add_session_config_entry("ep.context_file_path", context)
    settings = {
        "backend_path": onnxruntime_qnn.get_qnn_htp_path(),
        "htp_arch": str(job["architecture"]),
        "soc_model": str(job["soc_model"]),
        "enable_htp_fp16_precision": "1",
        "enable_framework_op_trace": "1",
        "framework_op_trace_dir": ".",
        "dump_json_qnn_graph": "1",
        "json_qnn_graph_dir": ".",
    }
    options.add_provider_for_devices(devices[:1], settings)
    try:
        return onnxruntime.InferenceSession(model, options)
    except Exception as error:
        if type(error).__name__ not in REFUSALS:
            raise
        raise RefusedError(str(error)) from error


class Samples:
    """Hands over one sample after the other, as ONNX Runtime's `CalibrationDataReader` does."""

    def __init__(self, path: str, names: list[str]) -> None:
        self.samples = frames(path, names)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next sample, None at the end."""
        return next(self.samples, None)


def quantized(job: dict[str, Any]) -> str:
    """Return the file of the model, with scales (QDQ) if there are samples to find them by."""
    if job["samples"] is None:
        return str(job["model"])
    from onnxruntime.quantization import QuantType, quantize
    from onnxruntime.quantization.execution_providers import qnn
    from onnxruntime.quantization.shape_inference import quant_pre_process

    fused = "fused.onnx" if qnn.qnn_preprocess_model(job["model"], "fused.onnx") else job["model"]
    quant_pre_process(fused, "prepared.onnx", skip_symbolic_shape=True)
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    samples = Samples(job["samples"], job["inputs"])
    config = qnn.get_qnn_qdq_config(
        "prepared.onnx", samples, per_channel=True, init_overrides=unsigned_scales(), **types
    )
    quantize("prepared.onnx", "quantized.onnx", config)
    return "quantized.onnx"


def unsigned_scales() -> dict[str, Any]:
    """Return that a LayerNormalization's factors are unsigned: of no other one does the chip take.

    ONNX Runtime's settings for the chip leave them signed, as all weights are.
    """
    import onnx
    from onnxruntime.quantization import QuantType

    graph = onnx.load("prepared.onnx").graph
    unsigned = {"quant_type": QuantType.QUInt8, "symmetric": False}
    names = [node.input[1] for node in graph.node if node.op_type == "LayerNormalization"]
    return {name: [unsigned] for name in names}


def frames(path: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield arrays by the names of the inputs from a file in which each counts frames first."""
    import numpy as np

    with np.load(path) as file:
        stacks = [file[name] for name in names]
    for frame in zip(*stacks, strict=True):
        yield dict(zip(names, frame, strict=True))


def compile_model(job: dict[str, Any]) -> dict[str, Any]:
    """Write the file for the device; return the provider, name and type of each node.

    The file is not there if the compiler takes no node.
    """
    compiled = session(quantized(job), job, ARTEFACT)
    parts = compiled.get_provider_graph_assignment_info()
    nodes = [(part.ep_name, node.name, node.op_type) for part in parts for node in part.get_nodes()]
    return {"nodes": nodes}


def simulate(job: dict[str, Any]) -> dict[str, Any]:
    """Write the outputs in their order, each with a leading axis that counts frames."""
    import numpy as np

    compiled = session(quantized(job), job)
    outputs = [compiled.run(None, frame) for frame in frames(job["frames"], job["inputs"])]
    np.savez(OUTPUTS, *map(np.stack, zip(*outputs, strict=True)))
    return {}


def tool_version(_: dict[str, Any]) -> dict[str, Any]:
    """Do nothing: the version is in every result."""
    return {}


ACTIONS = {"compile": compile_model, "simulate": simulate, "version": tool_version}


def main() -> None:
    """Do the job; what the compiler refuses goes into the result."""
    from importlib.metadata import version

    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # else it reports each session to its makers
    job = json.loads(Path(JOB).read_text(encoding="utf-8"))
    versions = [version(each) for each in PACKAGES]
    result: dict[str, Any] = {"versions": versions, "refused": None}
    try:
        result |= ACTIONS[job["action"]](job)
    except RefusedError as error:
        result["refused"] = str(error)
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
