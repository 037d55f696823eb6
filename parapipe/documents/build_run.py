"""Builds the document of a run, real or simulated, from its plan and the record of its frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import Any, Literal

from parapipe.documents.model_runs import model_run_rows, percentile
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
from parapipe.documents.strays import stray_rows
from parapipe.mappings.event_graph import PICOSECONDS, picoseconds
from parapipe.plan.co_run import operator_times_s
from parapipe.plan.mapped import mapping_view
from parapipe.plan.program import Program, Task
from parapipe.plan.schema import Plan
from parapipe.plan.summary import replicas_of, stages_of
from parapipe.runtime.arena import ArenaUse
from parapipe.runtime.record import Record, Span, done_while_admitted
from parapipe.runtime.sessions import ProviderUse
from parapipe.strategies.registry import PLAN
from parapipe.version import __version__

WARM_UP_SHARE = 5  # one in so many
SPREAD_LIMIT = 0.05  # of the middle half of the frames, as a share of their median
SHORTEST_S = 1e-9
MOST_TIMES = 1000  # frames whose times a document holds, task by task
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
    used: Sequence[ProviderUse] | None = None,
    in_arenas: ArenaUse | None = None,
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
    times_s = {name: at.end_s - at.start_s for name, at in mapping_view(plan).placements.items()}
    beside_s = operator_times_s(plan)
    executions = _executions_by_task(program, record, members or {}, warm_up)
    most_times = MOST_TIMES if how == "run" and strategy == PLAN else 0
    tasks = tuple(
        TaskRow(
            **_task_fields(program, i, own, most_times=most_times),
            predicted_s=_predicted_s(program, i, beside_s),
            predicted_operators_s=tuple(times_s[operator] for operator in task.operators),
            own=_own_row(_spans_as_planned(program, task, own), work=task.resource in single)
            if machine
            else None,
        )
        for i, (task, own) in enumerate(zip(program.tasks, executions, strict=True))
    )
    counted = record.frames[warm_up:]
    done_s = done_while_admitted(counted)
    period_s = (done_s[-1] - done_s[0]) / (len(done_s) - 1) if len(done_s) > 1 else None
    between_s = sorted(later - one for one, later in pairwise(done_s))
    limit_s, limited_by = _period_limit(program)
    if beside_s:  # at the plan's period; as fast as frames are taken, others may run beside
        slowed_s, limited_by = _period_limit(program, [task.predicted_s for task in tasks])
        limit_s = max(limit_s, min(slowed_s, plan.predicted.sustained_period_s))
    observed_s = [task.observed_s for task in tasks]
    observed_limit_s, observed_limited_by = _period_limit(program, observed_s)
    period = PeriodRow(
        predicted_s=plan.predicted.period_s,
        sustained_s=plan.predicted.sustained_period_s,
        limit_s=limit_s,
        limited_by=limited_by,
        observed_limit_s=observed_limit_s,
        observed_limited_by=observed_limited_by,
        observed_s=period_s if exact_s is None else exact_s,
        median_s=median(between_s) if between_s else None,
        p95_s=percentile(between_s, 0.95) if between_s else None,
        p99_s=percentile(between_s, 0.99) if between_s else None,
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
            p95_s=percentile(latencies_s, 0.95),
            p99_s=percentile(latencies_s, 0.99),
            most_s=latencies_s[-1],
            holds_queueing=saturated,
        ),
        period=period,
        models=model_run_rows(
            plan,
            members or {task.name: task.operators for task in program.tasks},
            record,
            warm_up,
            period.observed_s,
            seed=arrivals_seed,
        ),
        resources=tuple(
            _resource_row(
                name,
                _planned_shares(names, tasks)
                if strategy == PLAN
                else _observed_means(name, names, tasks, executions),
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
        arenas=_arenas_row(record, in_arenas),
        providers=None if used is None else tuple(map(_provider_row, used)),
        strays=None if used is None else tuple(stray_rows(plan, used, tasks)),
    )


def _provider_row(use: ProviderUse) -> ProviderRow:
    fields = asdict(use)
    return ProviderRow(**{name: fields[name] for name in ProviderRow.model_fields})


def _arenas_row(record: Record, use: ArenaUse | None) -> ArenasRow | None:
    if use is None:
        return None
    return ArenasRow(
        size_bytes=dict(use.size_bytes),
        inside_bytes=use.inside_bytes,
        outside=tuple(
            OutsideRow(why=why, tensors=count, size_bytes=size_bytes)
            for why, (count, size_bytes) in use.outside.items()
        ),
        peak_outside_bytes=record.peak_outside_bytes or 0,
    )


def warm_up_frames(frames: int, lags: int) -> int:
    """Return how many frames at the beginning do not count.

    A fifth, and at least as many as it takes to fill the pipeline; but two are left where there are
    two, so that there is a period.
    """
    return max(0, min(max(frames // WARM_UP_SHARE, lags), frames - 2))


def _period_limit(
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
class _Execution:
    """A task of a frame that counts, and what its resource waited for before, in seconds.

    Of a frame that was split, `span` is from the first begin to the last end of its micro-batches,
    where most of them ran, and `spans` are they.
    """

    span: Span
    spans: tuple[Span, ...]
    for_input_s: float
    for_room_s: float
    handover_s: float


def _executions_by_task(
    program: Program, record: Record, members: Mapping[str, Sequence[str]], warm_up: int
) -> list[list[_Execution]]:
    """Return what was done for the frames that count, by task and frame."""
    named_tasks = {(task.resource, task.name): i for i, task in enumerate(program.tasks)}
    segment_tasks = {task.name: i for i, task in enumerate(program.tasks) if task.operators}
    by_operators = {task.operators: i for i, task in enumerate(program.tasks) if task.operators}
    spans_of: dict[tuple[int, int], list[Span]] = {}
    for span in record.spans:
        operators = members.get(span.name)
        if operators is not None:
            task = by_operators[tuple(operators)]
        else:
            task = named_tasks.get((span.resource, span.name), segment_tasks.get(span.name, -1))
        spans_of.setdefault((task, span.frame), []).append(span)
    merged = {job: _merge_spans(several) for job, several in spans_of.items()}
    waits = _waiting_times(program, record, merged)
    return [
        [
            _Execution(merged[i, frame], tuple(spans_of[i, frame]), *waits[i, frame])
            for frame in range(warm_up, len(record.frames))
        ]
        for i in range(len(program.tasks))
    ]


def _merge_spans(spans: Sequence[Span]) -> Span:
    """Return one span for those of all micro-batches."""
    if len(spans) == 1:
        return spans[0]
    most = Counter(span.resource for span in spans).most_common(1)[0][0]
    start_s, end_s = min(span.start_s for span in spans), max(span.end_s for span in spans)
    return replace(spans[0], resource=most, start_s=start_s, end_s=end_s, work_s=None)


def _execution_s(execution: _Execution) -> float:
    return sum(span.end_s - span.start_s for span in execution.spans)


def _task_fields(
    program: Program, i: int, executions: Sequence[_Execution], *, most_times: int
) -> dict[str, Any]:
    """Return what is said of a task: means over the frames that count, and times of the last."""
    task, last = program.tasks[i], executions[len(executions) - min(most_times, len(executions)) :]
    return {
        "resource": task.resource,
        "name": executions[0].span.name,
        "operators": task.operators,
        "observed_s": fmean(map(_execution_s, executions)),
        **{wait: fmean(getattr(each, wait) for each in executions) for wait in _WAITS},
        "elsewhere": 1 - len(_spans_as_planned(program, task, executions)) / len(executions),
        "times_s": tuple(round(_execution_s(each), 9) for each in last),
        "handovers_s": tuple(round(each.handover_s, 9) for each in last),
    }


def _predicted_s(program: Program, i: int, beside_s: Mapping[str, float]) -> float:
    """Return what a plan predicts for a task, beside what runs with it where that is stated."""
    operators = program.tasks[i].operators
    if beside_s and operators:
        return sum(beside_s[operator] for operator in operators)
    return program.graph.time_ps[i] / PICOSECONDS


def _spans_as_planned(program: Program, task: Task, executions: Sequence[_Execution]) -> list[Span]:
    """Return what the plan's processor of a task did of it."""
    return [each.span for each in executions if each.span.resource in program.processors(task)]


def _own_row(spans: Sequence[Span], *, work: bool) -> OwnRow | None:
    """Return what a task took by itself: its work if that is asked for and known."""
    if not spans:
        return None
    times_s = sorted(
        span.work_s if work and span.work_s is not None else span.end_s - span.start_s
        for span in spans
    )
    time_s, quarter = max(median(times_s), SHORTEST_S), len(times_s) // 4
    return OwnRow(
        time_s=time_s,
        spread=(times_s[-1] - times_s[0]) / time_s,
        noisy=times_s[-1 - quarter] - times_s[quarter] > SPREAD_LIMIT * time_s,
    )


def _waiting_times(
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
    waits: dict[tuple[int, int], tuple[float, float, float]] = {}
    for (task, frame), span in sorted(spans.items(), key=lambda it: (it[1].start_s, it[1].end_s)):
        start_s = span.start_s
        free_s = min(end_s.get(span.resource, 0.0), start_s)
        end_s[span.resource] = span.end_s
        inputs_s = [spans[u, frame].end_s for u in makers.get(task, ())]
        if task in program.first:
            inputs_s.append(record.frames[frame].admitted_s)
        readers = room.get(task, ())
        rooms_s = [spans[v, frame - slots].end_s for v, slots in readers if frame >= slots]
        input_s = min(start_s, max([free_s, *inputs_s]))
        room_s = min(start_s, max([input_s, *rooms_s]))
        waits[task, frame] = input_s - free_s, room_s - input_s, start_s - room_s
    return waits


def _planned_shares(resources: Sequence[str], tasks: Sequence[TaskRow]) -> dict[str, float]:
    """Return what one of some resources that take turns does for a frame, as the plan has it."""
    own = [task for task in tasks if task.resource == resources[0]]
    names = ("predicted_s", "observed_s", *_WAITS)
    return {each: sum(getattr(task, each) for task in own) / len(resources) for each in names}


def _observed_means(
    name: str,
    resources: Sequence[str],
    tasks: Sequence[TaskRow],
    executions: Sequence[Sequence[_Execution]],
) -> dict[str, float]:
    """Return what the plan has a resource do for a frame, and what it did as a strategy decided."""
    frames = len(executions[0])
    mine = [each for some in executions for each in some if each.span.resource == name]
    spans = (span for own in executions for each in own for span in each.spans)
    return {
        "predicted_s": _planned_shares(resources, tasks)["predicted_s"],
        "observed_s": sum(s.end_s - s.start_s for s in spans if s.resource == name) / frames,
        **{wait: sum(getattr(each, wait) for each in mine) / frames for wait in _WAITS},
    }


def _resource_row(
    name: str, totals: Mapping[str, float], processor: bool, period: PeriodRow
) -> ResourceRow:
    observed_s = period.observed_s
    return ResourceRow(
        name=name,
        kind="processor" if processor else "link",
        predicted_utilisation=totals["predicted_s"] / period.limit_s,
        observed_utilisation=totals["observed_s"] / observed_s if observed_s else None,
        **totals,
    )
