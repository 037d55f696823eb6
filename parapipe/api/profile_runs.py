"""What operators and hand-overs take when plans run: in the whole model, split, and in rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from pathlib import Path
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Unpack

import onnx

from parapipe.api.checked import Model, PlatformFile
from parapipe.api.load import load_model, load_platform, locate_model
from parapipe.api.map import map as map_model
from parapipe.api.plan import Plan
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.profile import Measurement, Profile, read_profile
from parapipe.documents import compared_runs
from parapipe.errors import ExecutionError, ParapipeError
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.files.locked_folders import LockedFolder
from parapipe.files.progress import Phase, Progress, Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.user_shapes import SizeKeywords
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.platform.platform import Platform
from parapipe.profiling.from_run import SegmentTime, measurements_of, with_range_among
from parapipe.profiling.identical_figures import (
    ELSEWHERE,
    FORMS,
    Form,
    FrameTime,
    HandOvers,
    hand_over_of,
    hand_over_time,
    trunk_and_branch,
)
from parapipe.runtime.folder import RunError, open_folder
from parapipe.runtime.frames import random_frames
from parapipe.search.option_types import Rules

if TYPE_CHECKING:  # it needs ONNX Runtime
    from parapipe.runtime.executor import Executor

ROUNDS = 5
"""Runs of each plan, each with new sessions: of two sessions of one model, one may take 20 %
longer."""
ROUND_S = 0.4
FRAMES = (8, 200)
"""Least and most of a run."""


def measure_whole_model(
    graph: OperatorGraph,
    platform: Platform,
    path: Path,
    names: Collection[str],
    note: Callable[[str], None],
    *,
    progress: Tell | None,
) -> Sequence[Measurement]:
    """Run the whole model on the processors that can, and return its operators' times.

    Pipelines of these processors show what stages take, and operators their shares of them. Then
    each processor runs the model alone, and all of them run it at once. The last times count, as
    the processors of a plan work at the same time and share the memory; spreads are how far the
    three lie apart.

    Parameters
    ----------
    path
        The profile with what the operators take by themselves.
    names
        Of the processors.
    note
        Takes why a processor does not run it.
    """
    try:
        own = read_profile(path)
        costs = _cost_table(graph, platform, own)
        able = _able_processors(costs, graph, names, note)
        if not able:
            return ()
        count = 2 * len(able) + 1 if len(able) > 1 else 1
        runs = _Runs(platform, progress, "whole", ROUNDS * count)
        pipelines = [
            _plan_of(graph, platform, costs, each)
            for each in _rotated_pipelines(costs, graph, able)
        ]
        staged = _operator_times(runs.in_turn(graph, pipelines), graph, platform)
        if len(able) == 1:
            return staged
        costs = _cost_table(graph, platform, Profile("stages", tuple(staged)), own)
        plans = [_plan_of(graph, platform, costs, _one_stage(graph, p)) for p in able]
        alone = _operator_times(runs.in_turn(graph, plans), graph, platform)
        busy = [each for _ in range(ROUNDS) for each in runs.at_once(graph, *plans)]
        return tuple(with_range_among(_operator_times(busy, graph, platform), (staged, alone)))
    except ParapipeError as error:
        note(f"the whole model was not measured: {error}")
        return ()


def measure_split_plans(
    model: Model,
    platform_file: PlatformFile,
    path: Path,
    note: Callable[[str], None],
    *,
    progress: Tell | None,
    rules: Rules | None,
    **sizes: Unpack[SizeKeywords],
) -> Sequence[Measurement]:
    """Run what `map` splits with the times of a profile; return the times of operators and parts.

    A part in a plan begins with what other processors have made, and with cold caches.
    """
    try:
        front = map_model(
            model,
            platform_file,
            split="auto",
            objectives="latency-throughput",
            profiles=[path],
            rules=rules,
            note=lambda _: None,
            **sizes,
        )
        split = [(each.graph, each.plan()) for each in front if each.split]
        platform = load_platform(platform_file)
        runs = _Runs(platform, progress, "split", ROUNDS * len(split))
        of_graph: dict[int, tuple[OperatorGraph, list[SegmentTime]]] = {}
        for _ in range(ROUNDS):
            for graph, plan in split:
                of_graph.setdefault(id(graph), (graph, []))[1].extend(runs.at_once(graph, plan))
        return [
            measurement
            for graph, segments in of_graph.values()
            for measurement in _operator_times(segments, graph, platform)
        ]
    except ParapipeError as error:
        note(f"split plans were not measured: {error}")
        return ()


class _Runs:
    """Runs plans, as fast as they take frames, and tells how far this has come."""

    def __init__(self, platform: Platform, progress: Tell | None, phase: Phase, count: int) -> None:
        self._platform, self._progress, self._phase = platform, progress, phase
        self._count, self._done, self._begin_s = count, 0, monotonic()

    def at_once(self, graph: OperatorGraph, *plans: Plan) -> Sequence[SegmentTime]:
        """Run plans of a graph at the same time, with new sessions; return what segments take."""
        with ThreadPoolExecutor(len(plans)) as pool:
            times = [*pool.map(lambda plan: self._run(graph, plan), plans)]
        self._done += 1
        if self._progress:
            elapsed_s = monotonic() - self._begin_s
            self._progress(Progress(self._done, self._count, 0.0, elapsed_s, phase=self._phase))
        return [segment for each in times for segment in each]

    def in_turn(self, graph: OperatorGraph, plans: Sequence[Plan]) -> Sequence[SegmentTime]:
        """Run plans of a graph one after the other, in several rounds."""
        turns = (self.at_once(graph, plan) for _ in range(ROUNDS) for plan in plans)
        return [segment for each in turns for segment in each]

    def _run(self, graph: OperatorGraph, plan: Plan) -> Sequence[SegmentTime]:
        frames = min(max(ceil(ROUND_S / plan.predicted.period_s), FRAMES[0]), FRAMES[1])
        document = plan.run(frames=frames, saturate=True).document
        if why := compared_runs.why_unusable(document, graph, self._platform):
            raise ExecutionError(f"it {why}")
        return tuple(compared_runs.segment_times(document, graph, self._platform))


def _operator_times(
    segments: Sequence[SegmentTime], graph: OperatorGraph, platform: Platform
) -> Sequence[Measurement]:
    """Return what operators took, of processors that ran any."""
    ran = {each.processor for each in segments}
    return [m for m in measurements_of(segments, graph, platform) if m.processor in ran]


def _cost_table(graph: OperatorGraph, platform: Platform, *profiles: Profile) -> CostTable:
    return build_cost_table(graph, platform, profiles=profiles, precision="model")


def _able_processors(
    costs: CostTable, graph: OperatorGraph, names: Collection[str], note: Callable[[str], None]
) -> Sequence[int]:
    """Return the processors of some that run all operators."""
    able, order = [], range(len(graph.operators))
    for p, name in enumerate(costs.processors):
        if name in names and all(costs.unsupported(v, p) is None for v in order):
            able.append(p)
        elif name in names:
            note(f"'{name}' does not run the whole model: operators have their own times there")
    return able


def _rotated_pipelines(
    costs: CostTable, graph: OperatorGraph, able: Sequence[int]
) -> Iterator[Assignment]:
    """Yield pipelines of some processors, each with one stage.

    There are as many as processors, so that each processor has each of the stages once. The stages
    are of about the same work, on the first of them.
    """
    times_s = [costs.time_s(v, able[0]) for v in range(len(graph.operators))]
    stages = _equal_parts(times_s, len(able))
    for first in range(len(able)):
        processors = {v: able[first - i] for i, stage in enumerate(stages) for v in stage}
        yield Assignment(
            tuple(processors[v] for v in sorted(processors)), tuple(stages), ordered=True
        )


def _one_stage(graph: OperatorGraph, p: int) -> Assignment:
    """Return all operators in one stage, on one processor."""
    order = tuple(range(len(graph.operators)))
    return Assignment((p,) * len(order), (order,), ordered=True)


def _plan_of(
    graph: OperatorGraph, platform: Platform, costs: CostTable, chosen: Assignment
) -> Plan:
    mapping = mapping_of(graph, platform, costs, chosen)
    return Plan.of(build_plan(graph, platform, costs, mapping))


def _equal_parts(times_s: Sequence[float], count: int) -> Sequence[tuple[int, ...]]:
    """Cut a row of operators into so many parts, or fewer, of about the same time."""
    total_s, begin_s = sum(times_s), 0.0
    parts: dict[int, list[int]] = {}
    for v, time_s in enumerate(times_s):
        middle = (begin_s + time_s / 2) / total_s
        parts.setdefault(min(int(middle * count), count - 1), []).append(v)
        begin_s += time_s
    return [tuple(part) for part in parts.values()]


LATENCY_ROUND_S = 0.3
LATENCY_FRAMES = (5, 20)
"""Least and most of a round in which hand-overs are measured."""
FIRST = 3  # frames that do not count
SPARE = 1.5  # of a latency, between frames: none waits for another one


@dataclass(slots=True)
class _ModuleRow:
    """A row of modules that is ready to run."""

    executor: Executor
    period_s: float = 0.0

    def measure(self) -> FrameTime:
        """Return the median latency of some frames, and for how long processors worked on one."""
        least, most = LATENCY_FRAMES
        wanted = int(LATENCY_ROUND_S / self.period_s) if self.period_s else least
        count = FIRST + min(max(wanted, least), most)
        frames = random_frames(self.executor.folder, count)
        for _ in self.executor.run(frames, period_s=self.period_s or None):
            pass
        record = self.executor.record
        latency_s = median(frame.done_s - frame.admitted_s for frame in record.frames[FIRST:])
        busy_s: defaultdict[int, float] = defaultdict(float)
        for span in record.spans:
            busy_s[span.frame] += span.end_s - span.start_s
        self.period_s = SPARE * latency_s
        return FrameTime(latency_s, median(busy_s[frame] for frame in busy_s if frame >= FIRST))


def measured_hand_overs(platform: Platform, bandwidth_bytes_per_s: float) -> HandOvers:
    """Return what a hand-over takes between each two CPU processors, the same in both directions.

    Rows of modules run as plans do, by turns: with the branch on the slower one of two processors,
    and without forks on each processor alone.

    Parameters
    ----------
    platform
        This machine's.
    bandwidth_bytes_per_s
        Of a copy.

    Raises
    ------
    ExecutionError
        If ONNX Runtime does not run them.
    """
    cpus = [p for p, each in enumerate(platform.processors) if each.kind == "cpu"]
    pairs = list(combinations(cpus, 2))
    by_pair: dict[tuple[int, int], dict[Form, list[FrameTime]]] = {pair: {} for pair in pairs}
    with LockedFolder() as scratch:
        for form in FORMS:
            folder = scratch.path / f"{form.extent}x{form.outputs}"
            folder.mkdir()
            try:
                rounds = _measure_rounds(platform, form, cpus, folder)
            except RunError as error:
                raise ExecutionError(f"hand-overs cannot be measured: {error}") from error
            for pair in pairs:
                by_pair[pair][form] = rounds[pair]
    moved = {pair: hand_over_of(each, bandwidth_bytes_per_s) for pair, each in by_pair.items()}
    return moved | {(q, p): each for (p, q), each in moved.items()}


def _measure_rounds(
    platform: Platform, form: Form, cpus: list[int], folder: Path
) -> Mapping[tuple[int, int], list[FrameTime]]:
    """Return what the hand-overs of a form added between each two processors, round by round."""
    alone = {p: _prepared_row(platform, form, p, p, folder) for p in cpus}
    first_s = {p: each.measure().latency_s for p, each in alone.items()}  # queued; it warms up
    for each in alone.values():
        each.measure()
    ends = {pair: trunk_and_branch({p: first_s[p] for p in pair}) for pair in combinations(cpus, 2)}
    forked = {pair: _prepared_row(platform, form, *ends[pair], folder) for pair in ends}
    for each in forked.values():
        each.measure()
    added: dict[tuple[int, int], list[FrameTime]] = {pair: [] for pair in forked}
    for _ in range(ROUNDS):
        by_one = {p: each.measure() for p, each in alone.items()}
        for pair, each in forked.items():
            trunk, branch = (by_one[p] for p in ends[pair])
            added[pair].append(hand_over_time(each.measure(), trunk, branch))
    return added


def _prepared_row(
    platform: Platform, form: Form, trunk: int, branch: int, folder: Path
) -> _ModuleRow:
    """Return a row of modules with a trunk and a branch on some processors, ready to run."""
    from parapipe.runtime.executor import Executor

    path, place = folder / f"{trunk}-{branch}.onnx", folder / f"{trunk}-{branch}"
    place.mkdir()
    onnx.save(form.model(forks=trunk != branch), path)
    graph = load_model(path, note=lambda _note: None)
    placed = tuple(
        branch if operator.id.startswith(ELSEWHERE) else trunk for operator in graph.operators
    )
    order = tuple(range(len(placed)))
    row = Assignment(placed, (order,), ordered=True)
    plan = _plan_of(graph, platform, _cost_table(graph, platform), row)
    with locate_model(plan) as model:
        write_session_folder(plan, model, place)
    return _ModuleRow(Executor(open_folder(place)))
