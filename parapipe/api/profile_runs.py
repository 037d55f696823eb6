"""What operators take when plans run: in the whole model, and split."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from math import ceil
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from parapipe.api.checked import Model, PlatformFile
from parapipe.errors import ExecutionError, ParapipeError
from parapipe.files.progress import Phase, Progress, Tell
from parapipe.pipeline.options import Dims, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.api.plan import Plan
    from parapipe.cost.profile import Measurement
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.platform.platform import Platform

ROUNDS = 5
"""Runs of each plan, each with new sessions: of two sessions of one model, one may take 20 %
longer."""
ROUND_S = 0.4
FRAMES = (8, 200)
"""Least and most of a run."""


def in_whole_model(
    graph: OperatorGraph,
    platform: Platform,
    path: Path,
    names: Collection[str],
    note: Callable[[str], None],
    *,
    progress: Tell | None,
) -> Sequence[Measurement]:
    """Run the whole model on the processors that can, and return its operators' times.

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
        plans = tuple(_pipelines(graph, platform, path, names, note))
        return _measured([(graph, plan) for plan in plans], platform, progress, "whole")
    except ParapipeError as error:
        note(f"the whole model was not measured: {error}")
        return ()


def in_split_plans(
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
    from parapipe.api.map import map as mapped

    try:
        front = mapped(
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
        return _measured(split, load_platform(platform_file), progress, "split")
    except ParapipeError as error:
        note(f"split plans were not measured: {error}")
        return ()


def _measured(
    plans: Sequence[tuple[OperatorGraph, Plan]],
    platform: Platform,
    progress: Tell | None,
    phase: Phase,
) -> Sequence[Measurement]:
    """Run plans in turn; return what the operators of each graph take in them."""
    from parapipe.formats.learned import segments_of, strange
    from parapipe.profiling.from_run import SegmentTime, measurements_of

    begin_s = monotonic()
    segments: list[list[SegmentTime]] = [[] for _ in plans]
    for turn in range(ROUNDS):
        for at, (graph, plan) in enumerate(plans):
            frames = min(max(ceil(ROUND_S / plan.predicted.period_s), FRAMES[0]), FRAMES[1])
            document = plan.run(frames=frames, saturate=True).document
            if why := strange(document, graph, platform):
                raise ExecutionError(f"it {why}")
            segments[at] += segments_of(document, graph, platform)
            if progress:
                done, elapsed_s = turn * len(plans) + at + 1, monotonic() - begin_s
                progress(Progress(done, ROUNDS * len(plans), 0.0, elapsed_s, phase=phase))
    of_graph: dict[int, tuple[OperatorGraph, list[SegmentTime]]] = {}
    for (graph, _), found in zip(plans, segments, strict=True):
        of_graph.setdefault(id(graph), (graph, []))[1].extend(found)
    return [
        measurement
        for graph, found in of_graph.values()
        for measurement in measurements_of(found, graph, platform)
        if measurement.processor in {each.processor for each in found}
    ]


def _pipelines(
    graph: OperatorGraph,
    platform: Platform,
    path: Path,
    names: Collection[str],
    note: Callable[[str], None],
) -> Iterator[Plan]:
    """Yield pipelines of the processors that run all of a model, each with one stage.

    There are as many as processors, so that each processor has each of the stages once. The stages
    are of about the same work, on the first of them. Then each runs the model alone: beside others,
    which use the same memory, it may take longer.
    """
    from parapipe.api.plan import Plan
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.cost.profile import read_profile
    from parapipe.pipeline.assigned import mapping_of
    from parapipe.pipeline.assignment import Assignment
    from parapipe.plan.build import build_plan

    profiles = (read_profile(path),)
    costs = build_cost_table(graph, platform, profiles=profiles, precision="model")
    order = range(len(graph.operators))
    able = []
    for p, name in enumerate(platform.names):
        if name in names and all(costs.unsupported(v, p) is None for v in order):
            able.append(p)
        elif name in names:
            note(f"'{name}' does not run the whole model: operators have their own times there")
    stages = _equal_parts([costs.time_s(v, able[0]) for v in order], len(able)) if able else ()
    pipelines = [
        ({v: able[first - i] for i, stage in enumerate(stages) for v in stage}, stages)
        for first in range(len(able))
    ]
    alone = [(dict.fromkeys(order, p), (tuple(order),)) for p in able if len(stages) > 1]
    for placed, cut in (*pipelines, *alone):
        pipeline = Assignment(tuple(placed[v] for v in order), tuple(cut), ordered=True)
        mapping = mapping_of(graph, platform, costs, pipeline)
        yield Plan.of(build_plan(graph, platform, costs, mapping))


def _equal_parts(times_s: Sequence[float], count: int) -> Sequence[tuple[int, ...]]:
    """Cut a row of operators into so many parts, or fewer, of about the same time."""
    total_s, begin_s = sum(times_s), 0.0
    parts: dict[int, list[int]] = {}
    for v, time_s in enumerate(times_s):
        middle = (begin_s + time_s / 2) / total_s
        parts.setdefault(min(int(middle * count), count - 1), []).append(v)
        begin_s += time_s
    return [tuple(part) for part in parts.values()]
