"""Qualcomm's compiler as parapipe sees it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

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
from parapipe.compilers.prepare import is_quantized
from parapipe.compilers.process import LOG
from parapipe.compilers.qnn import worker
from parapipe.compilers.qnn.chips import CHIPS
from parapipe.compilers.qnn.trace import QUANTIZERS, Trace, compiled_rows, read_trace
from parapipe.compilers.worker_tasks import run_worker, state_outputs, worker_version, write_task

MOST_OPSET = 22
_MOST_REASONS = 3
_BORDERS = "its inputs and outputs are quantized by the CPU"


class QnnCompiler:
    """`onnxruntime-qnn`: compiles for Qualcomm's Hexagon NPUs, emulates them, tells no cycles."""

    name = "qnn"
    title = "Qualcomm onnxruntime-qnn"
    targets = tuple(CHIPS)
    prices = False

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the version of the tool, and of ONNX Runtime beside it."""
        packages = " and ".join(worker.PACKAGES)
        return worker_version(self.name, packages, worker, environment, folder)

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment into an ONNX file that holds what runs on the chip."""
        model, task, notes = _write_task(job, folder, "compile")
        result, _ = run_worker(
            self.name, worker, environment, folder, task, limit_s=job.time_limit_s
        )
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
        if any(row.operator in QUANTIZERS and not row.nodes for row in rows):
            notes = (*notes, _BORDERS)
        return CompiledSegment(
            artefact=artefact,
            sha256=sha256(artefact.read_bytes()).hexdigest(),
            tool=self.name,
            version=result["version"],
            rows=rows,
            on_cpu=on_cpu,
            log=folder / LOG,
            notes=notes,
        )

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Run frames in the emulator of the chip, which is there on x86-64 only."""
        model, task, _ = _write_task(job, folder, "simulate")
        task["frames"] = str(inputs.resolve())
        result, _ = run_worker(
            self.name, worker, environment, folder, task, limit_s=job.time_limit_s
        )
        _refuse(job, result, model)
        state_outputs(folder / worker.OUTPUTS, model)
        return folder / worker.OUTPUTS


def _first_reasons(nodes: tuple[RefusedNode, ...]) -> str:
    reasons = [*dict.fromkeys(each.reason for each in nodes if each.reason)]
    return " ".join(reasons[:_MOST_REASONS]) or "it gives no reason"


def _write_task(
    job: CompileJob, folder: Path, action: str
) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    """Write the model and its samples; return the model, what the worker needs, and notes."""
    model, task, notes = write_task(job, folder, action, MOST_OPSET)
    chip = CHIPS[job.target]
    if job.precision == "float16" and not chip.float16 and not is_quantized(model):
        raise CompileError(
            f"{job.model.name}: the {job.target} does not compute in float16; ask for int8, or "
            "give a model with scales (QDQ)",
            "refused",
        )
    return model, {**task, "htp_arch": chip.architecture, "soc_model": chip.soc_model}, notes


def _refuse(job: CompileJob, result: dict[str, Any], model: ModelProto) -> None:
    """Raise a CompileError in the tool's words if it refused the model."""
    if result["refused"] is None:
        return
    words = " ".join(result["refused"].split())
    refused = tuple(
        RefusedNode(node, operator_type, words)
        for node, operator_type in node_types(model).items()
        if f"'{node}'" in words
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
