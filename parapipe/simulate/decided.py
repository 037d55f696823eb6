"""A plan's work is simulated as a strategy decides: frames go through as they would for real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parapipe.errors import SimulationError
from parapipe.pipeline.sustained import picoseconds
from parapipe.plan.program import Program, Unit, program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import as_decided
from parapipe.simulate.luck import Luck
from parapipe.simulate.priced_work import NOT_SPLIT, Costs, with_delays, work_of
from parapipe.simulate.simulation import WAITING, Simulation, record_of
from parapipe.simulate.strategy_replay import (
    Arrivals,
    Took,
    WaitsForeverError,
    strategy_replay,
)
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.engine import Moves
from parapipe.strategies.joined import joined_work, own_part
from parapipe.strategies.strategy import Strategy, cut_of, name_of
from parapipe.strategies.work import Job, Work


@dataclass(frozen=True, slots=True)
class Priced:
    """A plan to be simulated, its tasks, and what they take on every processor.

    Parameters
    ----------
    work
        On the processors of all plans that are simulated together.
    """

    plan: Plan
    program: Program
    work: Work


def priced(
    plan: Plan,
    costs: Costs,
    strategy: type[Strategy],
    *,
    queue: int | None = None,
    unit: Unit = "operator",
    batch: int = 1,
    sized: Mapping[int, Costs] = NOT_SPLIT,
) -> Priced:
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
    return Priced(plan, tasks, work)


def simulate_decided(
    plans: Sequence[Priced],
    strategy: type[Strategy],
    name: str,
    *,
    frames: int,
    queue: int | None = None,
    luck: Luck | None = None,
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
    took = _took(work, luck) if luck else None
    moves = _moves(work, luck) if luck else None
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
    found = []
    for number, each in enumerate(plans):
        own = own_part(spans, passed, number) if several else (spans, passed)
        record = as_decided(record_of(each.program, *own))
        found.append(Simulation(each.program, record, None))
    return tuple(found)


def _took(work: Work, luck: Luck) -> Took:
    def took(job: Job, processor: int) -> float:
        task, frame, _ = job
        name = work.processors[processor]
        return luck.of(f"{work.tasks[task]} on {name}", frame) * luck.of_processor(name, frame)

    return took


def _moves(work: Work, luck: Luck) -> Moves:
    def moves(tensor: int, frame: int, source: int, target: int) -> float:
        made = work.tensors[tensor]
        moved_s = made.moved_s[source][target]
        delay = f"to {work.processors[target]} in {picoseconds(moved_s)}"
        return moved_s * luck.of(f"{work.tasks[made.producer]} {delay}", frame)

    return moves
