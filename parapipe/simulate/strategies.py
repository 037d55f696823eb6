"""A plan's work is simulated as a strategy decides: the engine on a simulated clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from parapipe.cost.co_run import CoRunLaw, Running
from parapipe.errors import SimulationError, StrategyError
from parapipe.mappings.co_run_times import Slowdowns
from parapipe.mappings.event_graph import picoseconds
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Frame, Span, as_decided
from parapipe.simulate.priced_work import (
    NOT_SPLIT,
    Costs,
    running_work,
    with_delays,
    work_of,
)
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


@dataclass(slots=True)
class _Busy:
    """What a processor does: jobs in a row, once all that they read is there.

    Parameters
    ----------
    pieces
        What it does at one go, with seconds alone, the one that runs first.
    start_s
        When that one began.
    ends_s
        When it ends if all goes on as it does; before it runs, when all is there.
    running
        Whether it does work, or waits for what it reads.
    left_s, since_s, factor
        Seconds alone that were left at a moment, and how many times as long they take since.
    """

    jobs: tuple[Job, ...]
    pieces: deque[tuple[Job, float]]
    start_s: float
    ends_s: float
    running: bool = False
    left_s: float = 0.0
    since_s: float = 0.0
    factor: float = 1.0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left of its jobs."""
        return not self.pieces


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
    co_runs: Slowdowns | None = None,
) -> tuple[tuple[Span, ...], tuple[Frame, ...]]:
    """Send frames through what a strategy decides; return what was done, and the frames.

    Parameters
    ----------
    name
        What messages call the strategy.
    took, moves
        What jobs really take, and moving a tensor; what is predicted if not given.
    co_runs
        How tasks slow each other down, by task and processor; not at all if not given. The strategy
        is told nothing of it but how late they are.

    Raises
    ------
    WaitsForeverError
        If nothing runs, and the strategy begins nothing.
    StrategyError
        If the strategy fails, or answers with what cannot be done.
    """
    engine = Engine(work, strategy, name, frames, moves)
    return _StrategyReplay(engine, frames, arrivals, took, co_runs).run()


class _StrategyReplay:
    def __init__(
        self,
        engine: Engine,
        frames: int,
        arrivals: Arrivals,
        took: TimeFactor | None,
        co_runs: Slowdowns | None,
    ) -> None:
        self._engine, self._frames, self._arrivals = engine, frames, arrivals
        self._work = work = engine.state.work
        self._took, self._co_runs = took or (lambda job, p: 1.0), co_runs
        self._now_s = 0.0
        self._busy: dict[int, _Busy] = {}  # what runs, by processor
        self._started = 0
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
            while not self._advance():
                pass
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
        if self._started > self._most:
            raise StrategyError(f"strategy '{self._engine.name}' begins the same again and again")
        for processor in processors:
            running = self._engine.state.running[processor]
            assert running is not None
            jobs, pieces = running.jobs, deque[tuple[Job, float]]()
            for _, same_task in groupby(jobs, key=lambda job: job.task):
                run = tuple(same_task)  # neighbouring micro-batches, run at one go
                factor = self._took(run[0], processor)
                pieces.append((run[0], self._engine.state.seconds(run, processor) * factor))
            self._started += len(pieces)
            self._begun[jobs[-1].frame] = None
            begin_s = self._engine.begin_s(processor)
            self._busy[processor] = _Busy(jobs, pieces, begin_s, begin_s)
        return bool(processors)

    def _advance(self) -> bool:
        """Go on to the next moment at which something happens.

        Return whether it is one that the strategy hears of: a frame is admitted, jobs end, or it
        wanted to be asked again.
        """
        moments = [each.ends_s for each in self._busy.values()]
        if (due_s := self._next_admission_s()) is not None:
            moments.append(due_s)
        if not moments:
            raise WaitsForeverError
        ask_s = self._engine.state.ask_s
        self._now_s = min(*moments, ask_s)
        for processor, each in self._busy.items():
            while each.ends_s <= self._now_s and not each.is_done:
                self._next_piece(processor, each)
        if self._co_runs:
            self._slow_down(self._co_runs)
        return self._now_s in {due_s, ask_s} or any(each.is_done for each in self._busy.values())

    def _next_piece(self, processor: int, busy: _Busy) -> None:
        """End what a processor does, and begin what comes next of its jobs."""
        if busy.running:
            (task, frame, _), _ = busy.pieces.popleft()
            name, own = self._work.processors[processor], self._work.tasks[task]
            self._spans.append(Span(name, own, frame, busy.start_s, busy.ends_s))
            self._done_s[frame] = max(self._done_s[frame], busy.ends_s)
        busy.running = bool(busy.pieces)
        if busy.running:
            busy.start_s = busy.since_s = busy.ends_s
            busy.left_s, busy.factor = busy.pieces[0][1], 1.0
            busy.ends_s = busy.start_s + busy.left_s

    def _slow_down(self, co_runs: Slowdowns) -> None:
        """Reckon anew when what runs ends, now that other things run beside it."""
        running = {p: each for p, each in self._busy.items() if each.running}
        jobs = [(each.pieces[0][0].task, p) for p, each in running.items()]
        for each, factor in zip(running.values(), co_runs.of(jobs), strict=True):
            if factor != each.factor:
                each.left_s -= (self._now_s - each.since_s) / each.factor
                each.since_s, each.factor = self._now_s, factor
                each.ends_s = self._now_s + max(0.0, each.left_s) * factor

    def _end_due_jobs(self) -> int:
        """End jobs that are done; return how many tasks have ended for a whole frame."""
        finished = 0
        for processor, each in sorted(self._busy.items(), reverse=True):
            if each.is_done:
                del self._busy[processor]
                self._engine.end(processor, self._now_s)
                ended = self._engine.state.ended
                finished += sum(frame in ended[task] for task, frame in {j[:2] for j in each.jobs})
        return finished


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan to be simulated, its tasks, and what they take on every processor.

    Parameters
    ----------
    work
        On the processors of all plans that are simulated together.
    law
        How these slow each other down; None if nothing is known of that.
    running
        What each task is to the law on each processor: of a micro-batch, as of the whole.
    """

    plan: Plan
    program: Program
    work: Work
    law: CoRunLaw | None = None
    running: tuple[tuple[Running, ...], ...] = ()


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
    work = work_of(
        plan,
        tasks,
        costs,
        queue=queue,
        batch=batch,
        sized=sized,
        follows_plan=strategy.follows_plan,
    )
    law = costs.table.co_run
    return PricedPlan(plan, tasks, work, law, running_work(tasks, work, costs) if law else ())


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
    law = plans[0].law
    co_runs = Slowdowns(law, [row for each in plans for row in each.running]) if law else None
    try:
        spans, passed = strategy_replay(
            work, strategy, name, frames, arrivals, took=took, moves=moves, co_runs=co_runs
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
