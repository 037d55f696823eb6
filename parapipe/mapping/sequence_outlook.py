"""What operators that run one at a time can expect of those behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import TypeVar

from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.ranks import supporting

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outlook:
    """Tables of a problem whose operators run one at a time, in its order.

    Parameters
    ----------
    support
        Processors that support each operator.
    made_by, read_by
        Numbers of the flows with a producer that each operator makes, if somebody reads them, and
        of those that it reads.
    release_s
        `release_s[v][p]`: second at which all tensors from outside have arrived for v on p.
    rest_s
        `rest_s[v][p]`: seconds from the end of v on p to the last end, at least. It is the
        shortest path if operators wait for nothing but what their neighbour has made.
    hidden_s
        `hidden_s[v][f][q]`, for each flow f that is made but not yet read by all when v has run:
        the least seconds from the end of v to the start of the next reader that q supports. What
        arrives on q by then is never waited for. Infinite if there is no such reader.
    """

    support: tuple[tuple[int, ...], ...]
    made_by: tuple[tuple[int, ...], ...]
    read_by: tuple[tuple[int, ...], ...]
    release_s: tuple[tuple[float, ...], ...]
    rest_s: tuple[tuple[float, ...], ...]
    hidden_s: tuple[Mapping[int, tuple[float, ...]], ...]


def outlook_of(problem: MappingProblem) -> Outlook:
    """Build the tables."""
    made_by: list[list[int]] = [[] for _ in problem.time_s]
    read_by: list[list[int]] = [[] for _ in problem.time_s]
    release_s = [[0.0] * problem.processors for _ in problem.time_s]
    for f, flow in enumerate(problem.flows):
        if flow.home is not None:
            for v in flow.consumers:
                release_s[v] = [*map(max, release_s[v], flow.transfer_s[flow.home])]
        elif flow.producer is not None and flow.consumers:
            made_by[flow.producer].append(f)
            for v in flow.consumers:
                read_by[v].append(f)
    return Outlook(
        support=supporting(problem),
        made_by=_frozen(made_by),
        read_by=_frozen(read_by),
        release_s=_frozen(release_s),
        rest_s=_rest_s(problem),
        hidden_s=_hidden_s(problem),
    )


def _rest_s(problem: MappingProblem) -> tuple[tuple[float, ...], ...]:
    support = supporting(problem)
    hops: list[list[Flow]] = [[] for _ in problem.time_s]
    for flow in problem.flows:
        if flow.producer is not None and flow.producer + 1 in flow.consumers:
            hops[flow.producer].append(flow)
    rest_s = [[0.0] * problem.processors for _ in problem.time_s]
    for v in reversed(range(problem.operators - 1)):
        for p in support[v]:
            rest_s[v][p] = min(
                max((flow.transfer_s[p][q] for flow in hops[v]), default=0.0)
                + problem.time_s[v + 1][q]
                + rest_s[v + 1][q]
                for q in support[v + 1]
            )
    return _frozen(rest_s)


def _hidden_s(problem: MappingProblem) -> tuple[Mapping[int, tuple[float, ...]], ...]:
    begin_s = [0.0, *accumulate(min(row) for row in problem.time_s)]
    hidden_s: list[dict[int, tuple[float, ...]]] = [{} for _ in problem.time_s]
    for f, flow in enumerate(problem.flows):
        if flow.producer is None:
            continue
        next_s = [inf] * problem.processors
        readers = set(flow.consumers)
        for v in reversed(range(flow.producer, max(readers, default=0))):
            if v + 1 in readers:
                row = problem.time_s[v + 1]
                next_s = [
                    begin_s[v + 1] if time_s < inf else later_s
                    for time_s, later_s in zip(row, next_s, strict=True)
                ]
            hidden_s[v][f] = tuple(begin - begin_s[v + 1] for begin in next_s)
    return tuple(hidden_s)


def _frozen(rows: Iterable[Iterable[T]]) -> tuple[tuple[T, ...], ...]:
    return tuple(tuple(row) for row in rows)
