"""The coarse-grained ILP of the Para-Pipe paper: every branch whole on one processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil, fsum, inf, prod
from time import perf_counter

from parapipe.solvers.cbc import import_pulp, run_cbc
from parapipe.solvers.problem import MICRO, Parallel, floor_units

# A row per branch, a column per processor: whole microseconds, None where it cannot run.
Loads = tuple[tuple[int | None, ...], ...]

NO_SOLVER = "nothing to decide"
EVERY = "all placements of branches"
FEW = 2000  # placements of branches that are tried one by one
CACHE_LIMIT = 10_000
# CBC's nodes that count as a second of work: it has about as many in one with 200 branches, more
# with fewer.
NODES_PER_S = 1000
MOST_NODES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Assignment:
    """One processor per branch, and what is proven of the heaviest load.

    Parameters
    ----------
    processor
        Of each branch.
    objective_us, bound_us
        L of the assignment, and the proven lower bound on L, in whole microseconds.
    solver
        Name and version of what found it.
    spent_s
        Seconds that took, of wall time or of counted work.
    """

    processor: tuple[int, ...]
    objective_us: int
    bound_us: int
    solver: str
    spent_s: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether no assignment has a smaller L."""
        return self.bound_us >= self.objective_us


@dataclass(frozen=True, slots=True)
class Claim:
    """What is proven of one part of the outermost series."""

    objective_s: float
    bound_s: float
    proven: bool
    solver: str


@dataclass(slots=True)
class Part:
    """Parallel branches, each whole on one processor.

    Parameters
    ----------
    load_s
        t_bp + c_b,p,sink of each branch on each processor; infinite where it cannot run.
    base_s
        Load of each processor beside them.
    split_bound_s
        If branches beside them are split between processors: a bound on L however that is done.
    processor
        Of each branch.
    """

    branches: Parallel
    load_s: tuple[tuple[float, ...], ...]
    base_s: tuple[float, ...]
    assignment: Assignment
    split_bound_s: float | None = None
    processor: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.processor = list(self.assignment.processor)

    def heaviest_s(self) -> float:
        """L of equation (2)."""
        rows = list(zip(self.load_s, self.processor, strict=True))
        return max(
            fsum([base, *(row[p] for row, q in rows if q == p)])
            for p, base in enumerate(self.base_s)
        )

    def claim(self) -> Claim:
        """Say what the answer of the ILP is worth."""
        answer = self.assignment
        bound_s, proven = answer.bound_us / MICRO, answer.proven
        if self.split_bound_s is not None:
            bound_s, proven = self.split_bound_s, False
        objective_s = self.heaviest_s()
        return Claim(objective_s, min(bound_s, objective_s), proven, answer.solver)


# Proven answers: the same branches come back with every location of the inputs, of which (2)
# does not speak.
_cache: dict[tuple[Loads, tuple[int, ...], int, bool], Assignment] = {}


def assign(
    loads_us: Loads,
    base_us: tuple[int, ...],
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> Assignment:
    """Give every branch one processor so that the heaviest load is least.

    Equations (1) and (2) of the paper: with x_bp = 1 where branch b is on processor p,

        minimise L,  Σ_p x_bp = 1 for every b,  L ≥ base_p + Σ_b x_bp (t_bp + c_b,p,sink),

    solved in PuLP by its bundled CBC, on one thread and to a gap of 0. Where few assignments are
    possible, all are tried, which takes less time than to start CBC: of those of least L, the
    first of least load counts. A proven answer is cached, for calls with more time than it
    took.

    Parameters
    ----------
    loads_us
        t_bp + c_b,p,sink. Every row has a number.
    base_us
        Load of each processor in any case: 0 in the paper.
    time_limit_s
        When it is over, the best assignment found comes with the bound proven so far; if there
        is no time at all, CBC is not started.
    deterministic
        Count nodes of the search tree in place of wall time, `NODES_PER_S` for a second.

    Raises
    ------
    MappingError
        If CBC cannot be run.
    """
    choices = [_choices(row) for row in loads_us]
    if sum(len(some) > 1 for some in choices) <= 1:
        return _try_all(loads_us, base_us, choices, NO_SOLVER)
    if not time_limit_s > 0:
        return _evaluate(loads_us, base_us, greedy(loads_us, base_us), 0, "greedy")
    if prod(map(len, choices)) <= FEW:
        return _try_all(loads_us, base_us, choices, EVERY)
    key = (loads_us, base_us, seed, deterministic)
    cached = _cache.get(key)
    if cached is not None and cached.spent_s < time_limit_s:
        return cached
    answer = _solve_ilp(loads_us, base_us, time_limit_s, seed, deterministic)
    if answer.proven:
        _cache_answer(key, answer)
    return answer


def assign_part(
    branches: Parallel,
    load_s: tuple[tuple[float, ...], ...],
    base_s: tuple[float, ...],
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> Part:
    """Assign branches by equations (1) and (2), in whole microseconds rounded down."""
    assignment = assign(
        tuple(tuple(None if s == inf else floor_units(s) for s in row) for row in load_s),
        tuple(floor_units(s) for s in base_s),
        time_limit_s=time_limit_s,
        seed=seed,
        deterministic=deterministic,
    )
    return Part(branches, load_s, base_s, assignment)


def _cache_answer(key: tuple[Loads, tuple[int, ...], int, bool], answer: Assignment) -> None:
    """Keep an answer, and of several to one question the one that took least."""
    cached = _cache.get(key)
    if cached is None or answer.spent_s < cached.spent_s:
        for oldest in list(_cache)[: max(0, len(_cache) + 1 - CACHE_LIMIT)]:
            _cache.pop(oldest, None)
        _cache[key] = answer


def heaviest_us(loads_us: Loads, base_us: Sequence[int], processor: Sequence[int]) -> int:
    """L of an assignment, in microseconds."""
    load_us = list(base_us)
    for row, p in zip(loads_us, processor, strict=True):
        load_us[p] += row[p] or 0
    return max(load_us)


def greedy(loads_us: Loads, base_us: Sequence[int]) -> tuple[int, ...]:
    """Longest branch first, each where the heaviest load grows least; then single moves.

    Graham's list rule for unrelated processors, improved until moving no single branch helps.
    """
    order = sorted(range(len(loads_us)), key=lambda b: (-_least_load(loads_us[b]), b))
    load_us = list(base_us)
    chosen: dict[int, int] = {}
    for b in order:
        row = loads_us[b]
        chosen[b] = min(_choices(row), key=lambda p: (load_us[p] + (row[p] or 0), p))
        load_us[chosen[b]] += row[chosen[b]] or 0
    processor = tuple(chosen[b] for b in range(len(loads_us)))
    while True:
        neighbours = [
            (*processor[:b], p, *processor[b + 1 :])
            for b, row in enumerate(loads_us)
            for p in _choices(row)
        ]
        best = min(neighbours, key=lambda trial: heaviest_us(loads_us, base_us, trial))
        if heaviest_us(loads_us, base_us, best) >= heaviest_us(loads_us, base_us, processor):
            return processor
        processor = best


def _choices(row: Sequence[int | None]) -> list[int]:
    return [p for p, load in enumerate(row) if load is not None]


def _least_load(row: Sequence[int | None]) -> int:
    return min(load for load in row if load is not None)


def _try_all(
    loads_us: Loads, base_us: Sequence[int], choices: Sequence[Sequence[int]], solver: str
) -> Assignment:
    """Try all assignments."""
    # of equal L the least load, so that a branch is not slowed down behind a heavier base
    best = min(
        product(*choices),
        key=lambda trial: (
            heaviest_us(loads_us, base_us, trial),
            sum(row[p] or 0 for row, p in zip(loads_us, trial, strict=True)),
        ),
    )
    objective_us = heaviest_us(loads_us, base_us, best)
    return Assignment(best, objective_us, objective_us, solver)


def _evaluate(
    loads_us: Loads,
    base_us: Sequence[int],
    processor: tuple[int, ...],
    bound_us: int,
    solver: str,
    *,
    spent_s: float = 0.0,
) -> Assignment:
    """Evaluate an assignment; the bound is at least what a glance at the loads gives."""
    objective_us = heaviest_us(loads_us, base_us, processor)
    alone = (
        min(base_us[p] + (row[p] or 0) for p in _choices(row)) for row in loads_us
    )  # some processor has each branch
    mean = ceil((sum(base_us) + sum(map(_least_load, loads_us))) / len(base_us))
    glance_us = max(mean, *base_us, *alone)
    bound_us = min(objective_us, max(bound_us, glance_us))
    return Assignment(processor, objective_us, bound_us, solver, spent_s)


def _solve_ilp(
    loads_us: Loads, base_us: Sequence[int], time_limit_s: float, seed: int, deterministic: bool
) -> Assignment:
    began_s = perf_counter()
    pulp = import_pulp()
    model = pulp.LpProblem("coarse", pulp.LpMinimize)
    heaviest = pulp.LpVariable("L", lowBound=0, cat=pulp.LpInteger)
    x = {
        (b, p): pulp.LpVariable(f"x_{b}_{p}", cat=pulp.LpBinary)
        for b, row in enumerate(loads_us)
        for p in _choices(row)
    }
    model += heaviest
    for b, row in enumerate(loads_us):
        model += pulp.lpSum(x[b, p] for p in _choices(row)) == 1  # (1)
    for p, base in enumerate(base_us):
        load_us = pulp.lpSum(loads_us[b][p] * x[b, q] for b, q in x if q == p)
        model += heaviest >= base + load_us  # (2)
    if deterministic:
        nodes = min(ceil(time_limit_s * NODES_PER_S), MOST_NODES)
        answer = run_cbc(model, time_limit_s=inf, seed=seed, options=[f"maxNodes {nodes}"])
        spent_s = (answer.nodes + 1) / NODES_PER_S  # there is work before the first node, too
    else:
        answer = run_cbc(model, time_limit_s=time_limit_s, seed=seed)
        spent_s = perf_counter() - began_s
    trials = [greedy(loads_us, base_us)]
    if answer.found:
        values = [
            {p: x[b, p].value() or 0.0 for p in _choices(row)} for b, row in enumerate(loads_us)
        ]
        trials.insert(0, tuple(max(row, key=row.__getitem__) for row in values))
    best = min(trials, key=lambda trial: heaviest_us(loads_us, base_us, trial))
    bound_us = answer.rounded_bound or 0
    return _evaluate(loads_us, base_us, best, bound_us, answer.solver, spent_s=spent_s)
