"""Runs Rockchip's compiler in its own environment, on the job in the current folder.

It reads `job.json` and writes `result.json`; the compiler's words go to its output. It imports what
is installed beside the compiler only, never parapipe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JOB, RESULT, ARTEFACT, SAMPLES, OUTPUTS = (
    "job.json",
    "result.json",
    "segment.rknn",
    "samples.txt",
    "outputs.npz",
)


class RefusedError(Exception):
    """The compiler has returned an error code."""


def check(step: str, code: int) -> None:
    """Raise a RefusedError if a step of the compiler returned an error code."""
    if code != 0:
        raise RefusedError(step)


def build(job: dict[str, Any]) -> Any:  # noqa: ANN401 - of the toolkit
    """Compile the model; return the compiler with what it has built."""
    from rknn.api import RKNN

    rknn = RKNN(verbose=True)
    check("config", rknn.config(target_platform=job["target"], optimization_level=3))
    check("load_onnx", rknn.load_onnx(model=job["model"]))
    quantize = bool(job["samples"])
    if quantize:
        lines = [" ".join(files) for files in job["samples"]]
        Path(SAMPLES).write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = SAMPLES if quantize else None
    check("build", rknn.build(do_quantization=quantize, dataset=dataset))
    return rknn


def compile_model(job: dict[str, Any]) -> None:
    """Write the file for the device."""
    check("export_rknn", build(job).export_rknn(ARTEFACT))


def simulate(job: dict[str, Any]) -> None:
    """Write the outputs of one frame, in the order of the model's outputs."""
    import numpy as np

    rknn = build(job)
    check("init_runtime", rknn.init_runtime())
    with np.load(job["inputs"]) as file:
        inputs = [file[name] for name in job["input_names"]]
    formats = ["nchw" if array.ndim == 4 else "nhwc" for array in inputs]
    outputs = rknn.inference(inputs=inputs, data_format=formats)
    if outputs is None:
        raise RefusedError("inference")
    np.savez(OUTPUTS, **dict(zip(job["output_names"], outputs, strict=True)))


def tool_version(_: dict[str, Any]) -> None:
    """Do nothing: the version is in every result."""


ACTIONS = {"compile": compile_model, "simulate": simulate, "version": tool_version}


def main() -> None:
    """Do the job; the step that was refused goes into the result."""
    from importlib.metadata import version

    job = json.loads(Path(JOB).read_text(encoding="utf-8"))
    result = {"version": version("rknn-toolkit2"), "refused": None}
    try:
        ACTIONS[job["action"]](job)
    except RefusedError as error:
        result["refused"] = str(error)
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
