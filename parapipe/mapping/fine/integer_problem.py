"""The mapping problem in whole units of time, rounded down: what bounds and CP-SAT work on.

A unit is a microsecond, or a decimal fraction of it for a problem that takes less than ten
milliseconds: see `units_per_second`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from parapipe.mapping.paths import readers_of
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.units import MICRO, NANO, NEVER, whole

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
            arrival_units = [whole(s, per_second) for s in flow.transfer_s[flow.location]]
            for v in flow.consumers:
                release_units[v] = tuple(map(max, release_units[v], arrival_units))
    edges: list[list[tuple[int, Delay]]] = [[] for _ in range(problem.operators)]
    for u, readers in enumerate(readers_of(problem)):
        for v, delay_s in readers.items():
            edges[v].append((u, _whole_delay(delay_s, per_second)))
    return IntegerProblem(
        tuple(tuple(whole(s, per_second) for s in row) for row in problem.time_s),
        tuple(release_units),
        tuple(map(tuple, edges)),
    )


@lru_cache(maxsize=1024)  # tensors of one size have equal delays
def _whole_delay(delay_s: tuple[tuple[float, ...], ...], per_second: float) -> Delay:
    return tuple(tuple(whole(s, per_second) for s in row) for row in delay_s)
