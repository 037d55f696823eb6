"""A run beside what was predicted of it, real or simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean, median
from typing import Literal

from parapipe.formats.run_schema import (
    SCHEMA,
    LaneRow,
    LatencyRow,
    PeriodRow,
    RunDocument,
    SimulationRow,
    TaskRow,
)
from parapipe.formats.run_waits import Wait, waits
from parapipe.pipeline.sustained import PICOSECONDS, picoseconds
from parapipe.plan.program import Program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Record
from parapipe.version import __version__

WARM_UP_SHARE = 5  # one in so many


def run_document(
    plan: Plan,
    program: Program,
    record: Record,
    *,
    how: Literal["run", "simulation"],
    saturated: bool,
    pace_s: float | None = None,
    members: Mapping[str, Sequence[str]] | None = None,
    simulation: SimulationRow | None = None,
) -> RunDocument:
    """Write a run down.

    Parameters
    ----------
    program
        What the executor did, with its units and queues.
    record
        At least one frame, and a span for each task and frame.
    pace_s
        Seconds between frames that are let in one at a time; the predicted period if not given.
    members
        Ids of the operators of each span that is a segment, where spans have other names than the
        program's tasks.
    """
    task_of = _task_of(program, record, members or {})
    seen = _seen(program, record, task_of)
    called = {task: name for (_, name), task in task_of.items()}
    limit_s, limited_by = _limit(program)
    observed_limit_s, observed_limited_by = _limit(program, seen.time_s)
    steady = simulation.steady if simulation else None
    period = PeriodRow(
        predicted_s=plan.predicted.period_s,
        sustained_s=plan.predicted.sustained_period_s,
        limit_s=limit_s,
        limited_by=limited_by,
        observed_limit_s=observed_limit_s,
        observed_limited_by=observed_limited_by,
        observed_s=steady.period_s if steady else seen.period_s,
    )
    tasks = tuple(_task(program, seen, v, called[v]) for v in range(len(program.tasks)))
    processors = {processor.name for processor in plan.processors}
    return RunDocument(
        schema=SCHEMA,
        parapipe=__version__,
        how=how,
        model=plan.model.name,
        platform=plan.platform,
        stages=tuple(tuple(each.name for each in stage.processors) for stage in plan.stages),
        frames=len(record.frames),
        warm_up=seen.warm_up,
        saturated=saturated,
        pace_s=None if saturated else pace_s or plan.predicted.period_s,
        latency=_latency(plan, seen, saturated),
        period=period,
        lanes=tuple(_lane(name, tasks, name in processors, period) for name in program.resources),
        tasks=tasks,
        simulation=simulation,
    )


def warm_up_frames(frames: int, lags: int) -> int:
    """Return how many frames at the beginning do not count.

    A fifth, and at least as many as it takes to fill the pipeline; but two are left where there are
    two, so that there is a period.
    """
    return max(0, min(max(frames // WARM_UP_SHARE, lags), frames - 2))


def _limit(
    program: Program, times_s: Sequence[float] | None = None
) -> tuple[float, tuple[str, ...]]:
    """Return the least seconds between frames, and the lanes that set it.

    Parameters
    ----------
    times_s
        Of each task, in place of what is predicted.
    """
    graph = program.graph
    if times_s is not None:
        graph = replace(graph, time_ps=tuple(map(picoseconds, times_s)))
    limit_ps, circle = graph.bottleneck()
    lanes = tuple(dict.fromkeys(program.tasks[v].resource for v in circle))
    return float(limit_ps / PICOSECONDS), lanes


def _task_of(
    program: Program, record: Record, members: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], int]:
    """Return the task of each span, by lane and name."""
    by_name = {(task.resource, task.name): i for i, task in enumerate(program.tasks)}
    by_operators = {task.operators: i for i, task in enumerate(program.tasks) if task.operators}
    return {
        (lane, name): by_operators[tuple(members[name])] if name in members else by_name[lane, name]
        for lane, name in {(span.resource, span.name) for span in record.spans}
    }


@dataclass(frozen=True, slots=True)
class _Seen:
    """Means over the frames that count; of tasks by their index."""

    warm_up: int
    latencies_s: tuple[float, ...]
    period_s: float | None
    time_s: tuple[float, ...]
    waited: tuple[Wait, ...]


def _seen(program: Program, record: Record, task_of: Mapping[tuple[str, str], int]) -> _Seen:
    warm_up = warm_up_frames(len(record.frames), max(program.graph.lag) + 1)
    times_s: list[list[float]] = [[] for _ in program.tasks]
    waited: list[list[Wait]] = [[] for _ in program.tasks]
    for span in record.spans:
        if span.frame >= warm_up:
            times_s[task_of[span.resource, span.name]].append(span.end_s - span.start_s)
    for (task, frame), wait in waits(program, record, task_of).items():
        if frame >= warm_up:
            waited[task].append(wait)
    counted = record.frames[warm_up:]
    took_s = counted[-1].done_s - counted[0].done_s
    return _Seen(
        warm_up,
        tuple(sorted(frame.done_s - frame.admitted_s for frame in counted)),
        took_s / (len(counted) - 1) if len(counted) > 1 else None,
        tuple(fmean(each) for each in times_s),
        tuple(
            Wait(
                fmean(each.for_input_s for each in some),
                fmean(each.for_room_s for each in some),
                fmean(each.handover_s for each in some),
            )
            for some in waited
        ),
    )


def _latency(plan: Plan, seen: _Seen, saturated: bool) -> LatencyRow:
    latencies_s = seen.latencies_s
    return LatencyRow(
        predicted_s=plan.predicted.latency_s,
        least_s=latencies_s[0],
        mean_s=fmean(latencies_s),
        median_s=median(latencies_s),
        p95_s=latencies_s[ceil(0.95 * len(latencies_s)) - 1],
        most_s=latencies_s[-1],
        holds_queueing=saturated,
    )


def _task(program: Program, seen: _Seen, task: int, name: str) -> TaskRow:
    known, waited = program.tasks[task], seen.waited[task]
    return TaskRow(
        lane=known.resource,
        name=name,
        operators=known.operators,
        predicted_s=program.graph.time_ps[task] / PICOSECONDS,
        observed_s=seen.time_s[task],
        for_input_s=waited.for_input_s,
        for_room_s=waited.for_room_s,
        handover_s=waited.handover_s,
    )


def _lane(name: str, tasks: Sequence[TaskRow], processor: bool, period: PeriodRow) -> LaneRow:
    mine = [task for task in tasks if task.lane == name]
    predicted_s = sum(task.predicted_s for task in mine)
    observed_s = sum(task.observed_s for task in mine)
    return LaneRow(
        name=name,
        kind="processor" if processor else "link",
        predicted_s=predicted_s,
        observed_s=observed_s,
        predicted_utilisation=predicted_s / period.limit_s,
        observed_utilisation=observed_s / period.observed_s if period.observed_s else None,
        for_input_s=sum(task.for_input_s for task in mine),
        for_room_s=sum(task.for_room_s for task in mine),
        handover_s=sum(task.handover_s for task in mine),
    )
