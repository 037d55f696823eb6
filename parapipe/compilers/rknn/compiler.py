"""Rockchip's compiler as parapipe sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

from parapipe.compilers.contract import (
    CompiledRow,
    CompiledSegment,
    CompileError,
    CompileJob,
    Environment,
    RefusedNode,
)
from parapipe.compilers.nodes import assign_nodes, node_types
from parapipe.compilers.prepare import is_quantized, load_segment, model_inputs
from parapipe.compilers.process import LOG, run_tool
from parapipe.compilers.rknn import worker
from parapipe.compilers.rknn.table import Log, read_log
from parapipe.compilers.samples import random_samples, read_samples, write_arrays

_MODEL = "segment.onnx"
_VERSION_LIMIT_S = 120.0
_RANDOM = "quantized with random samples, so its outputs mean nothing"


class RknnCompiler:
    """`rknn-toolkit2`: compiles for Rockchip's NPUs, tells cycles per row, and simulates."""

    name = "rknn"
    title = "Rockchip rknn-toolkit2"
    targets = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")
    prices = True

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the tool's version."""
        try:
            result, _ = _work(environment, folder, {"action": "version"}, _VERSION_LIMIT_S)
        except CompileError as error:
            if "PackageNotFoundError" not in error.message:
                raise
            raise CompileError(
                f"{environment.python}: has no rknn-toolkit2; install it there, as "
                "docs/compilers.md says, or name another Python by `parapipe compilers use rknn "
                "--python PATH`",
                "missing",
            ) from error
        return str(result["version"])

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment."""
        model, task, notes = _write_job(job, folder)
        result, log = _work(environment, folder, {**task, "action": "compile"}, job.time_limit_s)
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
        model, task, _ = _write_job(job, folder)
        outputs = {each.name: each.type.tensor_type for each in model.graph.output}
        task = {
            **task,
            "action": "simulate",
            "inputs": str(inputs.resolve()),
            "input_names": [name for name, _ in model_inputs(model)],
        }
        result, log = _work(environment, folder, task, job.time_limit_s)
        _refuse(job, result, log, model)
        path = folder / worker.OUTPUTS
        with np.load(path, allow_pickle=False) as file:
            stacks = {
                name: _as_stated(file[f"arr_{number}"], kind)
                for number, (name, kind) in enumerate(outputs.items())
            }
        write_arrays(path, stacks)
        return path


def _as_stated(stack: Any, kind: Any) -> Any:  # noqa: ANN401 - of numpy and protobuf
    """Return outputs in the type and shape of ONNX: the simulator knows float32 and no scalars."""
    sizes = [each.dim_value for each in kind.shape.dim]
    stack = stack.astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return stack.reshape(len(stack), *sizes) if all(sizes) else stack


def _write_job(job: CompileJob, folder: Path) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    """Write the model and its samples; return the model, what the worker needs, and notes."""
    model = load_segment(job.model)
    onnx.save(model, folder / _MODEL)
    samples: list[list[str]] = []
    notes: tuple[str, ...] = ()
    if job.precision == "int8" and not is_quantized(model):
        if job.calibration is None:
            notes = (_RANDOM,)
        samples = _write_samples(job, model, folder)
    return model, {"model": _MODEL, "target": job.target, "samples": samples}, notes


def _write_samples(job: CompileJob, model: ModelProto, folder: Path) -> list[list[str]]:
    """Write each sample of each input as a file; return the files of each sample."""
    arrays = (
        random_samples(model)
        if job.calibration is None
        else read_samples(job.calibration, model, job.model.name)
    )
    samples: list[list[str]] = []
    for number, sample in enumerate(arrays):
        files = []
        for place, (name, _) in enumerate(model_inputs(model)):
            files.append(f"sample-{number:03d}-{place}.npy")
            np.save(folder / files[-1], sample[name])
        samples.append(files)
    return samples


def _work(
    environment: Environment, folder: Path, task: dict[str, Any], limit_s: float
) -> tuple[dict[str, Any], Log]:
    """Run the worker on a task; return its result and what the log says."""
    (folder / worker.JOB).write_text(json.dumps(task), encoding="utf-8")
    path = run_tool("rknn", Path(worker.__file__).resolve(), environment, folder, limit_s)
    log = read_log(path.read_text("utf-8", "replace"))
    try:
        result: dict[str, Any] = json.loads((folder / worker.RESULT).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CompileError(
            "the compiler 'rknn' has ended without a result; try it by `parapipe compilers check "
            "rknn`",
            "crashed",
        ) from error
    return result, log


def _refuse(job: CompileJob, result: dict[str, Any], log: Log, model: ModelProto) -> None:
    """Raise a CompileError in the tool's words if it refused a step."""
    if result["refused"] is None:
        return
    lines = [line.strip() for line in result["words"].splitlines() if line.strip()] or log.errors
    words = " ".join(lines) or "it gives no reason"
    refused = tuple(
        RefusedNode(node, operator_type, words)
        for node, operator_type in node_types(model).items()
        if any(re.search(rf"(?<!\w){re.escape(node)}(?!\w)", line) for line in lines)
    )
    raise CompileError(
        f"{job.model.name}: the compiler 'rknn' refuses it in {result['refused']}: {words}",
        "refused",
        refused,
    )


def _rows(log: Log, model: ModelProto) -> tuple[CompiledRow, ...]:
    members = assign_nodes([row.name for row in log.rows], model)
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
