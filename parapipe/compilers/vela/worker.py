"""Runs Arm's compiler in its own environment, on the job in the current folder.

It takes TFLite, so the model goes ONNX, PyTorch, TFLite in int8, Vela. Nodes are renamed by their
numbers, which stay in the names of TFLite. It reads `job.json` and writes `result.json`; it imports
what is installed beside the compiler only, never parapipe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JOB, RESULT, ARTEFACT, OUTPUTS = "job.json", "result.json", "quantized_vela.tflite", "outputs.npz"
FLOAT, QUANTIZED = "float.tflite", "quantized.tflite"
ROWS, SUMMARY = "quantized_per-layer.csv", "quantized_summary_*.csv"
PACKAGES = ("ethos-u-vela", "onnx2torch", "litert-torch", "ai-edge-quantizer", "onnx")
NODE = "parapipe{}x"
SIGNATURE = "serving_default"


class RefusedError(Exception):
    """A step cannot be done with the model; the message is in the tool's words."""


def samples_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return arrays by TFLite's names of the inputs, for each sample."""
    import numpy as np

    return [
        {f"args_{number}": np.load(file) for number, file in enumerate(files)}
        for files in job["samples"]
    ]


def write_tflite(job: dict[str, Any]) -> None:
    """Write the model as TFLite in int8."""
    import litert_torch
    import onnx
    import onnx2torch
    import torch
    from ai_edge_quantizer import quantizer, recipe

    model = onnx.load(job["model"])
    for number, node in enumerate(model.graph.node):
        node.name = NODE.format(number)
    samples = samples_of(job)
    try:
        network = onnx2torch.convert(model).eval()
    except NotImplementedError as error:
        raise RefusedError(str(error)) from error
    inputs = tuple(torch.from_numpy(each) for each in samples[0].values())
    litert_torch.convert(network, inputs).export(FLOAT)
    tool = quantizer.Quantizer(FLOAT)
    tool.load_quantization_recipe(recipe.static_wi8_ai8())
    result = tool.quantize(tool.calibrate({SIGNATURE: samples}))
    Path(QUANTIZED).write_bytes(result.quantized_model)


def compile_model(job: dict[str, Any]) -> None:
    """Write the file for the device, and tables of what it costs."""
    write_tflite(job)
    from ethosu.vela.vela import main as vela

    words = [QUANTIZED, "--verbose-performance", "--output-dir", "."]
    if vela([*words, "--accelerator-config", job["target"]]):
        raise RefusedError("Vela ends with an error, see what it has printed")


def simulate(job: dict[str, Any]) -> None:
    """Write the outputs of the int8 model, each with a leading axis that counts frames."""
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    write_tflite(job)
    runner = Interpreter(model_path=QUANTIZED).get_signature_runner(SIGNATURE)
    takes, gives = runner.get_input_details(), runner.get_output_details()
    names = sorted(gives, key=lambda name: int(name.rpartition("_")[2]))
    with np.load(job["frames"]) as file:
        stacks = [file[name] for name in job["input_names"]]
    outputs = []
    for frame in zip(*stacks, strict=True):
        arrays = {f"args_{number}": array for number, array in enumerate(frame)}
        made = runner(**{name: as_integers(array, takes[name]) for name, array in arrays.items()})
        outputs.append([as_floats(made[name], gives[name]) for name in names])
    np.savez(OUTPUTS, *map(np.stack, zip(*outputs, strict=True)))


def as_integers(array: Any, detail: dict[str, Any]) -> Any:  # noqa: ANN401 - of numpy
    """Return an array in the type of an input, by its scale if that is of integers."""
    import numpy as np

    scale, zero = detail["quantization"]
    if not scale:
        return array.astype(detail["dtype"])
    limits = np.iinfo(detail["dtype"])
    return np.clip(np.round(array / scale) + zero, limits.min, limits.max).astype(detail["dtype"])


def as_floats(array: Any, detail: dict[str, Any]) -> Any:  # noqa: ANN401 - of numpy
    """Return an output in floating point, if it has a scale."""
    scale, zero = detail["quantization"]
    return (array.astype("float32") - zero) * scale if scale else array


def tool_version(_: dict[str, Any]) -> None:
    """Do nothing: the version is in every result."""


ACTIONS = {"compile": compile_model, "simulate": simulate, "version": tool_version}


def main() -> None:
    """Do the job; what is refused goes into the result."""
    from importlib.metadata import version

    job = json.loads(Path(JOB).read_text(encoding="utf-8"))
    vela, *_ = map(version, PACKAGES)
    result: dict[str, Any] = {"version": vela, "refused": None}
    try:
        ACTIONS[job["action"]](job)
    except RefusedError as error:
        result["refused"] = str(error)
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
