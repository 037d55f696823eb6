"""A plan's work is simulated as a strategy decides: the engine on a simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from parapipe.errors import SimulationError, StrategyError
from parapipe.mappings.event_graph import picoseconds
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Frame, Span, as_decided
from parapipe.simulate.priced_work import NOT_SPLIT, Costs, with_delays, work_of
from parapipe.simulate.simulation import WAITING, Simulation, record_of
from parapipe.simulate.variation import RandomFactors
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.engine import Engine, Moves
from parapipe.strategies.failures import begin_call, end_call
from parapipe.strategies.joined import joined_work, part_of_plan
from parapipe.strategies.strategy import Strategy, cut_of, name_of
from parapipe.strategies.work import Job, Work

# What a job really takes on a processor, as a multiple of what is predicted.
TimeFactor: TypeAlias = Callable[[Job, int], float]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How frames are admitted.

    Parameters
    ----------
    interval_s
        Seconds between frames; None admits them as fast as they are taken.
    waiting
        Then so many frames are admitted that no task has begun.
    """

    interval_s: float | None
    waiting: int


class WaitsForeverError(Exception):
    """A strategy lets all processors wait though frames are left."""


def strategy_replay(
    work: Work,
    strategy: type[Strategy],
    name: str,
    frames: int,
    arrivals: Arrivals,
    *,
    took: TimeFactor | None = None,
    moves: Moves | None = None,
) -> tuple[tuple[Span, ...], tuple[Frame, ...]]:
    """Send frames through what a strategy decides; return what was done, and the frames.

    Parameters
    ----------
    name
        What messages call the strategy.
    took, moves
        What jobs really take, and moving a tensor; what is predicted if not given.

    Raises
    ------
    WaitsForeverError
        If nothing runs, and the strategy begins nothing.
    StrategyError
        If the strategy fails, or answers with what cannot be done.
    """
    engine = Engine(work, strategy, name, frames, moves)
    return _StrategyReplay(work, engine, frames, arrivals, took).run()


class _StrategyReplay:
    def __init__(
        self, work: Work, engine: Engine, frames: int, arrivals: Arrivals, took: TimeFactor | None
    ) -> None:
        self._work, self._engine, self._frames, self._arrivals = work, engine, frames, arrivals
        self._took = took or (lambda job, p: 1.0)
        self._now_s = 0.0
        self._ends_s: dict[int, tuple[float, tuple[Job, ...]]] = {}  # of what runs, by processor
        self._spans: list[Span] = []
        self._admitted_s: list[float] = []
        self._begun: dict[int, None] = {}
        self._done_s = [0.0] * frames
        self._most = frames * len(work.tasks) * work.batch  # all that can begin

    def run(self) -> tuple[tuple[Span, ...], tuple[Frame, ...]]:
        left = self._frames * len(self._work.tasks)
        while left:
            while self._admit() or self._begin_jobs():
                pass
            self._now_s = self._next_event_s()
            left -= self._end_due_jobs()
        frames = (
            Frame(frame, admitted_s, self._done_s[frame])
            for frame, admitted_s in enumerate(self._admitted_s)
        )
        return tuple(sorted(self._spans, key=lambda s: (s.start_s, s.end_s))), tuple(frames)

    def _next_admission_s(self) -> float | None:
        """Return when the next frame is admitted; None if that is not known, or there is none."""
        frame = len(self._admitted_s)
        if frame == self._frames:
            return None
        if self._arrivals.interval_s is not None:
            return frame * self._arrivals.interval_s
        before = frame - self._arrivals.waiting
        return self._now_s if before < 0 or before in self._begun else None

    def _admit(self) -> bool:
        due_s = self._next_admission_s()
        if due_s is None or due_s > self._now_s:
            return False
        self._admitted_s.append(due_s)
        self._engine.admit(self._now_s)
        return True

    def _begin_jobs(self) -> bool:
        """Let free processors begin what they are given; return whether one did."""
        begin_call(self._engine.name, "schedule")
        processors = self._engine.decide(self._now_s)
        end_call()
        if len(self._spans) > self._most:
            raise StrategyError(f"strategy '{self._engine.name}' begins the same again and again")
        for processor in processors:
            running = self._engine.state.running[processor]
            assert running is not None
            jobs, end_s = running.jobs, self._engine.begin_s(processor)
            for _, same_task in groupby(jobs, key=lambda job: job.task):
                run = tuple(same_task)  # neighbouring micro-batches, run at one go
                start_s, (task, frame, _) = end_s, run[0]
                factor = self._took(run[0], processor)
                end_s += self._engine.state.seconds(run, processor) * factor
                name = self._work.processors[processor]
                self._spans.append(Span(name, self._work.tasks[task], frame, start_s, end_s))
            self._begun[frame] = None
            self._ends_s[processor] = end_s, jobs
            self._done_s[frame] = max(self._done_s[frame], end_s)
        return bool(processors)

    def _next_event_s(self) -> float:
        moments = [end_s for end_s, _ in self._ends_s.values()]
        if (due_s := self._next_admission_s()) is not None:
            moments.append(due_s)
        if not moments:
            raise WaitsForeverError
        return min(moments)

    def _end_due_jobs(self) -> int:
        """End what ends now; return how many tasks have ended for a whole frame."""
        finished = 0
        for processor, (end_s, jobs) in sorted(self._ends_s.items(), reverse=True):
            if end_s <= self._now_s:
                del self._ends_s[processor]
                self._engine.end(processor, self._now_s)
                ended = self._engine.state.ended
                finished += sum(frame in ended[task] for task, frame in {job[:2] for job in jobs})
        return finished


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan to be simulated, its tasks, and what they take on every processor.

    Parameters
    ----------
    work
        On the processors of all plans that are simulated together.
    """

    plan: Plan
    program: Program
    work: Work


def price_plan(
    plan: Plan,
    costs: Costs,
    strategy: type[Strategy],
    *,
    queue: int | None = None,
    unit: Unit = "operator",
    batch: int = 1,
    sized: Mapping[int, Costs] = NOT_SPLIT,
) -> PricedPlan:
    """Return a plan as it is simulated with a strategy.

    Parameters
    ----------
    costs
        What the plan's operators take on all processors.
    queue, unit
        As for `simulate`.
    batch, sized
        As for `work_of`.

    Raises
    ------
    PlanError
        If the strategy cuts the network into pieces that wait for each other in a circle.
    """
    plan = with_delays(plan)
    pieces = pieces_of(plan, cut_of(strategy), name_of(strategy))
    tasks = program(plan, unit=unit, queue=queue, pieces=pieces)
    work = work_of(plan, tasks, costs, queue=queue, batch=batch, sized=sized)
    return PricedPlan(plan, tasks, work)


def simulate_decided(
    plans: Sequence[PricedPlan],
    strategy: type[Strategy],
    name: str,
    *,
    frames: int,
    queue: int | None = None,
    luck: RandomFactors | None = None,
    saturate: bool = False,
) -> tuple[Simulation, ...]:
    """Send frames through the work of plans as a strategy decides; return what each did.

    Parameters
    ----------
    plans
        One, or several whose work is in one pool; a frame of each is admitted at a time.
    name
        What messages call the strategy.
    queue, luck, saturate
        As for `simulate`; a task has the same luck as there on the plan's processor.

    Raises
    ------
    SimulationError
        If the strategy waits for ever.
    StrategyError
        If the strategy fails, or answers with what cannot be done.
    """
    several = len(plans) > 1
    work = joined_work([each.work for each in plans]) if several else plans[0].work
    period_s = max(each.plan.predicted.period_s for each in plans)
    arrivals = Arrivals(None if saturate else period_s, queue or WAITING)
    took = _varied_times(work, luck) if luck else None
    moves = _varied_moves(work, luck) if luck else None
    try:
        spans, passed = strategy_replay(
            work, strategy, name, frames, arrivals, took=took, moves=moves
        )
    except WaitsForeverError as error:
        first = plans[0].plan
        raise SimulationError(
            f"'{first.model.name}' on '{first.platform}': with the strategy '{name}' all "
            "processors wait for ever; let it take a job that is ready, or give it a longer queue"
        ) from error
    simulations = []
    for number, each in enumerate(plans):
        own = part_of_plan(spans, passed, number) if several else (spans, passed)
        record = as_decided(record_of(each.program, *own))
        simulations.append(Simulation(each.program, record, None))
    return tuple(simulations)


def _varied_times(work: Work, luck: RandomFactors) -> TimeFactor:
    def took(job: Job, processor: int) -> float:
        task, frame, _ = job
        name = work.processors[processor]
        return luck.of(f"{work.tasks[task]} on {name}", frame) * luck.of_processor(name, frame)

    return took


def _varied_moves(work: Work, luck: RandomFactors) -> Moves:
    def moves(tensor: int, frame: int, source: int, target: int) -> float:
        moved_tensor = work.tensors[tensor]
        moved_s = moved_tensor.moved_s[source][target]
        delay = f"to {work.processors[target]} in {picoseconds(moved_s)}"
        return moved_s * luck.of(f"{work.tasks[moved_tensor.producer]} {delay}", frame)

    return moves
