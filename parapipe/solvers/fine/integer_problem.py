"""The mapping problem in whole units of time, rounded down, and bounds on its makespan.

A unit is a microsecond, or a decimal fraction of it for a problem that takes less than ten
milliseconds: see `units_per_second`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from parapipe.solvers.paths import readers_of
from parapipe.solvers.problem import MICRO, NANO, NEVER, MappingProblem, floor_units

# `delay[p][q]`: units from the end of a producer on p to the start of a reader on q.
Delay = tuple[tuple[int, ...], ...]

UNITS = 10_000  # that a makespan takes at least, where nanoseconds allow it


@dataclass(frozen=True, slots=True)
class IntegerProblem:
    """Operators to be placed and ordered; equal problems are equal and have the same hash.

    Parameters
    ----------
    time_units
        `time_units[v][p]`: duration of operator v on processor p; `NEVER` where it cannot run.
    release_units
        `release_units[v][p]`: before then operator v cannot start on p.
    edges
        `edges[v]`: the operators that v reads, ascending, each with the delay between the two.
    choices
        Processors that can run each operator.
    readers
        The edges the other way round.
    """

    time_units: tuple[tuple[int, ...], ...]
    release_units: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[tuple[int, Delay], ...], ...]
    choices: tuple[tuple[int, ...], ...] = field(init=False, compare=False)
    readers: tuple[tuple[tuple[int, Delay], ...], ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        choices = tuple(
            tuple(p for p, time_units in enumerate(row) if time_units < NEVER)
            for row in self.time_units
        )
        readers: list[list[tuple[int, Delay]]] = [[] for _ in self.time_units]
        for v, inputs in enumerate(self.edges):
            for u, delay in inputs:
                readers[u].append((v, delay))
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "readers", tuple(map(tuple, readers)))

    @property
    def operators(self) -> int:
        """Number of operators."""
        return len(self.time_units)

    @property
    def processors(self) -> int:
        """Number of processors, those that can run nothing included."""
        return len(self.time_units[0])

    def pinned(self, pins: Mapping[int, int]) -> IntegerProblem:
        """Return the problem with some operators tied to a processor each."""
        rows = list(self.time_units)
        for v, p in pins.items():
            rows[v] = tuple(t if q == p else NEVER for q, t in enumerate(rows[v]))
        return replace(self, time_units=tuple(rows))

    def part(
        self, operators: Sequence[int], release_units: Sequence[tuple[int, ...]] | None = None
    ) -> IntegerProblem:
        """Return the problem of some of the operators, ascending, alone.

        Parameters
        ----------
        release_units
            Theirs, in the same order; their own if not given.
        """
        place = {v: i for i, v in enumerate(operators)}
        return IntegerProblem(
            tuple(self.time_units[v] for v in operators),
            tuple(release_units or (self.release_units[v] for v in operators)),
            tuple(
                tuple((place[u], delay) for u, delay in self.edges[v] if u in place)
                for v in operators
            ),
        )

    def reversed(self) -> IntegerProblem:
        """Return the problem with time running backwards: operator v becomes n - 1 - v.

        Releases are left out, so a bound on its makespan bounds this one's, but is no optimum.
        """
        last = self.operators - 1
        return IntegerProblem(
            self.time_units[::-1],
            ((0,) * self.processors,) * self.operators,
            tuple(
                tuple((last - w, tuple(zip(*delay, strict=True))) for w, delay in inputs[::-1])
                for inputs in reversed(self.readers)
            ),
        )


def units_per_second(makespan_s: float) -> float:
    """Return into how many units a second is cut for a problem of about this makespan.

    Microseconds, unless rounding to them would show: then the next smaller power of ten, down to
    nanoseconds, in which the makespan takes `UNITS` units. Finer units take longer to prove.
    """
    per_second = MICRO
    while makespan_s * per_second < UNITS and per_second < NANO:
        per_second *= 10
    return per_second


def integer_problem(problem: MappingProblem, per_second: float = MICRO) -> IntegerProblem:
    """Round the times of a problem down to whole units, microseconds or other parts of a second.

    A schedule of the problem is one of the result as well, and takes no longer there. Tensors from
    outside become releases.
    """
    idle = (0,) * problem.processors
    release_units = [idle] * problem.operators
    for flow in problem.flows:
        if flow.location is not None:
            arrival_units = [floor_units(s, per_second) for s in flow.transfer_s[flow.location]]
            for v in flow.consumers:
                release_units[v] = tuple(map(max, release_units[v], arrival_units))
    edges: list[list[tuple[int, Delay]]] = [[] for _ in range(problem.operators)]
    for u, readers in enumerate(readers_of(problem)):
        for v, delay_s in readers.items():
            edges[v].append((u, _floor_delay(delay_s, per_second)))
    return IntegerProblem(
        tuple(tuple(floor_units(s, per_second) for s in row) for row in problem.time_s),
        tuple(release_units),
        tuple(map(tuple, edges)),
    )


@lru_cache(maxsize=1024)  # tensors of one size have equal delays
def _floor_delay(delay_s: tuple[tuple[float, ...], ...], per_second: float) -> Delay:
    return tuple(tuple(floor_units(s, per_second) for s in row) for row in delay_s)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Heads and tails; better ones are found by raising entries and propagating.

    Parameters
    ----------
    head_units
        `head_units[v][p]`: operator v on p cannot start before that.
    tail_units
        `tail_units[v][p]`: from its end to the end of everything at least that passes.
    """

    problem: IntegerProblem
    head_units: list[list[int]]
    tail_units: list[list[int]]

    def through_units(self, v: int, p: int) -> int:
        """Bound on the makespan if operator v runs on p."""
        return self.head_units[v][p] + self.problem.time_units[v][p] + self.tail_units[v][p]

    def makespan_units(self) -> int:
        """Bound on the makespan: some operator's best processor cannot do better."""
        return max(
            min(self.through_units(v, p) for p in choices)
            for v, choices in enumerate(self.problem.choices)
        )

    def learn(self, other: Bounds) -> None:
        """Take over what is known of the same operators with fewer choices.

        What was left out there leads beyond the limit there, so `other` holds for any placement
        within that.
        """
        for mine, better in (
            (self.head_units, other.head_units),
            (self.tail_units, other.tail_units),
        ):
            for row, better_row in zip(mine, better, strict=True):
                row[:] = better_row

    def propagate_heads(self) -> None:
        """Raise every head by what the operator reads."""
        for v in range(self.problem.operators):
            self.raise_head(v)

    def raise_head(self, v: int) -> None:
        """Raise the head of one operator by what it reads."""
        problem, head_units = self.problem, self.head_units[v]
        for u, delay in problem.edges[v]:
            ends = [
                (self.head_units[u][p] + problem.time_units[u][p], delay[p])
                for p in problem.choices[u]
            ]
            for q in problem.choices[v]:
                head_units[q] = max(
                    head_units[q], min(end_units + row[q] for end_units, row in ends)
                )

    def propagate_tails(self) -> None:
        """Raise every tail by what reads the operator."""
        problem = self.problem
        for u in reversed(range(problem.operators)):
            tail_units = self.tail_units[u]
            for v, delay in problem.readers[u]:
                left = [
                    (self.tail_units[v][q] + problem.time_units[v][q], q)
                    for q in problem.choices[v]
                ]
                for p in problem.choices[u]:
                    row = delay[p]
                    tail_units[p] = max(
                        tail_units[p], min(left_units + row[q] for left_units, q in left)
                    )


def path_bounds(problem: IntegerProblem) -> Bounds:
    """Heads and tails by longest paths, each step on the processors that shorten it most.

    H_vq = max over inputs u of min over p of (H_up + w_up + c_uv,pq), at least the release; tails
    likewise.
    """
    bounds = Bounds(
        problem,
        [list(row) for row in problem.release_units],
        [[0] * problem.processors for _ in problem.time_units],
    )
    bounds.propagate_heads()
    bounds.propagate_tails()
    return bounds


def narrowed(bounds: Bounds, limit_units: int) -> Bounds | None:
    """Leave out choices that cannot lead to a makespan of at most `limit_units`, and what follows.

    None if an operator has no choice left: there is no such schedule.
    """
    while True:
        problem = bounds.problem
        rows = []
        for v, row in enumerate(problem.time_units):
            allowed = tuple(
                t if t < NEVER and bounds.through_units(v, p) <= limit_units else NEVER
                for p, t in enumerate(row)
            )
            if min(allowed) == NEVER:
                return None
            rows.append(allowed)
        if tuple(rows) == problem.time_units:
            return bounds
        bounds = Bounds(
            IntegerProblem(tuple(rows), problem.release_units, problem.edges),
            [list(row) for row in bounds.head_units],
            [list(row) for row in bounds.tail_units],
        )
        bounds.propagate_heads()
        bounds.propagate_tails()


SCALE = 1 << 20
STEP = 0.5


def worth(problem: IntegerProblem, rounds: int) -> tuple[int, ...]:
    """Return prices of the processors' time that make the bound by loads nearly the greatest.

    With any prices λ_p ≥ 0 of sum 1, C ≥ Σ_p λ_p load_p ≥ Σ_v min_p λ_p w_vp: the Lagrangian bound
    of scheduling on unrelated machines. Prices are raised where load gathers (a subgradient
    method). They are whole numbers, so that bounds are exact.
    """
    share = SCALE // problem.processors
    prices = best_prices = (share,) * problem.processors
    best_units = 0
    rows = Counter(problem.time_units)  # networks repeat theirs
    for round_ in range(rounds):
        loads_units, total = _cheapest(rows, prices)
        bound_units = -(-total // sum(prices))
        if bound_units > best_units:
            best_units, best_prices = bound_units, prices
        mean_units = sum(loads_units) / len(loads_units)
        if not mean_units:
            break
        step = STEP / (1 + round_) ** 0.5
        prices = tuple(
            max(1, round(price * max(0.1, 1 + step * (load_units / mean_units - 1))))
            for price, load_units in zip(prices, loads_units, strict=True)
        )
    return best_prices


def load_bound(bounds: Bounds, prices: Sequence[int]) -> int:
    """Return a bound on the makespan, in units, that any prices prove.

    As for `worth`, and a processor that has to run something is idle for the least of its
    operators' heads and again for the least of their tails.
    """
    choices = bounds.problem.choices
    forced = {row[0] for row in choices if len(row) == 1}
    _, total = _cheapest(Counter(bounds.problem.time_units), prices)
    total += sum(prices[p] * idle(bounds, range(len(choices)), p) for p in forced)
    return -(-total // sum(prices[p] for p in {p for row in choices for p in row}))


def inner_load_bound(bounds: Bounds, prices: Sequence[int], operators: Sequence[int]) -> int:
    """Return a bound on the makespan, in units, by the loads of some operators alone.

    Before the first and behind the last of them every processor runs none, whether it is forced
    to run one or not: the makespan is not below that time, so a load of nothing fits into it too.
    """
    problem = bounds.problem
    able = sorted({p for v in operators for p in problem.choices[v]})
    _, total = _cheapest(Counter(problem.time_units[v] for v in operators), prices)
    least_units = bounds.makespan_units()
    total += sum(prices[p] * min(idle(bounds, operators, p), least_units) for p in able)
    return -(-total // sum(prices[p] for p in able))


def idle(bounds: Bounds, operators: Iterable[int], p: int) -> int:
    """Return the least units before and behind all of some operators that a processor can run."""
    able = [v for v in operators if p in bounds.problem.choices[v]]
    head_units = min(bounds.head_units[v][p] for v in able)
    return head_units + min(bounds.tail_units[v][p] for v in able)


def _cheapest(rows: Mapping[tuple[int, ...], int], prices: Sequence[int]) -> tuple[list[int], int]:
    """Put operators, counted by their times, where they cost least; return loads and total."""
    loads_units = [0] * len(prices)
    total = 0
    for row, count in rows.items():
        price, p = min((prices[p] * t, p) for p, t in enumerate(row) if t < NEVER)
        loads_units[p] += count * row[p]
        total += count * price
    return loads_units, total
