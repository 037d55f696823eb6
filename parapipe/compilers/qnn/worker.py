"""Runs Qualcomm's compiler in its own environment, on the job in the current folder.

It reads `job.json` and writes `result.json`; what is printed goes to its output. It imports what is
installed beside the compiler only, never parapipe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JOB, RESULT, ARTEFACT, OUTPUTS, QUANTIZED = (
    "job.json",
    "result.json",
    "context.onnx",
    "outputs.npz",
    "quantized.onnx",
)
PROVIDER = "QNNExecutionProvider"
VERBOSE = 0
"""Severity of ONNX Runtime's log at which the compiler says why it leaves a node to the CPU."""


def quantize(job: dict[str, Any]) -> str:
    """Write the model with scales for integers, if there are samples; return the model's file."""
    if not job["samples"]:
        return str(job["model"])
    import numpy as np
    from onnxruntime.quantization import CalibrationDataReader
    from onnxruntime.quantization import quantize as write_quantized
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

    class Reader(CalibrationDataReader):  # type: ignore[misc] # of an untyped package
        """Reads samples one after the other."""

        def __init__(self) -> None:
            self.samples = iter(job["samples"])

        def get_next(self) -> dict[str, Any] | None:
            """Return the next sample, or None at the end."""
            files = next(self.samples, None)
            if files is None:
                return None
            return dict(zip(job["input_names"], map(np.load, files), strict=True))

    write_quantized(job["model"], QUANTIZED, get_qnn_qdq_config(job["model"], Reader()))
    return QUANTIZED


def open_session(job: dict[str, Any], entries: dict[str, str]) -> Any:  # noqa: ANN401 - ONNX Runtime
    """Compile the model for the chip, what the compiler does not take for the CPU."""
    import onnxruntime
    import onnxruntime_qnn

    onnxruntime.register_execution_provider_library(PROVIDER, onnxruntime_qnn.get_library_path())
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == PROVIDER]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = VERBOSE
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    chip = {
        "backend_path": onnxruntime_qnn.get_qnn_htp_path(),
        "soc_model": str(job["soc_model"]),
        "htp_arch": str(job["htp_arch"]),
    }
    options.add_provider_for_devices(devices[:1], chip)
    return onnxruntime.InferenceSession(quantize(job), options)


def compile_model(job: dict[str, Any]) -> dict[str, Any]:
    """Write the file for the device; return where each node runs."""
    session = open_session(
        job,
        {
            "ep.context_enable": "1",
            "ep.context_embed_mode": "1",
            "ep.context_file_path": ARTEFACT,
            "session.record_ep_graph_assignment_info": "1",
        },
    )
    return {
        "nodes": [
            [node.name, node.op_type, group.ep_name]
            for group in session.get_provider_graph_assignment_info()
            for node in group.get_nodes()
        ]
    }


def simulate(job: dict[str, Any]) -> dict[str, Any]:
    """Write the outputs in their order, each with a leading axis that counts frames."""
    import numpy as np

    session = open_session(job, {})
    with np.load(job["inputs"]) as file:
        stacks = {name: file[name] for name in job["input_names"]}
    count = len(next(iter(stacks.values())))
    frames = [
        session.run(None, {name: stack[number] for name, stack in stacks.items()})
        for number in range(count)
    ]
    np.savez(OUTPUTS, *map(np.stack, zip(*frames, strict=True)))
    return {}


def tool_version(_: dict[str, Any]) -> dict[str, Any]:
    """Return nothing: the version is in every result."""
    return {}


ACTIONS = {"compile": compile_model, "simulate": simulate, "version": tool_version}


def main() -> None:
    """Do the job; what ONNX Runtime refuses goes into the result."""
    from importlib.metadata import version

    job = json.loads(Path(JOB).read_text(encoding="utf-8"))
    result: dict[str, Any] = {"version": version("onnxruntime-qnn"), "refused": None, "words": ""}
    try:
        result |= ACTIONS[job["action"]](job)
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        result |= {"refused": job["action"], "words": str(error)}
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
