"""Tasks for the worker of a compiler: writes one, runs it in its folder, reads what it returns."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

from parapipe.compilers.contract import CompileError, CompileJob, Environment
from parapipe.compilers.prepare import is_quantized, load_segment, model_inputs
from parapipe.compilers.process import run_tool
from parapipe.compilers.samples import RANDOM, write_arrays, write_samples

VERSION_LIMIT_S = 120.0
MODEL = "segment.onnx"


def write_task(
    job: CompileJob, folder: Path, action: str, most_opset: int
) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    """Write a job's model and samples into a folder; return the model, the task, and notes.

    There are samples if integers are wanted of a model that has no scales of its own.

    Raises
    ------
    ArgumentError, CompileError
        As for `write_samples` and `load_segment`.
    """
    model = load_segment(job.model, most_opset)
    onnx.save(model, folder / MODEL)
    task: dict[str, Any] = {
        "action": action,
        "model": MODEL,
        "samples": [],
        "input_names": [name for name, _ in model_inputs(model)],
    }
    if job.precision != "int8" or is_quantized(model):
        return model, task, ()
    task["samples"] = write_samples(job, model, folder)
    return model, task, () if job.calibration else (RANDOM,)


def run_worker(
    name: str,
    worker: ModuleType,
    environment: Environment,
    folder: Path,
    task: dict[str, Any],
    *,
    limit_s: float,
) -> tuple[dict[str, Any], str]:
    """Run a worker; return its result and what it printed.

    Parameters
    ----------
    name
        Of the compiler.
    worker
        Its module, which names its files JOB and RESULT.

    Raises
    ------
    CompileError
        As for `run_tool`, and if there is no result.
    """
    (folder / worker.JOB).write_text(json.dumps(task), encoding="utf-8")
    path = run_tool(name, Path(str(worker.__file__)).resolve(), environment, folder, limit_s)
    try:
        result: dict[str, Any] = json.loads((folder / worker.RESULT).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CompileError(
            f"the compiler '{name}' has ended without a result; try it by `parapipe compilers "
            f"check {name}`",
            "crashed",
        ) from error
    return result, path.read_text("utf-8", "replace")


def worker_version(
    name: str, package: str, worker: ModuleType, environment: Environment, folder: Path
) -> str:
    """Return the version of a package that a worker tells; CompileError if it is not there."""
    task = {"action": "version"}
    try:
        result, _ = run_worker(name, worker, environment, folder, task, limit_s=VERSION_LIMIT_S)
    except CompileError as error:
        if "PackageNotFoundError" not in error.message:
            raise
        raise CompileError(
            f"{environment.python}: has no {package}; install it there, as docs/compilers.md says, "
            f"or name another Python by `parapipe compilers use {name} --python PATH`",
            "missing",
        ) from error
    return str(result["version"])


def state_outputs(path: Path, model: ModelProto) -> None:
    """Give outputs, which a worker wrote in their order, the names, types and shapes of ONNX."""
    outputs = {each.name: each.type.tensor_type for each in model.graph.output}
    with np.load(path, allow_pickle=False) as file:
        stacks = {
            name: _as_stated(file[f"arr_{number}"], kind)
            for number, (name, kind) in enumerate(outputs.items())
        }
    write_arrays(path, stacks)


def _as_stated(stack: Any, kind: Any) -> Any:  # noqa: ANN401 - of numpy and protobuf
    """Return outputs in ONNX's type and shape: simulators may know float32 only, and no scalars."""
    sizes = [each.dim_value for each in kind.shape.dim]
    stack = stack.astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return stack.reshape(len(stack), *sizes) if all(sizes) else stack
