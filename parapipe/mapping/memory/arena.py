"""Offsets of buffers in the least arena: ejections, then a search, then CP-SAT, beside a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil

from parapipe.errors import VerificationError
from parapipe.mapping.memory.buffers import ArenaProblem, violations
from parapipe.mapping.memory.ejections import Ejections
from parapipe.mapping.memory.first_fit import FirstFits, ceil_to
from parapipe.mapping.memory.offset_search import OutOfNodesError, offsets_within, orders
from parapipe.mapping.units import ROUNDING

MOST_CHANGES = 20_000
"""Of `Ejections`; about a second."""
MOST_NODES = 100_000
"""Of the search; some 20,000 are visited in a second."""
DETERMINISTIC_S = 10.0
"""CP-SAT's own seconds, which do not depend on the machine."""
PRECISION = 1e-3
"""Of the bound: the search does not look for smaller gains on its way to the bound."""
ORDERS = 3
"""Of `orders`, those that the search takes in turn."""


@dataclass(frozen=True, slots=True)
class Arena:
    """An offset for each buffer.

    Parameters
    ----------
    size_bytes
        Where the uppermost buffer ends.
    bound_bytes
        No arena is smaller: at least the peak.
    """

    offset_bytes: tuple[int, ...]
    size_bytes: int
    bound_bytes: int

    @property
    def proven(self) -> bool:
        """Whether no arena is smaller."""
        return self.size_bytes == self.bound_bytes

    def does(self, enough_bytes: int) -> bool:
        """Whether it takes no more than these bytes, or is proven."""
        return self.size_bytes <= max(enough_bytes, self.bound_bytes)


def least_arena(
    problem: ArenaProblem,
    *,
    most_changes: int = MOST_CHANGES,
    most_nodes: int = MOST_NODES,
    deterministic_s: float = DETERMINISTIC_S,
    enough_bytes: int = 0,
    seed: int = 0,
) -> Arena:
    """Return the smallest arena that is found; equal calls return equal arenas.

    First fit in several orders comes first, then `Ejections`. If the arena is still larger,
    MiniMalloc's search looks for smaller ones, then CP-SAT (rectangles that do not overlap). Both
    may prove that there is none.

    Parameters
    ----------
    most_changes
        Of `Ejections`.
    most_nodes
        Of the search, all its attempts together.
    deterministic_s
        Of CP-SAT; 0 if it is not to be used.
    enough_bytes
        An arena that is no larger is taken, and no smaller one looked for.
    """
    if not problem.buffers:
        return Arena((), 0, 0)
    least_bytes, fits = max(enough_bytes, problem.peak_bytes), FirstFits(problem)
    start, *_ = fits.smallest_first(least_bytes)
    found = Ejections(fits, start, seed).least(least_bytes, most_changes)
    best = _arena(problem, found.offset_bytes)
    if most_nodes and not best.does(enough_bytes):
        best = _searched(
            problem, [*islice(orders(problem), ORDERS)], best, most_nodes, enough_bytes
        )
    if deterministic_s > 0 and not best.does(enough_bytes):
        best = _by_cp_sat(problem, best, deterministic_s, seed)
    check(problem, best.offset_bytes)
    return best


def check(problem: ArenaProblem, offset_bytes: Sequence[int]) -> None:
    """Raise `VerificationError` if buffers do not lie right."""
    wrong = violations(problem, offset_bytes)
    if wrong:
        raise VerificationError(f"buffers do not lie right: {'; '.join(wrong)}", wrong)


def _height(problem: ArenaProblem) -> Callable[[Sequence[int]], int]:
    sizes = problem.size_bytes.tolist()
    return lambda offsets: max(map(int.__add__, offsets, sizes))


def _arena(problem: ArenaProblem, offsets: Sequence[int], bound_bytes: int = 0) -> Arena:
    bound_bytes = max(bound_bytes, problem.peak_bytes)
    return Arena(tuple(offsets), _height(problem)(offsets), bound_bytes)


@dataclass(slots=True)
class _Attempts:
    """Searches within capacities, each order in turn, with a limit of nodes for all."""

    problem: ArenaProblem
    in_order: Sequence[Sequence[int]]
    left: int

    def within(self, capacity_bytes: int, most_nodes: int) -> list[int] | None:
        """Return offsets; None if there are none, as `offsets_within` does."""
        for order in self.in_order:
            most = min(most_nodes, self.left)
            self.left -= most
            try:
                return offsets_within(self.problem, order, capacity_bytes, most)
            except OutOfNodesError:
                continue
        raise OutOfNodesError


def _searched(
    problem: ArenaProblem,
    in_order: Sequence[Sequence[int]],
    best: Arena,
    most_nodes: int,
    enough_bytes: int,
) -> Arena:
    """Look for the bound, and for what is between it and the best, with more nodes each time."""
    attempts, nodes = _Attempts(problem, in_order, most_nodes), 2 * len(problem.buffers)
    while not best.does(enough_bytes) and attempts.left > 0:
        best = _attempted(problem, attempts, best, best.bound_bytes, nodes)
        best = _bisected(problem, attempts, best, nodes // 8)
        nodes *= 2
    return best


def _attempted(
    problem: ArenaProblem, attempts: _Attempts, best: Arena, capacity_bytes: int, nodes: int
) -> Arena:
    """Return a better arena, a better bound, or what was known if the nodes do not do."""
    try:
        found = attempts.within(capacity_bytes, nodes)
    except OutOfNodesError:
        return best
    if found is not None:
        return _arena(problem, found, best.bound_bytes)
    bound_bytes = ceil_to(capacity_bytes + 1, problem.unit_bytes)
    return Arena(best.offset_bytes, best.size_bytes, bound_bytes)


def _bisected(problem: ArenaProblem, attempts: _Attempts, best: Arena, nodes: int) -> Arena:
    """Return the best arena between the bound and what is known, as far as the nodes do."""
    least = max(problem.unit_bytes, int(PRECISION * best.bound_bytes))
    failed = best.bound_bytes
    while best.size_bytes - failed > least:
        capacity = (best.size_bytes + failed) // 2
        before, best = best, _attempted(problem, attempts, best, capacity, nodes)
        if best.size_bytes == before.size_bytes:
            failed = capacity
    return best


def _by_cp_sat(problem: ArenaProblem, best: Arena, deterministic_s: float, seed: int) -> Arena:
    """Improve an arena, or its bound: rectangles of sections and bytes that do not overlap."""
    from ortools.sat.python import cp_model  # heavy

    unit = problem.unit_bytes
    model = cp_model.CpModel()
    floor, top = ceil(best.bound_bytes / unit), best.size_bytes // unit
    size = model.new_int_var(floor, top, "")
    model.add_hint(size, top)
    offsets, lives, places = [], [], []
    for b, each in enumerate(problem.buffers):
        units, step = each.size_bytes // unit, max(1, each.alignment_bytes // unit)
        offset = model.new_int_var(0, (top - units) // step, "")
        model.add_hint(offset, best.offset_bytes[b] // unit // step)
        model.add(step * offset + units <= size)
        offsets.append((offset, step))
        own = problem.sections[b]
        for first, last in ((r[0], r[-1]) for r in _runs(own.tolist())):
            lives.append(model.new_fixed_size_interval_var(first, last - first + 1, ""))
            places.append(model.new_fixed_size_interval_var(step * offset, units, ""))
    model.add_no_overlap_2d(lives, places)
    model.minimize(size)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # more are not reproducible
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_s
    status = solver.solve(model)
    bound_bytes = unit * max(floor, ceil(solver.best_objective_bound - ROUNDING))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = [unit * step * solver.value(offset) for offset, step in offsets]
        best = min(best, _arena(problem, found), key=lambda each: each.size_bytes)
    return Arena(best.offset_bytes, best.size_bytes, min(bound_bytes, best.size_bytes))


def _runs(sections: Sequence[int]) -> Iterator[list[int]]:
    """Yield sections that follow each other."""
    run: list[int] = []
    for each in sections:
        if run and each != run[-1] + 1:
            yield run
            run = []
        run.append(each)
    yield run
