"""Qualcomm's compiler as parapipe sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from parapipe.compilers.contract import (
    CompiledRow,
    CompiledSegment,
    CompileError,
    CompileJob,
    Environment,
    RefusedNode,
)
from parapipe.compilers.nodes import node_types
from parapipe.compilers.prepare import is_quantized, load_segment, model_inputs
from parapipe.compilers.process import LOG, run_tool
from parapipe.compilers.qnn import worker
from parapipe.compilers.qnn.chips import CHIPS
from parapipe.compilers.qnn.trace import CPU, Trace, compiled_rows, read_trace
from parapipe.compilers.samples import random_samples, read_samples, write_arrays

_MODEL, _SAMPLES = "segment.onnx", "samples.npz"
_VERSION_LIMIT_S = 120.0
_MOST_REASONS = 3
_RANDOM = "quantized with random samples, so its outputs mean nothing"
_BORDERS = "its inputs and outputs are quantized by the CPU"


class QnnCompiler:
    """`onnxruntime-qnn`: compiles for Qualcomm's Hexagon NPUs, emulates them, tells no cycles."""

    name = "qnn"
    title = "Qualcomm onnxruntime-qnn"
    targets = tuple(CHIPS)
    prices = False

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the version of the tool, and of ONNX Runtime beside it."""
        try:
            result = _work(environment, folder, {"action": "version"}, _VERSION_LIMIT_S)
        except CompileError as error:
            if "PackageNotFoundError" not in error.message:
                raise
            raise CompileError(
                f"{environment.python}: does not have all of {', '.join(worker.PACKAGES)}; install "
                "them there, as docs/compilers.md says, or name another Python by `parapipe "
                "compilers use qnn --python PATH`",
                "missing",
            ) from error
        return _version(result)

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment into an ONNX file that holds what runs on the chip."""
        model, task, notes = _write_job(job, folder)
        result = _work(environment, folder, {**task, "action": "compile"}, job.time_limit_s)
        _refuse(job, result, model)
        trace = read_trace(folder, result["nodes"], model)
        rows = compiled_rows(trace, model)
        on_cpu = tuple(_nodes_on_cpu(rows, trace, model))
        artefact = folder / worker.ARTEFACT
        if not artefact.is_file():
            raise CompileError(
                f"{job.model.name}: the compiler 'qnn' takes none of its nodes for the "
                f"{job.target}: {_first_reasons(on_cpu)}; run the segment on another processor",
                "refused",
                on_cpu,
            )
        if any(row.target == CPU and not row.nodes for row in rows):
            notes = (*notes, _BORDERS)
        return CompiledSegment(
            artefact=artefact,
            sha256=sha256(artefact.read_bytes()).hexdigest(),
            tool=self.name,
            version=_version(result),
            rows=rows,
            on_cpu=on_cpu,
            log=folder / LOG,
            notes=notes,
        )

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Run frames in the emulator of the chip, which is there on x86-64 only."""
        model, task, _ = _write_job(job, folder)
        task = {**task, "action": "simulate", "frames": str(inputs.resolve())}
        _refuse(job, _work(environment, folder, task, job.time_limit_s), model)
        path = folder / worker.OUTPUTS
        with np.load(path, allow_pickle=False) as file:
            stacks = {
                each.name: file[f"arr_{number}"] for number, each in enumerate(model.graph.output)
            }
        write_arrays(path, stacks)
        return path


def _first_reasons(nodes: tuple[RefusedNode, ...]) -> str:
    reasons = [*dict.fromkeys(each.reason for each in nodes if each.reason)]
    return " ".join(reasons[:_MOST_REASONS]) or "it gives no reason"


def _version(result: dict[str, Any]) -> str:
    qnn, runtime, _ = result["versions"]
    return f"{qnn} with onnxruntime {runtime}"


def _write_job(job: CompileJob, folder: Path) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    """Write the model and its samples; return the model, what the worker needs, and notes."""
    model = load_segment(job.model)
    chip = CHIPS[job.target]
    quantized = is_quantized(model)
    if job.precision == "float16" and not chip.float16 and not quantized:
        raise CompileError(
            f"{job.model.name}: the {job.target} does not compute in float16; ask for int8, or "
            "give a model with scales (QDQ)",
            "refused",
        )
    onnx.save(model, folder / _MODEL)
    task: dict[str, Any] = {
        "model": _MODEL,
        "architecture": chip.architecture,
        "soc_model": chip.soc_model,
        "inputs": [name for name, _ in model_inputs(model)],
        "samples": None,
    }
    if job.precision != "int8" or quantized:
        return model, task, ()
    samples = (
        random_samples(model)
        if job.calibration is None
        else read_samples(job.calibration, model, job.model.name)
    )
    stacks = {each: np.stack([sample[each] for sample in samples]) for each in task["inputs"]}
    write_arrays(folder / _SAMPLES, stacks)
    return model, {**task, "samples": _SAMPLES}, () if job.calibration else (_RANDOM,)


def _work(
    environment: Environment, folder: Path, task: dict[str, Any], limit_s: float
) -> dict[str, Any]:
    """Run the worker on a task; return its result."""
    (folder / worker.JOB).write_text(json.dumps(task), encoding="utf-8")
    run_tool("qnn", Path(worker.__file__).resolve(), environment, folder, limit_s)
    try:
        result: dict[str, Any] = json.loads((folder / worker.RESULT).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CompileError(
            "the compiler 'qnn' has ended without a result; try it by `parapipe compilers check "
            "qnn`",
            "crashed",
        ) from error
    return result


def _refuse(job: CompileJob, result: dict[str, Any], model: ModelProto) -> None:
    """Raise a CompileError in the tool's words if it refused the model."""
    words = result["refused"]
    if words is None:
        return
    refused = tuple(
        RefusedNode(node, operator_type, words)
        for node, operator_type in node_types(model).items()
        if re.search(rf"(?<!\w){re.escape(node)}(?!\w)", words)
    )
    raise CompileError(
        f"{job.model.name}: the compiler 'qnn' refuses it: {words}", "refused", refused
    )


def _nodes_on_cpu(
    rows: tuple[CompiledRow, ...], trace: Trace, model: ModelProto
) -> Iterator[RefusedNode]:
    """Yield the nodes of the segment that stay on the CPU, with the tool's reasons."""
    types = node_types(model)
    for row, traced in zip(rows, trace.rows, strict=True):
        if not row.on_npu:
            for node in row.nodes:
                reason = trace.reasons.get(node) or trace.reasons.get(traced.name, "")
                yield RefusedNode(node, types[node], reason)
