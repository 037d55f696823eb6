"""The exact answers to chains and small problems: the shortest schedule, or all trade-offs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from parapipe.pareto import nondominated
from parapipe.solvers.assignments.orders import list_all, order_all
from parapipe.solvers.assignments.tables import Best, Tables, assignments, sparse, tables
from parapipe.solvers.chain import is_chain
from parapipe.solvers.paths import inputs_of, supporting
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import Timed, order_by_start, replay
from parapipe.solvers.schedule import Energies


@dataclass(frozen=True, slots=True)
class Label:
    """The first operators of a chain, placed.

    Parameters
    ----------
    end_s
        Of the last of them.
    energy_j
        Of all operators of the chain, those that are not placed yet at their least.
    processor, start_s
        Of each.
    """

    end_s: float
    energy_j: float
    processor: tuple[int, ...] = ()
    start_s: tuple[float, ...] = ()


def labels_of_chain(problem: MappingProblem, energy_j: Energies) -> list[Label]:
    """Return all placements of a chain that no other one on its last processor beats.

    What is behind an operator depends on nothing before it but its processor and its end: so of
    placements of the first operators that end on one processor only those go on that end earlier
    than all that take no more energy.
    """
    support = supporting(problem)
    least_j = [min(row[p] for p in choices) for row, choices in zip(energy_j, support, strict=True)]
    begun = Label(0.0, sum(least_j))
    last: dict[int, list[Label]] = {}
    for v, inputs in enumerate(inputs_of(problem)):
        before, last = last, {}
        for p in support[v]:
            lasts_s, more_j = problem.time_s[v][p], energy_j[v][p] - least_j[v]
            arrived_s = max((_transfer_s(flow, flow.location, p) for flow in inputs), default=0.0)
            starts = [(begun, arrived_s)]
            if v:
                starts = [
                    (label, max(arrived_s, label.end_s + moved_s))
                    for q, labels in before.items()
                    for moved_s in [max(_transfer_s(f, q, p) for f in inputs if f.location is None)]
                    for label in labels
                ]
            labels = (
                Label(
                    start_s + lasts_s,
                    label.energy_j + more_j,
                    (*label.processor, p),
                    (*label.start_s, start_s),
                )
                for label, start_s in starts
            )
            last[p] = nondominated(labels, lambda label: (label.end_s, label.energy_j))
    return [label for labels in last.values() for label in labels]


def _transfer_s(flow: Flow, source: int | None, target: int) -> float:
    return 0.0 if source is None else flow.transfer_s[source][target]


NAME = "all assignments"
LEAST_S = 0.01  # time limit below which it is not tried: it takes about that, seldom a second
OPERATORS = 20  # at most
MOST = 3**13  # assignments that are tried at all
FEW = 500  # assignments that are all looked at at once
FIRST = 600  # assignments that are looked at first


@dataclass(frozen=True, slots=True)
class EnumeratedSchedule:
    """A schedule, in exact times.

    Parameters
    ----------
    bound_j
        No schedule that is as short takes less energy.
    """

    processor: tuple[int, ...]
    timed: Timed
    bound_j: float


def enumerated(
    problem: MappingProblem,
    energy_j: Energies | None = None,
    *,
    gap: float = 0.0,
    share: float = 0.0,
) -> list[EnumeratedSchedule] | None:
    """Find the shortest schedule, or with energies all that a shorter one does not match.

    Exact to the rounding of doubles. Assignments are extended operator by operator. Longest
    paths and loads bound the time that they lead to, the least energies of what is left bound
    their energy; what known schedules match goes no further. Those that are left get their exact
    order.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p.
    gap, share
        For every schedule one of those found takes at most (1 + gap) (1 + share) times its time
        and its energy. The shortest takes the least energy of all that are as short; that of least
        energy is the shortest of its kind. The energies of the others are proven to within a gap
        in time and in energy.

    Returns
    -------
    Schedules by ascending makespan and descending energy; None if that would take long, or if
    transfers occupy something.
    """
    if not is_small(problem):
        return None
    count = _assignments(problem)
    if count <= FEW and energy_j is not None and is_chain(problem, range(problem.operators)):
        best = _best_of_chain(labels_of_chain(problem, energy_j), gap, problem.operators)
    else:
        best_of_all = _best_of_all(tables(problem, energy_j), gap, count)
        if best_of_all is None:
            return None
        best = best_of_all
    bounds_j = best.least_before()
    return [
        _replayed(problem, best.processor[i].tolist(), best.start_s[i].tolist(), float(bounds_j[i]))
        for i in sparse(best.time_s, best.energy_j, share)
    ]


def is_small(problem: MappingProblem) -> bool:
    """Tell whether a problem is one that `enumerated` tries."""
    return (
        not problem.transfer_resource
        and problem.operators <= OPERATORS
        and _assignments(problem) <= MOST
    )


def _assignments(problem: MappingProblem) -> int:
    return prod(map(len, supporting(problem)))


def _best_of_all(arrays: Tables, gap: float, count: int) -> Best | None:
    able = np.where(arrays.time_s < np.inf, arrays.energy_j, np.inf)
    best = Best(float(able.min(1).sum()), gap, arrays.operators)
    if count > FEW:
        first = assignments(arrays, best, FIRST)
        assert first is not None
        list_all(arrays, first, best)
    rows = assignments(arrays, best)
    return None if rows is None or not order_all(arrays, rows, best) else best


def _best_of_chain(labels: Sequence[Label], gap: float, operators: int) -> Best:
    best = Best(0.0, gap, operators)
    best.offer(
        np.array([label.end_s for label in labels]),
        np.array([label.energy_j for label in labels]),
        np.array([label.processor for label in labels]),
        np.array([label.start_s for label in labels]),
    )
    return best


def _replayed(
    problem: MappingProblem, processor: Sequence[int], start_s: Sequence[float], bound_j: float
) -> EnumeratedSchedule:
    """Replay a schedule."""
    end_s = [s + row[p] for s, row, p in zip(start_s, problem.time_s, processor, strict=True)]
    return EnumeratedSchedule(
        tuple(processor), replay(problem, processor, order_by_start(start_s, end_s)), bound_j
    )
