"""A plan is simulated: frames go through it as they would through an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from parapipe.errors import SimulationError
from parapipe.files.mistakes import listed
from parapipe.mappings.event_graph import PICOSECONDS, picoseconds
from parapipe.mappings.frame_replay import (
    Admission,
    Replay,
    ReplayTimes,
    Slowdown,
    StuckError,
)
from parapipe.mappings.steady_state import (
    Recurrence,
    Steady,
    recurrence,
    slowest_pace,
    steady,
)
from parapipe.plan.co_run import law_of, slowdowns_of
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Arrow, Frame, Record, Span
from parapipe.simulate.variation import Contention, MeasuredTimes, Memory, RandomFactors

WAITING = 2


@dataclass(frozen=True, slots=True)
class Simulation:
    """What was simulated and what came of it.

    Parameters
    ----------
    program
        The plan's tasks.
    record
        What every resource did.
    steady
        How frames follow each other for ever; None with chance, contention or paced frames, and
        where the frames were too few to show it.
    pace_ps
        Picoseconds between frames in the long run, exactly; None with chance, contention or paced
        frames, and of too few frames.
    replayed
        Starts and ends by task and frame, hand-overs of a run included in the work; None where a
        strategy decided.
    """

    program: Program
    record: Record
    steady: Steady | None
    replayed: ReplayTimes | None = None
    pace_ps: Fraction | None = None

    @property
    def pace_s(self) -> float | None:
        """The same in seconds."""
        return None if self.pace_ps is None else float(self.pace_ps / PICOSECONDS)


def simulate(
    plan: Plan,
    *,
    frames: int,
    queue: int | None = None,
    luck: RandomFactors | None = None,
    saturate: bool = False,
    pace_s: float | None = None,
    memory: Memory | None = None,
    unit: Unit = "operator",
    measured: MeasuredTimes | None = None,
) -> Simulation:
    """Send frames through a plan.

    Parameters
    ----------
    plan
        A plan that `verify_plan` accepts.
    queue
        Slots of every channel, in place of the plan's; and frames that wait for admission.
    luck
        What times are multiplied by; all takes what was predicted if not given.
    saturate
        Admit frames as fast as they are taken and as the memory serves them; otherwise one each
        `pace_s`.
    pace_s
        Seconds between frames, if the memory serves them as fast; the predicted period if not
        given.
    memory
        Shared by the processors, which slow each other down; by the plan's own law if not given, or
        not at all if it states none. Times of a run hold that already.
    unit
        What a processor runs at one go.
    measured
        Times of a run of this plan, in place of the predicted ones; unit is that of the run.

    Raises
    ------
    SimulationError
        If frames wait for each other in a circle, since channels have too few slots.
    """
    tasks = measured.program(plan, queue) if measured else program(plan, unit=unit, queue=queue)
    interval_ps = _interval_ps(plan, tasks, None if saturate else pace_s or plan.predicted.period_s)
    slowdown: Slowdown | None = None
    if memory:
        slowdown = Contention(plan, tasks, memory).slowdown
    elif not measured and (law := law_of(plan)):
        slowdown = slowdowns_of(plan, tasks, law).of
    admission = Admission(frozenset(tasks.first), interval_ps, queue or WAITING)
    try:
        replayed = Replay(
            tasks.graph,
            frames,
            admission,
            work=_measured_work(tasks, measured, luck) if measured else _varied_work(tasks, luck),
            # a run's hand-overs are part of what its tasks take
            delay=(lambda _wait, _frame: 0) if measured else _varied_delay(tasks, luck),
            slowdown=slowdown,
        ).run()
    except StuckError as stuck:
        waiting = listed([f"'{tasks.tasks[v].name}' for frame {n}" for v, n in stuck.waiting])
        slots = f"{queue} slots" if queue else "the plan's slots"
        raise SimulationError(
            f"'{plan.model.name}' on '{plan.platform}' is blocked with {slots} in every "
            f"channel: tasks wait for each other in a circle ({waiting}); give it a longer queue"
        ) from stuck
    recurs = pace_ps = None
    if saturate and luck is None and memory is None and measured is None:
        if slowdown:
            found = recurrence(tasks.graph, admission, slowdown)
            recurs, pace_ps = _steady_of(found), found.period_ps
        else:
            recurs = steady(tasks.graph, replayed.start_ps)
            slowest = None if recurs else slowest_pace(tasks.graph, replayed.start_ps)
            pace_ps = recurs.period_ps if recurs else slowest
    memory_s = 0.0 if measured else plan.predicted.memory_s or 0.0
    record = _replay_record(tasks, replayed, frames, measured, memory_s)
    return Simulation(tasks, record, recurs, replayed, pace_ps)


def _interval_ps(plan: Plan, tasks: Program, pace_s: float | None) -> int | None:
    """Return the picoseconds between frames; None admits them as fast as they are taken."""
    memory_s = plan.predicted.memory_s or 0.0
    if pace_s is not None:
        return picoseconds(max(pace_s, memory_s))
    memory_ps = picoseconds(memory_s)
    return memory_ps if memory_ps and memory_ps > tasks.graph.period_ps() else None


def _steady_of(found: Recurrence) -> Steady | None:
    if not found.exact:
        return None
    return Steady(found.period_ps, found.frames, max(spans[0].frame for spans in found.spans))


def _measured_work(
    tasks: Program, measured: MeasuredTimes, luck: RandomFactors | None
) -> Callable[[int, int], int]:
    """Return what tasks took in the frames of a run, hand-overs included: they come first."""

    def work(i: int, frame: int) -> int:
        took_s = measured.took_s(i, frame)
        if luck:
            took_s *= luck.of_processor(tasks.processor(tasks.tasks[i], frame), frame)
        return picoseconds(measured.handover_s(i, frame)) + picoseconds(took_s)

    return work


def _varied_work(tasks: Program, luck: RandomFactors | None) -> Callable[[int, int], int] | None:
    if luck is None:
        return None

    def work(i: int, frame: int) -> int:
        task = tasks.tasks[i]
        factor = luck.of_processor(tasks.processor(task, frame), frame)
        lucky = luck.of(f"{task.name} on {task.resource}", frame) * factor
        return round(tasks.graph.time_ps[i] * lucky)

    return work


def _varied_delay(tasks: Program, luck: RandomFactors | None) -> Callable[[int, int], int] | None:
    if luck is None:
        return None
    # Readers on one processor share a transfer, and so its luck.
    names = [
        f"{tasks.tasks[u].name} to {tasks.tasks[v].resource} in {delay_ps}"
        for u, v, delay_ps in tasks.graph.waits
    ]
    return lambda wait, frame: round(tasks.graph.waits[wait][2] * luck.of(names[wait], frame))


def _replay_record(
    tasks: Program,
    replayed: ReplayTimes,
    frames: int,
    measured: MeasuredTimes | None,
    memory_s: float,
) -> Record:
    """Return the record of a replay, in which no frame is done before the memory has served it."""
    times = zip(tasks.tasks, replayed.start_ps, replayed.end_ps, strict=True)
    spans = tuple(
        Span(
            tasks.processor(task, frame),
            task.name,
            frame,
            start_ps / PICOSECONDS + (measured.handover_s(i, frame) if measured else 0.0),
            end_ps / PICOSECONDS,
        )
        for i, (task, starts, ends) in enumerate(times)
        for frame, (start_ps, end_ps) in enumerate(zip(starts, ends, strict=True))
    )
    served_ps = picoseconds(memory_s)
    passed = tuple(
        Frame(
            frame,
            admitted_ps / PICOSECONDS,
            max(served_ps + admitted_ps, *(ends[frame] for ends in replayed.end_ps)) / PICOSECONDS,
        )
        for frame, admitted_ps in enumerate(replayed.admitted_ps)
    )
    return record_of(tasks, spans, passed)


def record_of(tasks: Program, spans: Iterable[Span], frames: tuple[Frame, ...]) -> Record:
    """Return what was done to some frames as a record."""
    return Record(
        resources=tasks.resources,
        spans=tuple(sorted(spans, key=lambda span: (span.start_s, span.end_s))),
        arrows=tuple(
            Arrow(each.tensor, maker.resource, maker.name, reader.resource, reader.name)
            for each in tasks.handovers
            for maker, reader in [(tasks.tasks[each.producer], tasks.tasks[each.consumer])]
        ),
        frames=frames,
        first_of={name: first for first, names in tasks.replicas.items() for name in names},
    )
