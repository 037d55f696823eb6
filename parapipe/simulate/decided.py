"""A plan's work is simulated as a strategy decides: frames go through as they would for real."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.errors import SimulationError
from parapipe.pipeline.sustained import picoseconds
from parapipe.plan.program import Unit, program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import as_decided
from parapipe.simulate.luck import Luck
from parapipe.simulate.priced_work import NOT_SPLIT, Costs, work_of
from parapipe.simulate.simulation import WAITING, Simulation, record_of
from parapipe.simulate.strategy_replay import (
    Arrivals,
    Took,
    WaitsForeverError,
    strategy_replay,
)
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.engine import Moves
from parapipe.strategies.strategy import Strategy, cut_of
from parapipe.strategies.work import Job, Work


def simulate_decided(
    plan: Plan,
    costs: Costs,
    strategy: type[Strategy],
    name: str,
    *,
    frames: int,
    queue: int | None = None,
    luck: Luck | None = None,
    saturate: bool = False,
    unit: Unit = "operator",
    batch: int = 1,
    sized: Mapping[int, Costs] = NOT_SPLIT,
) -> Simulation:
    """Send frames through the work of a plan as a strategy decides.

    Parameters
    ----------
    costs
        What the plan's operators take on all of its processors.
    name
        What messages call the strategy.
    queue, luck, saturate, unit
        As for `simulate`; a task has the same luck as there on the plan's processor.
    batch, sized
        As for `work_of`.

    Raises
    ------
    SimulationError
        If the strategy waits for ever, or transfers of the plan keep something busy.
    StrategyError
        If the strategy fails, or answers with what cannot be done.
    """
    pieces = pieces_of(plan, cut_of(strategy))
    tasks = program(plan, unit=unit, queue=queue, pieces=pieces)
    work = work_of(plan, tasks, costs, queue=queue, batch=batch, sized=sized)
    arrivals = Arrivals(None if saturate else plan.predicted.period_s, queue or WAITING)
    took = _took(work, luck) if luck else None
    moves = _moves(work, luck) if luck else None
    try:
        spans, passed = strategy_replay(
            work, strategy, name, frames, arrivals, took=took, moves=moves
        )
    except WaitsForeverError as error:
        raise SimulationError(
            f"'{plan.model.name}' on '{plan.platform}': with the strategy '{name}' all processors "
            "wait for ever; let it take a job that is ready, or give it a longer queue"
        ) from error
    return Simulation(tasks, as_decided(record_of(tasks, spans, passed)), None)


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
