"""What processors of this machine do to each other, and what the law predicts of it.

A model is a pipeline of two stages, one on each of two cores. Alone, its stages take a and b; while
both are at work, a' and b'. Measured: the period max(a', b') and the latency a' + b'. Predicted
without the law: max(a, b) and a + b. With it: these, times what `evaluate` says that the law adds.
The law is a table of slowdowns that is measured in the same run: of a compute-bound and a
memory-bound kernel, as `platforms detect` has it, or of the model's operators by themselves while
the other core runs them in turn, as `profile --under-load` has it. No number of a pipeline is put
in.

In each round, stages, operators and kernels are run for some milliseconds alone and then beside the
other, one after the other; the median over rounds of the ratio counts. So what changes while it is
measured is in all of them. `--realtime` gives the threads of this process priority over all others
on both cores while they are measured, and keeps the other core busy with what moves no memory while
a stage is alone: for a machine on which others work, as root. Without it, nothing else should run.

    python -m benchmarks.co_runs --out benchmarks/results/co_runs.md
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, median
from typing import Any

import yaml

import parapipe
from benchmarks.co_run_models import BLOCKS, MEMORY_BOUND, MODELS, model_named
from parapipe.api.profile_tasks import tasks_in
from parapipe.cost.co_run_fit import CoRunSample, SlowdownFit, co_run_sample, fit_slowdowns
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import Measurement, Profile, measurement_of
from parapipe.files.csv_table import Cells
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate
from parapipe.platform.co_run import CoRun
from parapipe.platform.load import read_platform
from parapipe.platform.platform import Platform
from parapipe.profiling import under_load
from parapipe.profiling.detect import clusters_here
from parapipe.profiling.detected_co_runs import cache_shares
from parapipe.profiling.measure import Run, preserve_thread_state
from parapipe.profiling.tasks import Tasks, kernel_tasks

ROUNDS = 21
KERNEL_BYTES = 1 << 27  # four times the last cache here, as `platforms detect` takes
PRIORITY = 5
NOTEWORTHY = 0.05
HEAD = """# Slowdowns measured on two cores

Written by `python -m benchmarks.co_runs --out benchmarks/results/co_runs.md`, which says how it
measures.

"""


Factors = tuple[float, float]  # by which a law lengthens the period and the latency


@dataclass(frozen=True, slots=True)
class Measured:
    """A pipeline of two stages: milliseconds alone, beside each other, and by the laws."""

    name: str
    alone_ms: tuple[float, float]
    beside_ms: tuple[float, float]
    kernels: Factors
    operators: Factors
    kernel: float  # by which the memory-bound kernels slow each other down meanwhile

    def errors(self) -> list[Factors]:
        """Return errors of period and latency without a law, by kernels and by operators."""
        period, latency = max(self.alone_ms), sum(self.alone_ms)
        real_period, real_latency = max(self.beside_ms), sum(self.beside_ms)
        return [
            (abs(period * by[0] / real_period - 1), abs(latency * by[1] / real_latency - 1))
            for by in ((1.0, 1.0), self.kernels, self.operators)
        ]


Item = tuple[Run, int, Sequence[Run]]  # what is measured, on which core, and beside what


class Machine:
    """Two cores, with or without priority over what else runs."""

    def __init__(self, *, realtime: bool) -> None:
        self.realtime = realtime
        self._spins: list[subprocess.Popen[bytes]] = []
        for core in (0, 1) if realtime else ():
            text = (
                f"import os; os.sched_setaffinity(0, [{core}]); os.sched_setscheduler"
                f"(0, os.SCHED_FIFO, os.sched_param({PRIORITY}))\nwhile True: pass"
            )
            self._spins.append(subprocess.Popen([sys.executable, "-c", text]))
            self._spins[-1].send_signal(signal.SIGSTOP)

    def close(self) -> None:
        """End what kept cores busy."""
        for spin in self._spins:
            spin.kill()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Have priority."""
        if self.realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        try:
            yield
        finally:
            if self.realtime:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    @contextmanager
    def other_idle(self, core: int) -> Iterator[None]:
        """Keep the other core from moving memory."""
        if not self.realtime:
            yield
            return
        spin = self._spins[1 - core]
        spin.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            spin.send_signal(signal.SIGSTOP)

    def times_s(self, items: Sequence[Item]) -> list[tuple[float, float]]:
        """Return the median seconds of each run alone and beside others, in turn in each round."""
        alone_s: list[list[float]] = [[] for _ in items]
        ratios: list[list[float]] = [[] for _ in items]
        for _ in range(ROUNDS):
            for number, (run, core, others) in enumerate(items):
                with self.measuring():
                    with self.other_idle(core):
                        alone_s[number].append(under_load._window_s(run))
                    with under_load._busy([others]):
                        beside_s = under_load._window_s(run)
                ratios[number].append(beside_s / alone_s[number][-1])
        return [
            (median(alone), median(alone) * median(ratio))
            for alone, ratio in zip(alone_s, ratios, strict=True)
        ]


def kernel_items(folder: Path, platform: Platform) -> tuple[list[Item], list[dict[str, Any]]]:
    """Return the kernels to measure on each core beside kernels, and what they are."""
    document, models = kernel_tasks(platform.processors, KERNEL_BYTES)
    write(folder, models)
    kernels = document["kernels"]
    runs = [
        {kind: Run(folder, kernels[kind], entry) for kind in under_load.CLASSES}
        for entry in document["processors"]
    ]
    every = list(product((0, 1), under_load.CLASSES, under_load.CLASSES))
    items: list[Item] = [
        (runs[core][kind], core, [runs[1 - core][beside]]) for core, kind, beside in every
    ]
    return items, [
        {"class": kind, "busy_class": beside, "moved": kernels[kind]["moved_bytes"]}
        for _, kind, beside in every
    ]


def operator_items(folder: Path, tasks: Tasks) -> list[Item]:
    """Return a model's operators to measure on each core while the other runs them in turn."""
    write(folder, tasks.files())
    operators, processors = tasks.document["operators"], tasks.document["processors"]
    runs = [[Run(folder, each, p) for each in operators] for p in processors]
    return [(run, core, runs[1 - core]) for core in (0, 1) for run in runs[core]]


def write(folder: Path, files: dict[Path, bytes]) -> None:
    """Write files below a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def here(draws: list[float] | None = None, rows: list[SlowdownFit] | None = None) -> Platform:
    """Return two cores of this machine as a platform, with what was measured of them."""
    return read_platform(yaml.safe_dump(platform_text(draws, rows)), "two cores")


def platform_text(draws: list[float] | None, rows: list[SlowdownFit] | None) -> dict[str, Any]:
    """Return the platform's file as plain data."""
    caches = cache_shares(clusters_here(None, [[0], [1]]))
    source: dict[str, Any] = {"source": "here"}
    cpus = [
        {
            "name": f"cpu{core}", "kind": "cpu", "backend": "onnxruntime-cpu", "cores": [core],
            "data_types": ["float32", "int32"], **source,
            "clock": {"default_frequency_hz": 1e9,
                      "points": [{"frequency_hz": 1e9, "voltage_v": 1.0}], **source},
            "launch": {"overhead_s": 2e-6, **source},
            "peak": {"macs_per_s": {"float32": 4e10, "int32": 1e10}, **source},
            "memory": {"bandwidth_bytes_per_s": draws[core] if draws else 1e10,
                       "cache_bytes": max(caches.values(), default=0.0), **source},
            "power": {"alpha_w_per_v2_hz": 1e-9, "beta_w_per_v": 0.1,
                      "utilisation": {"default": 1.0}, **source},
            "input": {"latency_s": 0.0, **source}, "output": {"latency_s": 0.0, **source},
        }
        for core in (0, 1)
    ]  # fmt: skip
    law = {"slowdowns": [row.section() for row in rows], **source} if rows else None
    return {
        "schema": "parapipe/platform/1",
        "name": "two-cores",
        "board": {"idle_power_w": 0.0, **source},
        "memory": {"bandwidth_bytes_per_s": 1e11, "lower_bound": True, **source},
        "processors": cpus,
        "links": [{"from": "cpu0", "to": "cpu1", "latency_s": 0.0, "both_ways": True, **source}],
        **({"co_run": law} if law else {}),
        "sources": {"here": {"provenance": "measured", "title": "This run"}},
    }


def block_of(tensor: str) -> int:
    """Return the number of the block whose operator makes a tensor: `b1_a`, or `x2` of block 1."""
    if tensor.startswith("x"):
        return int(tensor[1:]) - 1
    return int(tensor[1:].partition("_")[0])


def sample(
    core: int, moved: int, times_s: tuple[float, float], classes: dict[str, str]
) -> CoRunSample:
    """Return what was measured on a core as a sample."""
    cells = {
        "processor": f"cpu{core}", "busy": f"cpu{1 - core}", "moved_bytes": str(moved),
        "alone_s": f"{times_s[0]:.9f}", "factor": f"{times_s[1] / times_s[0]:.4f}", **classes,
    }  # fmt: skip
    return co_run_sample(Cells(0, cells))


def measured_pipeline(machine: Machine, name: str) -> Measured:
    """Measure a model, its operators and the kernels in turn; predict the model by the others."""
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        model, bare = folder / "model.onnx", here()
        model.write_bytes(model_named(name, range(BLOCKS)).SerializeToString())
        graph = parapipe.load_model(model, note=lambda _: None)
        with tasks_in(model, graph, bare) as tasks, preserve_thread_state():
            stages = stage_items(folder, name, bare)
            own = operator_items(folder, tasks)
            kernels, kinds = kernel_items(folder, bare)
            times = machine.times_s([*stages, *own, *kernels])
    of_stages, of_own = times[: len(stages)], times[len(stages) : len(stages) + len(own)]
    of_kernels = times[len(stages) + len(own) :]
    samples, draws = [], [0.0, 0.0]
    for (_, core, _), times_s, kind in zip(kernels, of_kernels, kinds, strict=True):
        moved = kind.pop("moved")
        samples.append(sample(core, moved, times_s, kind))
        if kind["class"] == "memory":
            draws[core] = max(draws[core], moved / times_s[0])
    law = list(fit_slowdowns(samples, bare))
    platform = here(draws, law)
    own_samples = [
        sample(core, run.operator["cells"]["size_bytes"], times_s, {})
        for (run, core, _), times_s in zip(own, of_own, strict=True)
    ]
    profile = Profile(
        "alone",
        tuple(alone(run, core, t[0]) for (run, core, _), t in zip(own, of_own, strict=True)),
    )
    rows = [row.section() for row in fit_slowdowns(own_samples, platform)]
    laws = [None, platform.co_run, CoRun.model_validate({"slowdowns": rows, "source": "here"})]
    by_kernels, by_operators = factors_by_laws(graph, platform, profile, laws)
    (a, beside_a), (b, beside_b) = of_stages
    alone_ms, beside_ms = (a * 1e3, b * 1e3), (beside_a * 1e3, beside_b * 1e3)
    kernel = fmean(row.factor for row in law if row.operator_class == row.busy_class == "memory")
    return Measured(name, alone_ms, beside_ms, by_kernels, by_operators, kernel)


def stage_items(folder: Path, name: str, platform: Platform) -> list[Item]:
    """Return the stages to measure, each on its core beside the other."""
    entries = kernel_tasks(platform.processors)[0]["processors"]
    files = {
        Path(f"{i}.onnx"): model_named(name, range(*pair)).SerializeToString()
        for i, pair in enumerate(pairwise(range(0, BLOCKS + 1, BLOCKS // 2)))
    }
    write(folder, files)
    runs = [
        Run(folder, {"file": str(file), "cells": {}}, entry)
        for file, entry in zip(files, entries, strict=True)
    ]
    return [(runs[core], core, [runs[1 - core]]) for core in (0, 1)]


def alone(run: Run, core: int, time_s: float) -> Measurement:
    """Return an operator's time alone as a row of a profile."""
    cells = {
        **run.operator["cells"], "processor": f"cpu{core}", "frequency_hz": "1e9",
        "time_s": f"{time_s:.9f}", "rows": ROUNDS, "spread": "0", "method": "timed",
    }  # fmt: skip
    return measurement_of({key: str(cell) for key, cell in cells.items()})


def factors_by_laws(
    graph: OperatorGraph, platform: Platform, profile: Profile, laws: Sequence[CoRun | None]
) -> list[Factors]:
    """Return by how much each law but the first lengthens period and latency beside the first."""
    first = {v for v, each in enumerate(graph.operators) if block_of(each.id) < BLOCKS // 2}
    order = range(len(graph.operators))
    stages = tuple(tuple(v for v in order if (v in first) is half) for half in (True, False))
    assignment = Assignment(tuple(int(v not in first) for v in order), stages, ordered=True)
    figures = []
    for law in laws:
        at = platform.model_copy(update={"co_run": law})
        costs = build_cost_table(graph, at, profiles=(profile,))
        evaluated = evaluate(mapping_of(graph, None, costs, assignment), graph, costs)
        figures.append((evaluated.period_s, evaluated.latency_s))
    (period, latency), *slowed = figures
    return [(each[0] / period, each[1] / latency) for each in slowed]


def page(rows: list[Measured], *, realtime: bool, load: float) -> str:
    """Return the page."""
    lines = [HEAD]
    how = "with priority over other programs" if realtime else "without priority"
    lines.append(
        f"Measured {how}, while {load:.1f} processes wanted one of {os.cpu_count()} cores on "
        "average.\n"
    )
    lines.append(
        "\n| model | alone, ms | beside, ms | slowdown | of memory-bound kernels | by kernels "
        "| by operators | error of the period: without, kernels, operators | of the latency |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    for row in rows:
        periods, latencies = zip(*row.errors(), strict=True)
        lines.append(
            f"| {row.name} | {row.alone_ms[0]:.2f}, {row.alone_ms[1]:.2f} "
            f"| {row.beside_ms[0]:.2f}, {row.beside_ms[1]:.2f} "
            f"| {max(row.beside_ms) / max(row.alone_ms):.2f} "
            f"| {row.kernel:.2f} | {row.kernels[0]:.2f} | {row.operators[0]:.2f} "
            f"| {shares(periods)} | {shares(latencies)} |\n"
        )
    for title, chosen in (
        ("all models", rows),
        ("the memory-bound ones", [row for row in rows if row.name in MEMORY_BOUND]),
        (f"those that slow down by {NOTEWORTHY:.0%} or more".replace("%", " %"),
         [row for row in rows if max(row.beside_ms) >= max(row.alone_ms) * (1 + NOTEWORTHY)]),
    ):  # fmt: skip
        if chosen:
            means = [
                [fmean(row.errors()[law][figure] for row in chosen) for law in range(3)]
                for figure in (0, 1)
            ]
            lines.append(
                f"\nMean error over {title} ({len(chosen)}), without a law, by kernels and by "
                f"operators: of the period {shares(means[0])}, of the latency {shares(means[1])}.\n"
            )
    return "".join(lines)


def shares(values: Sequence[float]) -> str:
    """Return some shares as text."""
    return ", ".join(f"{value:.1%}" for value in values).replace("%", " %")


def main() -> None:
    """Measure, predict, and write the page."""
    parser = argparse.ArgumentParser(description="Slowdowns of two cores, and what predicts them.")
    parser.add_argument("--out", type=Path, help="page to write")
    parser.add_argument("--realtime", action="store_true", help="have priority; needs root")
    parser.add_argument("--only", default="", help="models whose names contain this")
    given = parser.parse_args()
    machine = Machine(realtime=given.realtime)
    load = os.getloadavg()[0]
    try:
        names = [name for name in MODELS if given.only in name]
        rows = []
        for name in names:
            rows.append(measured_pipeline(machine, name))
            print(rows[-1], flush=True)
    finally:
        machine.close()
    text = page(rows, realtime=given.realtime, load=load)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
