"""Runs plans on this machine with the native runner: exports, starts it, reads what it wrote."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parapipe.errors import StrategyError
from parapipe.export.runtimes import RuntimeRun, RuntimeSettings
from parapipe.files.mistakes import listed
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.runtime.folder import RunError
from parapipe.runtime.frames import Frame
from parapipe.runtime.record import Arrow, Record, Span
from parapipe.runtime.record import Frame as FramePassed
from parapipe.targets.native.backends import BACKENDS
from parapipe.targets.native.folder import write_library_folder
from parapipe.targets.native.library_plan import LibraryPlan
from parapipe.targets.native.runner import PROGRAM, backend_here, built_runner

_ITEM = np.dtype("<f4")
STRATEGIES = ("plan", "ready-pool", "steal", "streams")
"""Those that the runner has."""


def run(
    plan: Plan, model: Path, folder: Path, frames: Sequence[Frame], settings: RuntimeSettings
) -> RuntimeRun:
    """Run a plan; all its processors are CPUs of this machine, with back ends that run here.

    Parameters
    ----------
    frames
        Distinct frames, which are taken in turn; whole numbers become float32.

    Raises
    ------
    RuntimeMissingError
        If the runner cannot be built.
    ExportError
        If operators have no form in it.
    RunError
        If it fails: what it says.
    StrategyError
        If the runner has no such strategy.
    """
    if settings.strategy not in STRATEGIES:
        raise StrategyError(
            f"the native runner has no strategy '{settings.strategy}': choose from "
            f"{', '.join(STRATEGIES)}, or run on ONNX Runtime"
        )
    backends = [backend_here(each) for each in plan.processors]
    on_cpus = tuple(
        each.model_copy(update={"kind": "cpu", "backend": BACKENDS[backend].prefix})
        for each, backend in zip(plan.processors, backends, strict=True)
    )
    here = plan.model_copy(update={"processors": on_cpus})
    document = write_library_folder(here, model, folder)  # refuses operators before a long build
    program = built_runner(*backends, progress=settings.progress)
    with (folder / "input.bin").open("wb") as file:
        for frame in frames:
            for name in document.inputs:
                file.write(np.ascontiguousarray(frame[name], _ITEM).tobytes())
    _start(program, folder, settings)
    report = json.loads((folder / "report.json").read_text())
    trace = json.loads((folder / "trace.json").read_text())
    plain = [each["operator"] for each in report["plain"]]
    count = f"{len(plain)} operators run" if len(plain) > 1 else "1 operator runs"
    note = f"{count} in a plain loop, for lack of a fast function: {listed(plain)}"
    return RuntimeRun(
        _record(plan, trace, settings.warmup),
        tuple(_results(plan, document, folder / "output.bin")),
        (note,) if plain else (),
    )


def _start(program: Path, folder: Path, settings: RuntimeSettings) -> None:
    words: list[str | Path] = [
        *(program, folder, "--json", "--frames", str(settings.frames)),
        *("--warmup", str(settings.warmup), "--period", repr(settings.period_s or 0)),
        *("--output", folder / "output.bin", "--trace", folder / "trace.json"),
        *("--strategy", settings.strategy),
    ]
    if (folder / "input.bin").stat().st_size:
        words += ["--input", folder / "input.bin"]
    for name, cores in settings.cores.items():
        words += ["--cores", f"{name}={','.join(map(str, cores))}"]
    with (folder / "report.json").open("w") as out:
        done = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if not line.startswith("running ")]
        reason = said[-1].removeprefix(f"{PROGRAM}: ") if said else f"exit {done.returncode}"
        raise RunError(f"the native runner: {reason}")


def _results(plan: Plan, document: LibraryPlan, path: Path) -> Iterator[Mapping[str, Any]]:
    values = np.fromfile(path, _ITEM)
    sizes = [int(np.prod(plan.tensors[name].shape)) for name in document.outputs]
    for frame in values.reshape(-1, sum(sizes)):
        parts = np.split(frame, np.cumsum(sizes)[:-1])
        yield {
            name: part.reshape(plan.tensors[name].shape).astype(plan.tensors[name].dtype)
            for name, part in zip(document.outputs, parts, strict=True)
        }


def _record(plan: Plan, trace: Mapping[str, Any], warmup: int) -> Record:
    """Return what was done for the frames that count; times from the start of the run."""
    spans: dict[tuple[str, int], Span] = {}
    for each in trace["operators"]:
        times = zip(each["starts_s"], each["times_s"], strict=True)
        for frame, (start_s, time_s) in enumerate(times):
            if frame < warmup:
                continue
            processor = each["processors"][frame] if "processors" in each else each["processor"]
            for source, begin_s, work_s in _shares(each, start_s, time_s):
                key = (source, frame - warmup)
                end_s = start_s + time_s
                before = spans.get(key)
                spans[key] = (
                    replace(before, end_s=end_s, work_s=(before.work_s or 0) + work_s)
                    if before
                    else Span(processor, *key, begin_s, end_s, work_s)
                )
    return Record(
        resources=tuple(each.name for each in plan.processors),
        spans=tuple(sorted(spans.values(), key=lambda span: span.start_s)),
        arrows=tuple(_arrows(plan)),
        frames=tuple(
            FramePassed(index, begin_s, end_s)
            for index, (begin_s, end_s) in enumerate(trace["frames"][warmup:])
        ),
        first_of={
            name: first for first, names in mapping_view(plan).replicas.items() for name in names
        },
    )


def _shares(
    operator: Mapping[str, Any], start_s: float, time_s: float
) -> Iterator[tuple[str, float, float]]:
    """Yield operators of the plan with their start and time; one stands for several at times.

    All of the time is that of those which it includes: a Conv's. The sum that was merged into it
    takes none.
    """
    included = operator.get("includes", ())
    for name in included:
        yield name, start_s, time_s / len(included)
    own_s = 0.0 if included else time_s
    yield operator["source"], start_s + time_s - own_s, own_s


def _arrows(plan: Plan) -> Iterator[Arrow]:
    view = mapping_view(plan)
    place = {operator: view.name(at) for operator, at in view.placements.items()}
    maker = {name: each.id for each in plan.operators for name in each.outputs}
    readers: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for each in plan.operators:
        for name in each.inputs:
            readers[name, place[each.id]].append(each.id)
    for transfer in plan.transfers:
        read = readers[transfer.tensor, transfer.target]
        if read and transfer.tensor in maker:
            producer = maker[transfer.tensor]
            yield Arrow(transfer.tensor, place[producer], producer, transfer.target, read[0])
