"""Where each operator stands in a picture of the network: subgraph by subgraph, left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SubgraphLayout:
    """A subgraph in the picture: its size, and column and level of each operator.

    A column holds operators that are equally far from the subgraph's start; levels are counted from
    the middle, which is 0.
    """

    columns: int
    levels: int
    places: Mapping[str, tuple[int, float]]


def layout(
    subgraphs: Sequence[Sequence[str]], flows: Sequence[tuple[str, str]]
) -> tuple[SubgraphLayout, ...]:
    """Lay out the operators of each subgraph, the order of the operators being topological.

    An operator stays in the level of one that it reads if no other continues it; else it takes the
    free level that is nearest. An operator that nothing stands beside is in the middle.
    """
    reads: dict[str, list[str]] = {}
    for source, target in flows:
        reads.setdefault(target, []).append(source)
    return tuple(_layout(operators, reads) for operators in subgraphs)


def _layout(operators: Sequence[str], reads: Mapping[str, Sequence[str]]) -> SubgraphLayout:
    column: dict[str, int] = {}
    level: dict[str, int] = {}
    taken: list[int] = []  # by level, the first column that is free
    ends: list[str] = []  # by level, the operator that stands last in it
    last_read = _last_columns(operators, reads, column)
    for operator in operators:
        at = column[operator]
        mine = [level[source] for source in reads.get(operator, ()) if source in level]
        free = [i for i, until in enumerate(taken) if until <= at]
        continued = [i for i in mine if i in free and ends[i] in reads[operator]]
        if continued:
            chosen = min(continued)
        elif free:
            wanted = sum(mine) / len(mine) if mine else 0.0
            chosen = min(free, key=lambda i: (abs(i - wanted), i))
        else:
            chosen = len(taken)
            taken.append(0)
            ends.append("")
        level[operator] = chosen
        ends[chosen] = operator
        # what is read further on keeps its level free of others that would hide the line
        taken[chosen] = max(at + 1, last_read[operator])
    places = _centred(column, level, last_read)
    return SubgraphLayout(max(column.values()) + 1, len(taken), places)


def _last_columns(
    operators: Sequence[str], reads: Mapping[str, Sequence[str]], column: dict[str, int]
) -> dict[str, int]:
    """Fill in the columns; return the column of the last reader of each operator."""
    last = dict.fromkeys(operators, 0)
    for operator in operators:
        sources = [source for source in reads.get(operator, ()) if source in column]
        column[operator] = max((column[source] + 1 for source in sources), default=0)
        for source in sources:
            last[source] = max(last[source], column[operator])
    return last


def _centred(
    column: Mapping[str, int], level: Mapping[str, int], last_read: Mapping[str, int]
) -> dict[str, tuple[int, float]]:
    beside: dict[int, set[int]] = {}
    for operator, first in column.items():
        for at in range(first, max(first + 1, last_read[operator])):
            beside.setdefault(at, set()).add(level[operator])
    middle = max(level.values()) / 2
    return {
        operator: (at, 0.0 if len(beside[at]) == 1 else level[operator] - middle)
        for operator, at in column.items()
    }
