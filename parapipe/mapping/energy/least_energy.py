"""The least dynamic energy of a schedule that ends by a deadline."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, inf, isinf
from time import perf_counter

from parapipe.errors import MappingError
from parapipe.mapping.certify import certified
from parapipe.mapping.energy.energy_model import NANO, EnergyModel, Frugal, whole_nj
from parapipe.mapping.energy.trade_off import (
    Energies,
    EnergyCertificate,
    TradeOff,
    energy_of,
    verify_trade_off,
)
from parapipe.mapping.fine import cp_sat
from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.fine.integer_problem import (
    MICRO,
    ROUNDING_US,
    IntegerProblem,
    integer_problem,
)
from parapipe.mapping.fine.placement import Placement, order_of
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import replay

LONG_S = 1e9  # more than any schedule takes


def least_energy(
    problem: MappingProblem,
    energy_j: Energies,
    *,
    deadline_s: float | None,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> TradeOff:
    """Place and order the operators so that they take least energy and end by a deadline; verified.

    Bounds are those of times and energies rounded down to whole microseconds and nanojoules, so
    they hold for exact ones too. Where the best placement in rounded times ends too late in exact
    ones, a second search with times rounded up finds one that does not; it is proven if it takes no
    more.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p, finite wherever p supports v.
    deadline_s
        None if time does not matter.
    time_limit_s, deterministic
        As for `fine`.

    Raises
    ------
    MappingError
        No schedule ends by the deadline, or none was found.
    ValueError
        If energies are missing, negative or not finite.
    """
    began_s = perf_counter()
    check_energies(problem, energy_j)
    budget = Budget(time_limit_s, deterministic, began_s)
    rounded = integer_problem(problem)
    last_s = inf if deadline_s is None else deadline_s
    deadline_us = min(_longest_us(problem), floor(min(last_s, LONG_S) * MICRO + ROUNDING_US))
    found = _solve(rounded, energy_j, deadline_us, budget, seed)
    placed, times = found.placement, rounded
    if placed is not None and _makespan_s(problem, placed) > last_s:
        times = integer_problem(_rounded_up(problem))
        placed = _solve(times, energy_j, deadline_us, budget, seed).placement
    if found.bound_nj is None or placed is None:
        why = "exists" if found.bound_nj is None else "was found in time"
        raise MappingError(
            f"no schedule that ends within {last_s:.9g} s {why}; give a later deadline"
            + ("" if found.bound_nj is None else " or a longer time limit")
        )
    answer = trade_off(
        problem,
        energy_j,
        placed,
        bound_nj=found.bound_nj,
        deadline_s=deadline_s,
        seed=seed,
        began_s=began_s,
    )
    if problem.carrier and answer.schedule.makespan_s > last_s:
        raise MappingError(
            f"no schedule that ends within {last_s:.9g} s was found, transfers being searched as "
            "pure delays; give a later deadline"
        )
    return answer


def trade_off(
    problem: MappingProblem,
    energy_j: Energies,
    placed: Placement,
    *,
    bound_nj: int,
    deadline_s: float | None,
    seed: int,
    began_s: float,
) -> TradeOff:
    """Return the placement in exact times, with what is proven about its energy; verified."""
    start_s, end_s = replay(problem, placed.processor, order_of(placed.start_us, placed.end_us))
    schedule = certified(
        problem,
        placed.processor,
        start_s,
        end_s,
        bound_s=0.0,
        solver=cp_sat.name(),
        seed=seed,
        began_s=began_s,
    )
    taken_j = energy_of(energy_j, placed.processor)
    taken_nj = sum(whole_nj(row[p]) for row, p in zip(energy_j, placed.processor, strict=True))
    claim = EnergyCertificate(
        objective_j=taken_j,
        bound_j=min(bound_nj / NANO, taken_j),
        deadline_s=deadline_s,
        proven=taken_nj <= bound_nj,
        wall_s=schedule.certificate.wall_s,
        seed=seed,
        solver=schedule.certificate.solver,
    )
    found = TradeOff(schedule, claim)
    verify_trade_off(problem, energy_j, found)
    return found


def check_energies(problem: MappingProblem, energy_j: Energies) -> None:
    """Raise a ValueError if there is not a finite energy wherever an operator can run."""
    if [len(row) for row in energy_j] != [problem.processors] * problem.operators:
        raise ValueError("energies must be given for every operator on every processor")
    wrong = [
        (v, p)
        for v, (times_s, energies_j) in enumerate(zip(problem.time_s, energy_j, strict=True))
        for p, (time_s, joules) in enumerate(zip(times_s, energies_j, strict=True))
        if time_s < inf and not 0 <= joules < inf
    ]
    if wrong:
        raise ValueError(f"(operator, processor) {wrong} have no energy, or a negative one")


def _solve(
    times: IntegerProblem, energy_j: Energies, deadline_us: int, budget: Budget, seed: int
) -> Frugal:
    return EnergyModel(times, energy_j, deadline_us).solve(
        deadline_us, None, budget=budget, seed=seed
    )


def _makespan_s(problem: MappingProblem, placed: Placement) -> float:
    return max(replay(problem, placed.processor, order_of(placed.start_us, placed.end_us))[1])


def _longest_us(problem: MappingProblem) -> int:
    """Bound on the makespan of any schedule that never waits without need."""
    work_s = sum(max(t for t in row if t < inf) for row in problem.time_s)
    moved_s = sum(max(map(max, flow.transfer_s)) for flow in problem.flows)
    return ceil((work_s + moved_s) * MICRO) + problem.operators


def _rounded_up(problem: MappingProblem) -> MappingProblem:
    """Return the problem with every time rounded up to whole microseconds."""

    def up(seconds: float) -> float:
        return inf if isinf(seconds) else ceil(seconds * MICRO - ROUNDING_US) / MICRO

    return replace(
        problem,
        time_s=tuple(tuple(map(up, row)) for row in problem.time_s),
        flows=tuple(
            replace(flow, transfer_s=tuple(tuple(map(up, row)) for row in flow.transfer_s))
            for flow in problem.flows
        ),
    )
