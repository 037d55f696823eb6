"""Makes the document of a run, real or simulated, from what was predicted and what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import ceil
from statistics import fmean, median
from typing import Any, Literal

from parapipe.documents.models_served import models_served
from parapipe.documents.run_schema import (
    SCHEMA,
    ArenasRow,
    LatencyRow,
    MachineRow,
    OutsideRow,
    OwnRow,
    PeriodRow,
    ProviderRow,
    ResourceRow,
    RunDocument,
    SimulationRow,
    TaskRow,
)
from parapipe.mappings.event_graph import PICOSECONDS, picoseconds
from parapipe.plan.program import Program, Task
from parapipe.plan.schema import Plan
from parapipe.plan.summary import replicas_of, stages_of
from parapipe.runtime.arena_use import InArenas
from parapipe.runtime.record import Record, Span, done_while_admitted
from parapipe.runtime.sessions import Used
from parapipe.strategies.registry import PLAN
from parapipe.version import __version__

WARM_UP_SHARE = 5  # one in so many
SPREAD_LIMIT = 0.05  # of the middle half of the frames, as a share of their median
SHORTEST_S = 1e-9
MOST_KEPT = 1000  # frames whose times a document holds, task by task
_WAITS = ("for_input_s", "for_room_s", "handover_s")


def run_document(
    plan: Plan,
    program: Program,
    record: Record,
    *,
    how: Literal["run", "simulation"],
    saturated: bool,
    pace_s: float | None = None,
    strategy: str = PLAN,
    members: Mapping[str, Sequence[str]] | None = None,
    machine: MachineRow | None = None,
    simulation: SimulationRow | None = None,
    exact_s: float | None = None,
    used: Sequence[Used] | None = None,
    in_arenas: InArenas | None = None,
    arrivals_seed: int | None = None,
) -> RunDocument:
    """Write a run down.

    Parameters
    ----------
    program
        What the executor did, with its units and queues.
    record
        At least one frame, and a span for each task and frame.
    pace_s
        Seconds between frames that are admitted one at a time; the predicted period if not given.
    strategy
        What decided who did what.
    members
        Ids of the operators of each span that is a segment, where spans have other names than the
        program's tasks.
    machine
        Of a run.
    exact_s
        Of a simulation, seconds between frames in the long run, where they are known exactly.
    used
        Of a run, what ran each processor.
    in_arenas
        Of a run with arenas, what lies in them.
    arrivals_seed
        Of frames of several models that come at random; None if none do.
    """
    warm_up = warm_up_frames(len(record.frames), max(program.graph.lag) + 1)
    single = {name for name, cores in machine.cores.items() if len(cores) == 1} if machine else ()
    times_s = {
        at.operator: at.end_s - at.start_s
        for stage in plan.stages
        for processor in stage.processors
        for at in processor.operators
    }
    did = _did(program, record, members or {}, warm_up)
    tasks = tuple(
        TaskRow(
            **_task(program, i, done, kept=MOST_KEPT if how == "run" and strategy == PLAN else 0),
            predicted_operators_s=tuple(times_s[operator] for operator in task.operators),
            own=_own(_planned(program, task, done), work=task.resource in single)
            if machine
            else None,
        )
        for i, (task, done) in enumerate(zip(program.tasks, did, strict=True))
    )
    counted = record.frames[warm_up:]
    done_s = done_while_admitted(counted)
    seen_s = (done_s[-1] - done_s[0]) / (len(done_s) - 1) if len(done_s) > 1 else None
    between_s = sorted(later - one for one, later in pairwise(done_s))
    limit_s, limited_by = _limit(program)
    observed_limit_s, observed_limited_by = _limit(program, [task.observed_s for task in tasks])
    period = PeriodRow(
        predicted_s=plan.predicted.period_s,
        sustained_s=plan.predicted.sustained_period_s,
        limit_s=limit_s,
        limited_by=limited_by,
        observed_limit_s=observed_limit_s,
        observed_limited_by=observed_limited_by,
        observed_s=seen_s if exact_s is None else exact_s,
        median_s=median(between_s) if between_s else None,
        p95_s=kept(between_s, 0.95) if between_s else None,
        p99_s=kept(between_s, 0.99) if between_s else None,
    )
    latencies_s = sorted(frame.done_s - frame.admitted_s for frame in counted)
    processors = {processor.name for processor in plan.processors}
    return RunDocument(
        schema=SCHEMA,
        parapipe=__version__,
        how=how,
        model=plan.model.name,
        model_sha256=plan.model.sha256,
        platform=plan.platform,
        stages=stages_of(plan),
        replicas=replicas_of(plan),
        frames=len(record.frames),
        warm_up=warm_up,
        saturated=saturated,
        pace_s=None if saturated else pace_s or plan.predicted.period_s,
        latency=LatencyRow(
            predicted_s=plan.predicted.latency_s,
            least_s=latencies_s[0],
            mean_s=fmean(latencies_s),
            median_s=median(latencies_s),
            p95_s=kept(latencies_s, 0.95),
            p99_s=kept(latencies_s, 0.99),
            most_s=latencies_s[-1],
            holds_queueing=saturated,
        ),
        period=period,
        models=models_served(
            plan,
            members or {task.name: task.operators for task in program.tasks},
            record,
            warm_up,
            period.observed_s,
            seed=arrivals_seed,
        ),
        resources=tuple(
            _resource(
                name,
                _shares(names, tasks) if strategy == PLAN else _done_by(name, names, tasks, did),
                name in processors,
                period,
            )
            for names in program.in_turn
            for name in names
        ),
        tasks=tasks,
        split=plan.model.split.rules if plan.model.split else (),
        strategy=strategy,
        machine=machine,
        simulation=simulation,
        peak_tensor_bytes=record.peak_tensor_bytes,
        arenas=_arenas(record, in_arenas),
        providers=None if used is None else tuple(ProviderRow(**asdict(each)) for each in used),
    )


def kept(times_s: Sequence[float], share: float) -> float:
    """Return the least of some ascending times that is not exceeded in a share of them."""
    return times_s[ceil(share * len(times_s)) - 1]


def _arenas(record: Record, found: InArenas | None) -> ArenasRow | None:
    if found is None:
        return None
    return ArenasRow(
        size_bytes=dict(found.size_bytes),
        inside_bytes=found.inside_bytes,
        outside=tuple(
            OutsideRow(why=why, tensors=count, size_bytes=size_bytes)
            for why, (count, size_bytes) in found.outside.items()
        ),
        peak_outside_bytes=record.peak_outside_bytes or 0,
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
    """Return the least seconds between frames, and the resources that set it.

    `times_s` are those of each task, in place of what is predicted.
    """
    graph = program.graph
    if times_s is not None:
        graph = replace(graph, time_ps=tuple(map(picoseconds, times_s)))
    limit_ps, circle = graph.bottleneck()
    resources = tuple(dict.fromkeys(program.tasks[v].resource for v in circle))
    return float(limit_ps / PICOSECONDS), resources


@dataclass(frozen=True, slots=True)
class _Done:
    """A task of a frame that counts, and what its resource waited for before, in seconds.

    Of a frame that was split, `span` is from the first begin to the last end of its micro-batches,
    where most of them ran, and `spans` are they.
    """

    span: Span
    spans: tuple[Span, ...]
    for_input_s: float
    for_room_s: float
    handover_s: float


def _did(
    program: Program, record: Record, members: Mapping[str, Sequence[str]], warm_up: int
) -> list[list[_Done]]:
    """Return what was done for the frames that count, by task and frame."""
    moves = {(task.resource, task.name): i for i, task in enumerate(program.tasks)}
    works = {task.name: i for i, task in enumerate(program.tasks) if task.operators}
    by_operators = {task.operators: i for i, task in enumerate(program.tasks) if task.operators}
    found: dict[tuple[int, int], list[Span]] = {}
    for span in record.spans:
        held = members.get(span.name)
        if held is not None:
            task = by_operators[tuple(held)]
        else:
            task = moves.get((span.resource, span.name), works.get(span.name, -1))
        found.setdefault((task, span.frame), []).append(span)
    spans = {job: _whole(several) for job, several in found.items()}
    waits = _waits(program, record, spans)
    return [
        [
            _Done(spans[i, frame], tuple(found[i, frame]), *waits[i, frame])
            for frame in range(warm_up, len(record.frames))
        ]
        for i in range(len(program.tasks))
    ]


def _whole(spans: Sequence[Span]) -> Span:
    """Return one span for those of all micro-batches."""
    if len(spans) == 1:
        return spans[0]
    most = Counter(span.resource for span in spans).most_common(1)[0][0]
    start_s, end_s = min(span.start_s for span in spans), max(span.end_s for span in spans)
    return replace(spans[0], resource=most, start_s=start_s, end_s=end_s, work_s=None)


def _took_s(done: _Done) -> float:
    return sum(span.end_s - span.start_s for span in done.spans)


def _task(program: Program, i: int, done: Sequence[_Done], *, kept: int) -> dict[str, Any]:
    """Return what is said of a task: means over the frames that count, and times of the last."""
    known, last = program.tasks[i], done[len(done) - min(kept, len(done)) :]
    return {
        "resource": known.resource,
        "name": done[0].span.name,
        "operators": known.operators,
        "predicted_s": program.graph.time_ps[i] / PICOSECONDS,
        "observed_s": fmean(map(_took_s, done)),
        **{wait: fmean(getattr(each, wait) for each in done) for wait in _WAITS},
        "elsewhere": 1 - len(_planned(program, known, done)) / len(done),
        "times_s": tuple(round(_took_s(each), 9) for each in last),
        "handovers_s": tuple(round(each.handover_s, 9) for each in last),
    }


def _planned(program: Program, task: Task, done: Sequence[_Done]) -> list[Span]:
    """Return what the plan's processor of a task did of it."""
    return [each.span for each in done if each.span.resource in program.processors(task)]


def _own(counted: Sequence[Span], *, work: bool) -> OwnRow | None:
    """Return what a task took by itself: its work if that is asked for and known."""
    if not counted:
        return None
    times_s = sorted(
        span.work_s if work and span.work_s is not None else span.end_s - span.start_s
        for span in counted
    )
    time_s, quarter = max(median(times_s), SHORTEST_S), len(times_s) // 4
    return OwnRow(
        time_s=time_s,
        spread=(times_s[-1] - times_s[0]) / time_s,
        noisy=times_s[-1 - quarter] - times_s[quarter] > SPREAD_LIMIT * time_s,
    )


def _waits(
    program: Program, record: Record, spans: Mapping[tuple[int, int], Span]
) -> dict[tuple[int, int], tuple[float, float, float]]:
    """Return what each task waited for, by task and frame, in idle seconds of its resource.

    First until the last tensor that the task reads was made, and its frame admitted; from then on
    until the last slot that it needs was free; from then on until it began.
    """
    makers: dict[int, list[int]] = {}
    for u, v in dict.fromkeys((*((u, v) for u, v, _ in program.graph.waits), *program.needs)):
        makers.setdefault(v, []).append(u)
    room: dict[int, list[tuple[int, int]]] = {}
    for u, v, slots in program.graph.channels:
        room.setdefault(u, []).append((v, slots))
    end_s: dict[str, float] = {}
    found: dict[tuple[int, int], tuple[float, float, float]] = {}
    for (task, frame), span in sorted(spans.items(), key=lambda it: (it[1].start_s, it[1].end_s)):
        start_s = span.start_s
        free_s = min(end_s.get(span.resource, 0.0), start_s)
        end_s[span.resource] = span.end_s
        inputs_s = [spans[u, frame].end_s for u in makers.get(task, ())]
        if task in program.first:
            inputs_s.append(record.frames[frame].admitted_s)
        freed = room.get(task, ())
        rooms_s = [spans[v, frame - slots].end_s for v, slots in freed if frame >= slots]
        input_s = min(start_s, max([free_s, *inputs_s]))
        room_s = min(start_s, max([input_s, *rooms_s]))
        found[task, frame] = input_s - free_s, room_s - input_s, start_s - room_s
    return found


def _shares(turns: Sequence[str], tasks: Sequence[TaskRow]) -> dict[str, float]:
    """Return what one of some resources that take turns does for a frame, as the plan has it."""
    mine = [task for task in tasks if task.resource == turns[0]]
    names = ("predicted_s", "observed_s", *_WAITS)
    return {each: sum(getattr(task, each) for task in mine) / len(turns) for each in names}


def _done_by(
    name: str, turns: Sequence[str], tasks: Sequence[TaskRow], did: Sequence[Sequence[_Done]]
) -> dict[str, float]:
    """Return what the plan has a resource do for a frame, and what it did as a strategy decided."""
    frames = len(did[0])
    mine = [each for done in did for each in done if each.span.resource == name]
    spans = (span for done in did for each in done for span in each.spans)
    return {
        "predicted_s": _shares(turns, tasks)["predicted_s"],
        "observed_s": sum(s.end_s - s.start_s for s in spans if s.resource == name) / frames,
        **{wait: sum(getattr(each, wait) for each in mine) / frames for wait in _WAITS},
    }


def _resource(
    name: str, totals: Mapping[str, float], processor: bool, period: PeriodRow
) -> ResourceRow:
    return ResourceRow(
        name=name,
        kind="processor" if processor else "link",
        predicted_utilisation=totals["predicted_s"] / period.limit_s,
        observed_utilisation=(
            totals["observed_s"] / period.observed_s if period.observed_s else None
        ),
        **totals,
    )
