"""Rockchip's compiler as parapipe sees it."""

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
from parapipe.compilers.nodes import assign_nodes, node_types
from parapipe.compilers.process import LOG
from parapipe.compilers.rknn import worker
from parapipe.compilers.rknn.table import Log, read_log
from parapipe.compilers.worker_tasks import run_worker, state_outputs, worker_version, write_task

MOST_OPSET = 19
"""What rknn-toolkit2 2.5.0 takes; it refuses 20 to 23."""


class RknnCompiler:
    """`rknn-toolkit2`: compiles for Rockchip's NPUs, tells cycles per row, and simulates."""

    name = "rknn"
    title = "Rockchip rknn-toolkit2"
    targets = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")
    prices = True

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the tool's version."""
        return worker_version(self.name, "rknn-toolkit2", worker, environment, folder)

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment."""
        model, task, notes = write_task(job, folder, "compile", MOST_OPSET)
        task["target"] = job.target
        result, text = run_worker(
            self.name, worker, environment, folder, task, limit_s=job.time_limit_s
        )
        log = read_log(text)
        artefact = folder / worker.ARTEFACT
        _refuse(job, result, log, model)
        if not artefact.is_file() or not log.rows:
            raise CompileError(
                f"{job.model.name}: the compiler '{self.name}' {result['version']} has ended "
                "without a table of its rows; is its version one that docs/compilers.md names?",
                "crashed",
            )
        rows = _rows(log, model)
        return CompiledSegment(
            artefact=artefact,
            sha256=sha256(artefact.read_bytes()).hexdigest(),
            tool=self.name,
            version=result["version"],
            rows=rows,
            on_cpu=tuple(_nodes_on_cpu(rows, model)),
            weight_bytes=log.weight_bytes,
            internal_bytes=log.internal_bytes,
            log=folder / LOG,
            notes=(*notes, *_added_on_cpu(rows)),
        )

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Run frames in the tool's simulator, on this machine."""
        model, task, _ = write_task(job, folder, "simulate", MOST_OPSET)
        task |= {"target": job.target, "inputs": str(inputs.resolve())}
        result, text = run_worker(
            self.name, worker, environment, folder, task, limit_s=job.time_limit_s
        )
        _refuse(job, result, read_log(text), model)
        state_outputs(folder / worker.OUTPUTS, model)
        return folder / worker.OUTPUTS


def _refuse(job: CompileJob, result: dict[str, Any], log: Log, model: ModelProto) -> None:
    """Raise a CompileError in the tool's words if it refused a step."""
    if result["refused"] is None:
        return
    lines = [line.strip() for line in result["words"].splitlines() if line.strip()] or log.errors
    words = " ".join(lines) or "it gives no reason"
    refused = tuple(
        RefusedNode(node, operator_type, words)
        for node, operator_type in node_types(model).items()
        if any(f"'{node}'" in line for line in lines)
    )
    raise CompileError(
        f"{job.model.name}: the compiler 'rknn' refuses it in {result['refused']}: {words}",
        "refused",
        refused,
    )


def _rows(log: Log, model: ModelProto) -> tuple[CompiledRow, ...]:
    members = assign_nodes([row.name for row in log.rows], model, log.origins)
    return tuple(
        CompiledRow(
            operator=row.operator,
            target=row.target,
            dtype=row.dtype,
            nodes=each.nodes,
            matched=each.matched,
            cycles=row.cycles or None,
            traffic_bytes=row.traffic_bytes,
            part_of=each.part_of,
        )
        for row, each in zip(log.rows, members, strict=True)
    )


def _nodes_on_cpu(rows: tuple[CompiledRow, ...], model: ModelProto) -> Iterator[RefusedNode]:
    """Yield the nodes that the tool leaves to the CPU; its table gives no reason."""
    types = node_types(model)
    for row in rows:
        if not row.on_npu:
            for node in row.nodes:
                yield RefusedNode(node, types[node], "")


def _added_on_cpu(rows: tuple[CompiledRow, ...]) -> Iterator[str]:
    """Yield a sentence for each row on the CPU that is no node of the segment."""
    for row in rows:
        if not row.on_npu and not row.nodes:
            reason = f" for '{row.part_of}'" if row.part_of else ""
            yield f"the compiler adds a {row.operator}{reason}, which runs on the CPU"
