"""A run beside what was predicted: what `parapipe run --json` and `simulate --json` print.

Published as JSON Schema. A resource is a processor, or a link that transfers share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import ceil
from statistics import fmean, median
from typing import Literal

from pydantic import Field

from parapipe.formats.record import Row
from parapipe.pipeline.sustained import PICOSECONDS, picoseconds
from parapipe.plan.program import Program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Record, Span
from parapipe.runtime.used import Used
from parapipe.version import __version__

SCHEMA: Literal["parapipe/run/2"] = "parapipe/run/2"
WARM_UP_SHARE = 5  # one in so many


class LatencyRow(Row):
    """Seconds of a frame from its admission to the end of its last task."""

    predicted_s: float
    """The sum of the stages, for frames admitted once per period."""
    least_s: float
    """Least of the frames counted."""
    mean_s: float
    """Mean."""
    median_s: float
    """Median."""
    p95_s: float
    """No more than 5 % of the frames take longer."""
    most_s: float
    """Longest."""
    holds_queueing: bool
    """Whether frames were admitted as fast as they were taken, so that it holds the time for which
    they queued."""


class PeriodRow(Row):
    """Seconds from frame to frame."""

    predicted_s: float
    """The longest stage."""
    sustained_s: float
    """What the plan says can be sustained, operator by operator."""
    limit_s: float
    """The same for the units and the queues of this run: exactly what waits in a circle, or the
    busiest resource, allow if every task takes what is predicted."""
    limited_by: tuple[str, ...]
    """The resources of that circle; one if it is just the work of that resource."""
    observed_limit_s: float
    """As `limit_s`, if every task takes what was observed on average."""
    observed_limited_by: tuple[str, ...]
    """The resources of that circle."""
    observed_s: float | None
    """Mean of the frames counted; of a simulation that recurs, the exact one. Null for a single
    frame."""


class ResourceRow(Row):
    """A processor, or a link that transfers share. Seconds are means per frame."""

    name: str
    """Its name."""
    kind: Literal["processor", "link"]
    """Which of the two."""
    predicted_s: float
    """Work for a frame, as predicted."""
    observed_s: float
    """Work for a frame, as observed."""
    predicted_utilisation: float
    """Predicted work over the limit of the period."""
    observed_utilisation: float | None
    """Observed work over the observed period."""
    for_input_s: float
    """Idle, waiting for a tensor to be made or a frame to arrive."""
    for_room_s: float
    """Idle, waiting for a slot in a full queue."""
    handover_s: float
    """Idle though its next task had all it needed: transfers, and what the executor takes."""


class TaskRow(Row):
    """An operator, a segment, or a transfer that occupies a resource; means per frame."""

    resource: str
    """Name of the processor or link that does it."""
    name: str
    """Its name in the trace."""
    operators: tuple[str, ...]
    """Ids of the operators that it runs; none for a transfer."""
    predicted_s: float
    """As predicted."""
    observed_s: float
    """As observed."""
    for_input_s: float
    """Its resource waited for what it reads."""
    for_room_s: float
    """Its resource waited for room for what it makes."""
    handover_s: float
    """Its resource was idle for other reasons."""


class SteadyRow(Row):
    """A simulation that has come to repeat itself."""

    period_s: float
    """Seconds between frames, for ever."""
    frames: int
    """After so many frames all starts recur."""
    since: int
    """Number of the first frame of which that is true, from 0."""


class SimulationRow(Row):
    """How a plan was simulated."""

    unit: Literal["operator", "segment"]
    """What a processor runs at one go."""
    queue: int | None
    """Slots of every channel; null for those of the plan."""
    jitter: float
    """Standard deviation of times, as a share of them."""
    seed: int
    """Of the jitter."""
    contention: float | None
    """Lengthening of a task, as a share of its time, while others together move as many bytes as
    the memory can; null where processors don't slow each other down."""
    steady: SteadyRow | None
    """Null with chance, contention or paced frames, and where frames were too few to show it."""


class ProviderRow(Row):
    """What ran a processor's segments."""

    processor: str
    """Its name."""
    provider: str
    """ONNX Runtime's execution provider."""
    options: dict[str, str]
    """What it was given."""
    nodes: dict[str, int] | None
    """How many nodes each provider took; the CPU's kernels run what others leave. Null where ONNX
    Runtime is older than 1.24 and does not tell."""
    substitute: str | None
    """Why it stands in for the one that the platform names; null if it does not."""


class RunDocument(Row):
    """A run of a plan, real or simulated, beside what was predicted."""

    schema_: Literal["parapipe/run/2"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that made it."""
    how: Literal["run", "simulation"]
    """Whether frames were executed or simulated."""
    model: str
    """The plan's model."""
    platform: str
    """The platform that the plan was made for."""
    stages: tuple[tuple[str, ...], ...]
    """Names of the processors of each stage."""
    frames: int
    """Frames that went through."""
    warm_up: int
    """The first so many, which count in no figure but these two."""
    saturated: bool
    """Whether frames were admitted as fast as they were taken, not one at a time."""
    pace_s: float | None
    """Seconds from one frame's admission to the next one's; null if saturated."""
    latency: LatencyRow
    """From admission to end."""
    period: PeriodRow
    """From frame to frame; throughput is its reciprocal."""
    resources: tuple[ResourceRow, ...]
    """Processors as the plan lists them, then links."""
    tasks: tuple[TaskRow, ...]
    """Resource after resource, each in its order."""
    simulation: SimulationRow | None = None
    """Of a simulation, how it was made."""
    providers: tuple[ProviderRow, ...] | None = None
    """Of a run, what ran each processor."""


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
    used: Sequence[Used] | None = None,
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
    members
        Ids of the operators of each span that is a segment, where spans have other names than the
        program's tasks.
    used
        Of a run, what ran each processor.
    """
    warm_up = warm_up_frames(len(record.frames), max(program.graph.lag) + 1)
    tasks = tuple(_tasks(program, record, members or {}, warm_up))
    counted = record.frames[warm_up:]
    took_s = counted[-1].done_s - counted[0].done_s
    seen_s = took_s / (len(counted) - 1) if len(counted) > 1 else None
    limit_s, limited_by = _limit(program)
    observed_limit_s, observed_limited_by = _limit(program, [task.observed_s for task in tasks])
    steady = simulation.steady if simulation else None
    period = PeriodRow(
        predicted_s=plan.predicted.period_s,
        sustained_s=plan.predicted.sustained_period_s,
        limit_s=limit_s,
        limited_by=limited_by,
        observed_limit_s=observed_limit_s,
        observed_limited_by=observed_limited_by,
        observed_s=steady.period_s if steady else seen_s,
    )
    latencies_s = sorted(frame.done_s - frame.admitted_s for frame in counted)
    processors = {processor.name for processor in plan.processors}
    return RunDocument(
        schema=SCHEMA,
        parapipe=__version__,
        how=how,
        model=plan.model.name,
        platform=plan.platform,
        stages=tuple(tuple(each.name for each in stage.processors) for stage in plan.stages),
        frames=len(record.frames),
        warm_up=warm_up,
        saturated=saturated,
        pace_s=None if saturated else pace_s or plan.predicted.period_s,
        latency=LatencyRow(
            predicted_s=plan.predicted.latency_s,
            least_s=latencies_s[0],
            mean_s=fmean(latencies_s),
            median_s=median(latencies_s),
            p95_s=latencies_s[ceil(0.95 * len(latencies_s)) - 1],
            most_s=latencies_s[-1],
            holds_queueing=saturated,
        ),
        period=period,
        resources=tuple(
            _resource(name, tasks, name in processors, period) for name in program.resources
        ),
        tasks=tasks,
        simulation=simulation,
        providers=None if used is None else tuple(ProviderRow(**asdict(each)) for each in used),
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


def _tasks(
    program: Program, record: Record, members: Mapping[str, Sequence[str]], warm_up: int
) -> Iterator[TaskRow]:
    """Yield the tasks, with means over the frames that count."""
    by_name = {(task.resource, task.name): i for i, task in enumerate(program.tasks)}
    by_operators = {task.operators: i for i, task in enumerate(program.tasks) if task.operators}
    spans: dict[tuple[int, int], Span] = {}
    for span in record.spans:
        held = members.get(span.name)
        task = by_name[span.resource, span.name] if held is None else by_operators[tuple(held)]
        spans[task, span.frame] = span
    waits = _waits(program, record, spans)
    for i, known in enumerate(program.tasks):
        counted = [spans[i, frame] for frame in range(warm_up, len(record.frames))]
        idle_s = zip(*(waits[i, span.frame] for span in counted), strict=True)
        for_input_s, for_room_s, handover_s = map(fmean, idle_s)
        yield TaskRow(
            resource=known.resource,
            name=counted[0].name,
            operators=known.operators,
            predicted_s=program.graph.time_ps[i] / PICOSECONDS,
            observed_s=fmean(span.end_s - span.start_s for span in counted),
            for_input_s=for_input_s,
            for_room_s=for_room_s,
            handover_s=handover_s,
        )


def _waits(
    program: Program, record: Record, spans: Mapping[tuple[int, int], Span]
) -> dict[tuple[int, int], tuple[float, float, float]]:
    """Return what each task waited for, by task and frame, in idle seconds of its resource.

    First until the last tensor that the task reads was made, and its frame admitted; from then on
    until the last slot that it needs was free; from then on until it began.
    """
    makers: dict[int, list[int]] = {}
    for u, v, _ in program.graph.waits:
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


def _resource(
    name: str, tasks: Sequence[TaskRow], processor: bool, period: PeriodRow
) -> ResourceRow:
    mine = [task for task in tasks if task.resource == name]
    shared = ("predicted_s", "observed_s", "for_input_s", "for_room_s", "handover_s")
    totals = {each: sum(getattr(task, each) for task in mine) for each in shared}
    return ResourceRow(
        name=name,
        kind="processor" if processor else "link",
        predicted_utilisation=totals["predicted_s"] / period.limit_s,
        observed_utilisation=(
            totals["observed_s"] / period.observed_s if period.observed_s else None
        ),
        **totals,
    )
