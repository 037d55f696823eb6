"""Qualcomm's compiler as parapipe sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from parapipe.compilers.qnn import worker
from parapipe.compilers.qnn.reasons import read_reasons
from parapipe.compilers.worker_tasks import run_worker, state_outputs, worker_version, write_task

_CHIPS: Mapping[str, tuple[int, int]] = {
    "qcs9100": (77, 73),
    "sa8255": (52, 73),
    "sm8450": (36, 69),
    "sm8475": (42, 69),
    "sm8550": (43, 73),
    "sm8650": (57, 75),
    "sm8750": (69, 79),
}
"""`soc_model` and `htp_arch` of a chip. Source: QcomChipset and _soc_info_table in
backends/qualcomm/serialization/qc_schema.py of pytorch/executorch."""
MOST_OPSET = 22


class QnnCompiler:
    """`onnxruntime-qnn`: compiles for Hexagon NPUs and emulates them; it tells no cycles."""

    name = "qnn"
    title = "Qualcomm onnxruntime-qnn"
    targets = tuple(_CHIPS)
    prices = False

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the tool's version."""
        return worker_version(self.name, "onnxruntime-qnn", worker, environment, folder)

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment: an ONNX file that holds the NPU's parts and what runs on the CPU."""
        model, task, notes = _write_task(job, folder, "compile")
        result, text = run_worker(
            self.name, worker, environment, folder, task, limit_s=job.time_limit_s
        )
        _refuse(job, result)
        reasons = read_reasons(text)
        rows = _rows(result["nodes"], model, job)
        on_cpu = _nodes_on_cpu(rows, result["nodes"], model, reasons)
        artefact = folder / worker.ARTEFACT
        if not artefact.is_file():
            raise CompileError(
                f"{job.model.name}: the compiler '{self.name}' runs none of it on the NPU of "
                f"{job.target}: {'; '.join(dict.fromkeys(reasons.values())) or 'it says not why'}",
                "refused",
                on_cpu,
            )
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
        """Run frames in the emulator, on this machine."""
        model, task, _ = _write_task(job, folder, "simulate")
        task["inputs"] = str(inputs.resolve())
        result, _ = run_worker(
            self.name, worker, environment, folder, task, limit_s=job.time_limit_s
        )
        _refuse(job, result)
        state_outputs(folder / worker.OUTPUTS, model)
        return folder / worker.OUTPUTS


def _write_task(
    job: CompileJob, folder: Path, action: str
) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    model, task, notes = write_task(job, folder, action, MOST_OPSET)
    soc_model, htp_arch = _CHIPS[job.target]
    return model, {**task, "soc_model": soc_model, "htp_arch": htp_arch}, notes


def _refuse(job: CompileJob, result: dict[str, Any]) -> None:
    """Raise a CompileError in the tool's words if it refused the segment."""
    if result["refused"] is not None:
        words = " ".join(result["words"].split())
        raise CompileError(f"{job.model.name}: the compiler 'qnn' refuses it: {words}", "refused")


def _rows(
    nodes: Sequence[tuple[str, str, str]], model: ModelProto, job: CompileJob
) -> tuple[CompiledRow, ...]:
    members = assign_nodes([name for name, _, _ in nodes], model)
    return tuple(
        CompiledRow(
            operator=operator,
            target="NPU" if provider == worker.PROVIDER else "CPU",
            dtype=job.precision,
            nodes=each.nodes,
            matched=each.matched,
            cycles=None,
            part_of=each.part_of,
        )
        for (_, operator, provider), each in zip(nodes, members, strict=True)
    )


def _nodes_on_cpu(
    rows: Sequence[CompiledRow],
    nodes: Sequence[tuple[str, str, str]],
    model: ModelProto,
    reasons: Mapping[str, str],
) -> tuple[RefusedNode, ...]:
    """Return the nodes that run on the CPU, with the compiler's reasons."""
    types = node_types(model)
    return tuple(
        RefusedNode(node, types[node], reasons.get(name, ""))
        for row, (name, _, _) in zip(rows, nodes, strict=True)
        if not row.on_npu
        for node in row.nodes
    )
