"""Identical processors: those that may change places without any cost being another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from math import inf

from parapipe.cost.cost_table import CostTable, Matrix
from parapipe.graph.operator_graph import OperatorGraph


def identical_processors(graph: OperatorGraph, costs: CostTable) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two or more processors that are identical, each ascending."""
    found: list[list[int]] = []
    matrices = {costs.transfer_matrix(name) for name in graph.producer}
    for p in range(len(costs.processors)):
        group = next((g for g in found if _equal(g[0], p, graph, costs, matrices)), None)
        if group is None:
            found.append([p])
        else:
            group.append(p)
    return tuple(tuple(group) for group in found if len(group) > 1)


def _equal(
    p: int, q: int, graph: OperatorGraph, costs: CostTable, matrices: Collection[Matrix]
) -> bool:
    """Tell whether two processors may change places."""
    swapped = [q if r == p else p if r == q else r for r in range(len(costs.processors))]

    def stays(rows: Sequence[Sequence[int | float | None]]) -> bool:
        return all(rows[a][b] == rows[swapped[a]][swapped[b]] for a in swapped for b in swapped)

    def resource(r: int | None) -> int | None:
        return r if r is None or r >= len(swapped) else swapped[r]

    busy = costs.transfer_resource
    return (
        costs.static_power_w[p] == costs.static_power_w[q]
        and all(
            costs.time_s(v, p) == costs.time_s(v, q)
            and (costs.time_s(v, p) == inf or costs.energy_j(v, p) == costs.energy_j(v, q))
            for v in range(len(graph.operators))
        )
        and all(map(stays, matrices))
        and all(
            resource(busy[a][b]) == busy[swapped[a]][swapped[b]]
            for a in swapped
            for b in swapped
            if busy
        )
    )


def in_turn(mask: int, identical: Sequence[Sequence[int]]) -> bool:
    """Tell whether a set holds, of each group, the first ones."""
    return all(
        not mask >> later & 1 or mask >> before & 1
        for group in identical
        for before, later in pairwise(group)
    )


def in_a_row(mask: int, identical: Sequence[Sequence[int]]) -> bool:
    """Tell whether a set holds, of each group, only such as follow each other."""
    for group in identical:
        places = [i for i, p in enumerate(group) if mask >> p & 1]
        if places and places[-1] - places[0] + 1 != len(places):
            return False
    return True
