"""Seconds as whole microseconds, rounded down, which is what solvers count in."""

from __future__ import annotations

from dataclasses import replace
from math import floor, inf

from parapipe.mapping.problem import MappingProblem

MICRO = 1e6
NANO = 1e9
ROUNDING = 1e-6  # of a unit, so that 0.009 s, as a double a little less, counts 9000 microseconds
NEVER = 1 << 50  # more than any sum of times that occurs; small enough to be added up


def whole(amount: float, per_one: float = MICRO) -> int:
    """Round down to whole units, so many of which are one second or joule; `NEVER` if infinite."""
    return NEVER if amount == inf else floor(amount * per_one + ROUNDING)


def rounded_down(problem: MappingProblem, per_second: float = MICRO) -> MappingProblem:
    """Return the problem with every time rounded down to whole units.

    A unit stands there as a microsecond, however many of them a second has.
    """

    def rounded(row: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(inf if s == inf else whole(s, per_second) / MICRO for s in row)

    flows = tuple(
        replace(flow, transfer_s=tuple(map(rounded, flow.transfer_s))) for flow in problem.flows
    )
    return replace(problem, time_s=tuple(map(rounded, problem.time_s)), flows=flows)
