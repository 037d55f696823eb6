"""Arm's compiler as parapipe sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
from parapipe.compilers.prepare import MOST_OPSET
from parapipe.compilers.process import LOG
from parapipe.compilers.vela import worker
from parapipe.compilers.vela.table import (
    compiled_rows,
    read_reasons,
    read_rows,
    read_summary,
    reason_key,
)
from parapipe.compilers.worker_tasks import run_worker, state_outputs, worker_version, write_task

_MEMORIES = ("sram", "dram", "on_chip_flash", "off_chip_flash")
_INTEGERS = "computed in int8, since an Ethos-U computes in integers only"


class VelaCompiler:
    """`ethos-u-vela`: compiles for Arm's Ethos-U, tells cycles per row and memory."""

    name = "vela"
    title = "Arm ethos-u-vela"
    targets = (
        "ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256",
        "ethos-u65-512", "ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024",
        "ethos-u85-2048",
    )  # fmt: skip
    prices = True

    def version(self, environment: Environment, folder: Path) -> str:
        """Return Vela's version."""
        packages = " and ".join(worker.PACKAGES)
        return worker_version(self.name, packages, worker, environment, folder)

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment into a TFLite file with commands for the NPU."""
        model, task, notes = _write_task(job, folder, "compile")
        limit_s = job.time_limit_s
        result, text = run_worker(self.name, worker, environment, folder, task, limit_s=limit_s)
        _refuse(job, result)
        artefact = folder / worker.ARTEFACT
        rows = compiled_rows(read_rows(folder / worker.ROWS), model)
        summary = read_summary(next(folder.glob(worker.SUMMARY)))
        weights = round(float(summary["total_npu_encoded_weights"]))
        used = sum(float(summary[f"{each}_memory_used"]) for each in _MEMORIES)
        system = f"{summary['system_config']} with {summary['memory_mode']}"
        return CompiledSegment(
            artefact=artefact,
            sha256=sha256(artefact.read_bytes()).hexdigest(),
            tool=self.name,
            version=result["version"],
            rows=rows,
            on_cpu=tuple(_nodes_on_cpu(rows, read_reasons(text), model)),
            weight_bytes=weights,
            internal_bytes=max(round(used * 1024) - weights, 0),
            log=folder / LOG,
            notes=(*notes, f"for the system that Vela assumes, {system}"),
        )

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Run frames through the int8 model in LiteRT: Vela has no simulator of its own."""
        model, task, _ = _write_task(job, folder, "simulate")
        task["frames"] = str(inputs.resolve())
        limit_s = job.time_limit_s
        result, _ = run_worker(self.name, worker, environment, folder, task, limit_s=limit_s)
        _refuse(job, result)
        state_outputs(folder / worker.OUTPUTS, model)
        return folder / worker.OUTPUTS


def _write_task(
    job: CompileJob, folder: Path, action: str
) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    """Write the model and its samples; return the model, what the worker needs, and notes."""
    model, task, notes = write_task(replace(job, precision="int8"), folder, action, MOST_OPSET)
    if not task["samples"]:
        raise CompileError(
            f"{job.model.name}: has scales of its own (QDQ), which the way to TFLite loses; give "
            "the float model, and samples by `--calibration`",
            "refused",
        )
    notes = notes if job.precision == "int8" else (*notes, _INTEGERS)
    return model, {**task, "target": job.target}, notes


def _refuse(job: CompileJob, result: dict[str, Any]) -> None:
    if result["refused"] is not None:
        words = " ".join(result["refused"].split())
        raise CompileError(f"{job.model.name}: the compiler 'vela' refuses it: {words}", "refused")


def _nodes_on_cpu(
    rows: tuple[CompiledRow, ...], reasons: dict[tuple[str, int], str], model: ModelProto
) -> Iterator[RefusedNode]:
    """Yield the nodes that stay on the CPU, with Vela's reasons."""
    types = node_types(model)
    numbers = {node.name: number for number, node in enumerate(model.graph.node)}
    for row in rows:
        if not row.on_npu:
            for node in row.nodes:
                key = (reason_key(row.operator), numbers.get(node, -1))
                yield RefusedNode(node, types[node], reasons.get(key, ""))
