"""What `benchmarks.run_on_this_machine` runs, and what comes of it."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import parapipe
from parapipe.mappings.event_graph import PICOSECONDS, EventGraph, picoseconds
from parapipe.plan.program import Program, program
from parapipe.plan.schema import Plan
from parapipe.plan.sharing import executed_plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.frames import random_frames
from parapipe.runtime.machine import OtherLoad
from parapipe.runtime.sessions import pin_thread

BURST_S = 1.0
REST_S = 0.2  # between its runs
SPARE = 1.25  # of the predicted period, between frames that must not queue
FILLING = 3  # frames until a pipeline of two stages is full
QUIET = 0.02  # share of the segments' time for which their threads may be without a core
FREE = 0.05  # share of the machine that other programs take in a quiet moment
ENOUGH = 3

Works = Mapping[str, float]  # seconds of processor time by segment


@dataclass(frozen=True, slots=True)
class Burst:
    """What one burst gave, and the share of its work for which the threads had no core."""

    period_s: float
    latency_s: float
    works_s: Works
    waited: float


@dataclass(slots=True)
class Case:
    """A configuration, or a whole network in one session, and its bursts.

    Parameters
    ----------
    plan
        None of a whole network in one session.
    segments
        Ids of the operators of each segment.
    run
        Runs a burst.
    """

    network: str
    name: str
    kind: str
    stages: str
    plan: Plan | None
    segments: Mapping[str, tuple[str, ...]]
    run: Callable[[], Burst]
    bursts: list[Burst] = field(default_factory=list)

    @property
    def quiet(self) -> int:
        """How many bursts were quiet."""
        return sum(each.waited <= QUIET for each in self.bursts)

    @property
    def counted(self) -> list[Burst]:
        """The quiet bursts; the quietest three where there are fewer."""
        by_quiet = sorted(self.bursts, key=lambda each: each.waited)
        return by_quiet[: max(self.quiet, ENOUGH)]

    def record(self) -> dict[str, Any]:
        """Return it as a row of the table."""
        predicted = self.plan.predicted if self.plan else None
        counted = self.counted
        worked = self._worked([each.works_s for each in counted])
        return {
            "network": self.network,
            "configuration": self.name,
            "kind": self.kind,
            "stages": self.stages,
            "predicted_period_s": predicted.period_s if predicted else None,
            "sustained_period_s": predicted.sustained_period_s if predicted else None,
            "segment_period_s": self._sustained_s(),
            "period_s": median(each.period_s for each in counted),
            "work_period_s": worked[0],
            "predicted_latency_s": predicted.latency_s if predicted else None,
            "latency_s": median(each.latency_s for each in counted),
            "work_latency_s": worked[1],
            "bursts": len(counted),
            "waited": median(each.waited for each in counted),
        }

    def _program(self, plan: Plan) -> Program:
        ran = {operator for operators in self.segments.values() for operator in operators}
        return program(executed_plan(plan, ran), unit="segment", moves=False)

    def _sustained_s(self) -> float | None:
        """Return the period that the plan's segments can sustain as predicted."""
        if self.plan is None:
            return None
        return float(self._program(self.plan).graph.period_ps() / PICOSECONDS)

    def _worked(self, works: Sequence[Works]) -> tuple[float, float]:
        """Return period and latency that follow from the segments' processor time."""
        work_s = {name: median(each[name] for each in works) for name in works[0]}
        if self.plan is None:
            (alone_s,) = work_s.values()
            return alone_s, alone_s
        found = self._program(self.plan)
        named = {operators: name for name, operators in self.segments.items()}
        times_ps = tuple(picoseconds(work_s[named[task.operators]]) for task in found.tasks)
        graph = replace(found.graph, time_ps=times_ps)
        return float(graph.period_ps() / PICOSECONDS), _latency_s(found, graph)


def _latency_s(found: Program, graph: EventGraph) -> float:
    """Return the seconds of a frame that is alone: the longest way through the tasks."""
    before = [[(u, graph.time_ps[u] + delay) for u, v, delay in graph.waits if v == task]
              for task in range(len(found.tasks))]  # fmt: skip
    for order in graph.orders:
        for u, v in pairwise(order):
            before[v].append((u, graph.time_ps[u]))
    start: dict[int, int] = {}

    def started(task: int) -> int:
        if task not in start:
            start[task] = max((started(u) + time for u, time in before[task]), default=0)
        return start[task]

    ends = (started(task) + graph.time_ps[task] for task in range(len(found.tasks)))
    return max(ends) / PICOSECONDS


def detected(folder: Path) -> Path:
    """Return a folder's description of this machine; one of a core a processor if it has none."""
    folder.mkdir(parents=True, exist_ok=True)
    platform = folder / "machine.yaml"
    if not platform.exists():
        cores = len(os.sched_getaffinity(0))
        parapipe.detect_platform(name="machine", split=cores).write(platform)
    return platform


def executed(executor: Executor, plan: Plan) -> Callable[[], Burst]:
    """Return what runs a burst of a configuration."""
    predicted_s = plan.predicted.period_s
    frames = list(
        random_frames(executor.folder, FILLING + max(5, round(BURST_S / 2 / predicted_s)))
    )

    def burst() -> Burst:
        for _ in executor.run(frames):
            pass
        done_s = [frame.done_s for frame in executor.record.frames[FILLING:]]
        period_s = (done_s[-1] - done_s[0]) / (len(done_s) - 1)
        works: defaultdict[str, list[float]] = defaultdict(list)
        spans = [span for span in executor.record.spans if span.work_s is not None]
        for span in spans:
            works[span.name].append(span.work_s or 0.0)
        took_s = sum(span.end_s - span.start_s for span in spans)
        waited = 1 - sum(span.work_s or 0.0 for span in spans) / took_s
        time.sleep(REST_S)
        for _ in executor.run(frames, period_s=SPARE * predicted_s):
            pass
        passed = executor.record.frames[FILLING:]
        latency_s = median(frame.done_s - frame.admitted_s for frame in passed)
        works_s = {name: median(each) for name, each in works.items()}
        return Burst(period_s, latency_s, works_s, waited)

    return burst


def whole(model: Path, cores: Sequence[int]) -> Callable[[], Burst]:
    """Return what runs a burst of the whole network in one session, a thread for each core."""
    from parapipe.profiling.measure import bind_tensors, session

    with pinned(cores):
        opened = session(model, len(cores), "CPUExecutionProvider")
        binding = bind_tensors(opened)

    def burst() -> Burst:
        times_s: list[float] = []
        works_s: list[float] = []
        with pinned(cores):
            while len(times_s) < FILLING + 6 or sum(times_s) < BURST_S / 2:
                begin_s, begun_s = perf_counter(), thread_time()
                opened.run_with_iobinding(binding)
                times_s.append(perf_counter() - begin_s)
                works_s.append(thread_time() - begun_s)
        counted = times_s[FILLING:]
        waited = 1 - sum(works_s) / sum(times_s)
        period_s = sum(counted) / len(counted)
        return Burst(period_s, median(counted), {"": median(works_s[FILLING:])}, waited)

    return burst


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Bind this thread to some cores for a while."""
    before = os.sched_getaffinity(0)
    pin_thread(cores)
    try:
        yield
    finally:
        pin_thread(before)


def wait_for_quiet(deadline_s: float) -> None:
    """Return when other programs leave the machine alone, or at the deadline (monotonic)."""
    while time.monotonic() < deadline_s:
        others = OtherLoad()
        time.sleep(0.3)
        if (others.share() or 0.0) <= FREE:
            return
