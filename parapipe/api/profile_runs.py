"""What operators take when plans run: in the whole model, and split."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from parapipe.api.checked import Model, PlatformFile
from parapipe.errors import ExecutionError, ParapipeError
from parapipe.files.progress import Phase, Progress, Tell
from parapipe.search.options import Dims, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.api.plan import Plan
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.profile import Measurement, Profile
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.mappings.assignment import Assignment
    from parapipe.platform.platform import Platform
    from parapipe.profiling.from_run import SegmentTime

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
    from parapipe.cost.profile import Profile, read_profile
    from parapipe.profiling.from_run import among

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
        return tuple(among(_operator_times(busy, graph, platform), (staged, alone)))
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
    dims: Dims | None,
    shapes: Shapes | None,
    rules: Rules | None,
) -> Sequence[Measurement]:
    """Run what `map` splits with the times of a profile; return the times of operators and parts.

    A part in a plan begins with what other processors have made, and with cold caches.
    """
    from parapipe.api.load import load_platform
    from parapipe.api.map import map as map_model

    try:
        front = map_model(
            model,
            platform_file,
            split="auto",
            objectives="latency-throughput",
            profiles=[path],
            dims=dims,
            shapes=shapes,
            rules=rules,
            note=lambda _: None,
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
        from parapipe.documents.compared_runs import segments_of, strange

        frames = min(max(ceil(ROUND_S / plan.predicted.period_s), FRAMES[0]), FRAMES[1])
        document = plan.run(frames=frames, saturate=True).document
        if why := strange(document, graph, self._platform):
            raise ExecutionError(f"it {why}")
        return tuple(segments_of(document, graph, self._platform))


def _operator_times(
    segments: Sequence[SegmentTime], graph: OperatorGraph, platform: Platform
) -> Sequence[Measurement]:
    """Return what operators took, of processors that ran any."""
    from parapipe.profiling.from_run import measurements_of

    ran = {each.processor for each in segments}
    return [m for m in measurements_of(segments, graph, platform) if m.processor in ran]


def _cost_table(graph: OperatorGraph, platform: Platform, *profiles: Profile) -> CostTable:
    from parapipe.cost.cost_table import build_cost_table

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
    from parapipe.mappings.assignment import Assignment

    times_s = [costs.time_s(v, able[0]) for v in range(len(graph.operators))]
    stages = _equal_parts(times_s, len(able))
    for first in range(len(able)):
        processors = {v: able[first - i] for i, stage in enumerate(stages) for v in stage}
        yield Assignment(
            tuple(processors[v] for v in sorted(processors)), tuple(stages), ordered=True
        )


def _one_stage(graph: OperatorGraph, p: int) -> Assignment:
    """Return all operators in one stage, on one processor."""
    from parapipe.mappings.assignment import Assignment

    order = tuple(range(len(graph.operators)))
    return Assignment((p,) * len(order), (order,), ordered=True)


def _plan_of(
    graph: OperatorGraph, platform: Platform, costs: CostTable, chosen: Assignment
) -> Plan:
    from parapipe.api.plan import Plan
    from parapipe.mappings.assembly import mapping_of
    from parapipe.plan.build import build_plan

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
