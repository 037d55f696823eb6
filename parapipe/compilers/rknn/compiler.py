"""Rockchip's compiler as parapipe sees it."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from parapipe.compilers.prepare import is_quantized, load_segment
from parapipe.compilers.process import run_tool
from parapipe.compilers.rknn import worker
from parapipe.compilers.rknn.table import Log, read_log

RANDOM_SAMPLES = 2
MOST_SAMPLES = 200
_MODEL = "segment.onnx"
_VERSION_LIMIT_S = 120.0
_SIMULATED = "the tool's simulator"


class RknnCompiler:
    """`rknn-toolkit2`: compiles for Rockchip's NPUs, tells cycles per row, and simulates."""

    name = "rknn"
    title = "Rockchip rknn-toolkit2"
    targets = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")
    prices = True

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the tool's version."""
        result, _ = _work(environment, folder, {"action": "version"}, _VERSION_LIMIT_S)
        return str(result["version"])

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Compile a segment."""
        model, task, notes = _write_job(job, folder)
        result, log = _work(environment, folder, {**task, "action": "compile"}, job.time_limit_s)
        artefact = folder / worker.ARTEFACT
        _refuse(job, result["refused"], log, model)
        if not artefact.is_file() or not log.rows:
            raise CompileError(
                f"{job.model.name}: the compiler '{self.name}' {result['version']} has ended "
                "without a table of its rows; is its version one that docs/compilers.md names?",
                "crashed",
            )
        rows = _rows(log, model)
        types = node_types(model)
        return CompiledSegment(
            artefact=artefact,
            sha256=sha256(artefact.read_bytes()).hexdigest(),
            tool=self.name,
            version=result["version"],
            rows=rows,
            on_cpu=tuple(
                RefusedNode(node, types[node], "")
                for row in rows
                if not row.on_npu
                for node in row.nodes
            ),
            weight_bytes=log.weight_bytes,
            internal_bytes=log.internal_bytes,
            log=folder / "log.txt",
            notes=notes,
        )

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Run a frame in the tool's simulator, on this machine."""
        model, task, _ = _write_job(job, folder)
        task = {
            **task,
            "action": "simulate",
            "inputs": str(inputs.resolve()),
            "input_names": [name for name, _ in _inputs(model)],
            "output_names": [each.name for each in model.graph.output],
        }
        result, log = _work(environment, folder, task, job.time_limit_s)
        _refuse(job, result["refused"], log, model)
        return folder / worker.OUTPUTS


def _inputs(model: ModelProto) -> list[tuple[str, Any]]:
    constants = {each.name for each in model.graph.initializer}
    return [
        (each.name, each.type.tensor_type)
        for each in model.graph.input
        if each.name not in constants
    ]


def _write_job(job: CompileJob, folder: Path) -> tuple[ModelProto, dict[str, Any], tuple[str, ...]]:
    """Write the model and its samples; return the model, what the worker needs, and notes."""
    model = load_segment(job.model)
    onnx.save(model, folder / _MODEL)
    samples: list[list[str]] = []
    notes: tuple[str, ...] = ()
    if job.precision == "int8" and not is_quantized(model):
        if job.calibration is None:
            notes = ("quantized with random samples, so its outputs mean nothing",)
        samples = _write_samples(job, model, folder)
    return model, {"model": _MODEL, "target": job.target, "samples": samples}, notes


def _write_samples(job: CompileJob, model: ModelProto, folder: Path) -> list[list[str]]:
    """Write each sample of each input as a file; return the files of each sample."""
    samples: list[list[str]] = []
    for number, arrays in enumerate(_samples(job, model)):
        files = []
        for place, (name, _) in enumerate(_inputs(model)):
            files.append(f"sample-{number:03d}-{place}.npy")
            np.save(folder / files[-1], arrays[name])
        samples.append(files)
    return samples


def _samples(job: CompileJob, model: ModelProto) -> Sequence[dict[str, Any]]:
    if job.calibration is None:
        random = np.random.default_rng(0)
        return [
            {name: _random_array(kind, random) for name, kind in _inputs(model)}
            for _ in range(RANDOM_SAMPLES)
        ]
    files = sorted(job.calibration.glob("*.npz")) if job.calibration.is_dir() else [job.calibration]
    samples: list[dict[str, Any]] = []
    for path in files[:MOST_SAMPLES]:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name, _ in _inputs(model) if name not in file.files]
            if missing:
                raise CompileError(
                    f"{path}: has no array '{missing[0]}', an input of {job.model.name}; it holds "
                    f"{', '.join(file.files)}",
                    "refused",
                )
            samples.append({name: file[name] for name, _ in _inputs(model)})
    if not samples:
        raise CompileError(f"{job.calibration}: holds no file `.npz` with samples", "refused")
    return samples


def _random_array(kind: Any, random: np.random.Generator) -> Any:  # noqa: ANN401 - of protobuf
    shape = [each.dim_value for each in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype)
    return np.zeros(shape, dtype)


def _work(
    environment: Environment, folder: Path, task: dict[str, Any], limit_s: float
) -> tuple[dict[str, Any], Log]:
    """Run the worker on a task; return its result and what the log says."""
    (folder / worker.JOB).write_text(json.dumps(task), encoding="utf-8")
    path = run_tool(
        "rknn", ["-I", str(Path(worker.__file__).resolve())], environment, folder, limit_s
    )
    log = read_log(path.read_text("utf-8", "replace"))
    try:
        result: dict[str, Any] = json.loads((folder / worker.RESULT).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CompileError(
            f"the compiler 'rknn' has ended without a result; its log is {path}", "crashed"
        ) from error
    return result, log


def _refuse(job: CompileJob, step: str | None, log: Log, model: ModelProto) -> None:
    """Raise a CompileError in the tool's words if it refused a step."""
    if step is None:
        return
    types = node_types(model)
    words = " | ".join(log.errors) or "it gives no reason"
    refused = tuple(
        RefusedNode(name, types[name], line)
        for line in log.errors
        for name in types
        if f"'{name}'" in line or f" {name} " in f" {line} "
    )
    raise CompileError(
        f"{job.model.name}: the compiler 'rknn' refuses it in {step}: {words}", "refused", refused
    )


def _rows(log: Log, model: ModelProto) -> tuple[CompiledRow, ...]:
    members = assign_nodes([row.name for row in log.rows], model)
    return tuple(
        CompiledRow(
            operator=row.operator,
            target=row.target,
            dtype=row.dtype,
            nodes=nodes,
            matched=matched,
            cycles=row.cycles or None,
            traffic_bytes=row.traffic_bytes,
        )
        for row, (nodes, matched) in zip(log.rows, members, strict=True)
    )
