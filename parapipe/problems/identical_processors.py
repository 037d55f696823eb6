"""Identical processors: those that may change places without any cost being another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from parapipe.cost.cost_table import CostTable, Matrix
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Names

Groups = tuple[tuple[int, ...], ...]


def identical_processors(graph: OperatorGraph, costs: CostTable) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two or more processors that are identical, each ascending."""
    groups: list[list[int]] = []
    matrices = {costs.transfer_matrix(name) for name in graph.producer}
    for p in range(len(costs.processors)):
        group = next((g for g in groups if _are_identical(g[0], p, graph, costs, matrices)), None)
        if group is None:
            groups.append([p])
        else:
            group.append(p)
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _are_identical(
    p: int, q: int, graph: OperatorGraph, costs: CostTable, matrices: Collection[Matrix]
) -> bool:
    """Tell whether two processors may change places."""
    swapped = [q if r == p else p if r == q else r for r in range(len(costs.processors))]

    def is_symmetric(rows: Sequence[Sequence[int | float | None]]) -> bool:
        return all(rows[a][b] == rows[swapped[a]][swapped[b]] for a in swapped for b in swapped)

    def swap_resource(r: int | None) -> int | None:
        return r if r is None or r >= len(swapped) else swapped[r]

    busy = costs.transfer_resource
    return (
        costs.static_power_w[p] == costs.static_power_w[q]
        and all(
            costs.time_s(v, p) == costs.time_s(v, q)
            and (costs.time_s(v, p) == inf or costs.energy_j(v, p) == costs.energy_j(v, q))
            for v in range(len(graph.operators))
        )
        and all(map(is_symmetric, matrices))
        and all(
            swap_resource(busy[a][b]) == busy[swapped[a]][swapped[b]]
            for a in swapped
            for b in swapped
            if busy
        )
    )


@dataclass(frozen=True, slots=True)
class Replicable:
    """Groups of identical processors that may take turns on frames.

    Parameters
    ----------
    staged
        On those of a stage of several.
    alone
        On those of the whole network, which nothing is moved to or from.
    """

    staged: Groups = ()
    alone: Groups = ()


NO_REPLICAS = Replicable()


def replicable(identical: Sequence[Sequence[int]], costs: CostTable) -> Replicable:
    """Return the groups of identical processors that may take turns on the frames of a stage.

    Those of a group are of one make and have one memory. In pipelines, processors are left out that
    transfers keep busy, or of which transfers share a link: what is moved for several frames at
    once would meet there.
    """
    busy, system = costs.transfer_resource, costs.memory_system

    def are_replicable(p: int, q: int) -> bool:
        memory = system.memory_of if system else dict.fromkeys(costs.processors, 0)
        return (
            memory[costs.processors[p]] == memory[costs.processors[q]]
            and (not costs.makes or costs.makes[p] == costs.makes[q])
            and (not costs.working or costs.working[p] == costs.working[q])
        )

    def is_free(p: int) -> bool:
        ends = ((busy[p][q], busy[q][p]) for q in range(len(busy)))
        return all(pair == (None, None) for pair in ends)

    groups: list[tuple[int, ...]] = []
    for group in identical:
        left = [*group]
        while left:
            groups.append(tuple(p for p in left if are_replicable(left[0], p)))
            left = [p for p in left if p not in groups[-1]]
    staged = (tuple(filter(is_free, each)) for each in groups)
    return Replicable(_without_singles(staged), _without_singles(groups))


def _without_singles(groups: Iterable[tuple[int, ...]]) -> Groups:
    return tuple(each for each in groups if len(each) > 1)


def replica_sets(groups: Groups) -> dict[int, list[int]]:
    """Return sets of processors of a group that follow each other, by the bit of their first."""
    return {
        1 << p: [sum(1 << q for q in group[i:end]) for end in range(i + 2, len(group) + 1)]
        for group in groups
        for i, p in enumerate(group[:-1])
    }


def is_leading(mask: int, identical: Sequence[Sequence[int]]) -> bool:
    """Tell whether a set holds, of each group, the first ones."""
    return all(
        not mask >> later & 1 or mask >> before & 1
        for group in identical
        for before, later in pairwise(group)
    )


def is_consecutive(mask: int, identical: Sequence[Sequence[int]]) -> bool:
    """Tell whether a set holds, of each group, only such as follow each other."""
    for group in identical:
        places = [i for i, p in enumerate(group) if mask >> p & 1]
        if places and places[-1] - places[0] + 1 != len(places):
            return False
    return True


def names_in_order(problem: MappingProblem, identical: Sequence[Sequence[int]]) -> Names:
    """Return new numbers of a problem's processors, equal for what differs in identical ones only.

    Processors of a group change places: by what may run there, then by where tensors from outside
    are.
    """
    names = list(range(problem.processors))
    outside = [flow for flow in problem.flows if flow.location is not None]

    def role(p: int) -> tuple[object, ...]:
        return (
            [row[p] for row in problem.time_s],
            [
                (flow.location != p, flow.transfer_s[flow.location][p])
                for flow in outside
                if flow.location is not None
            ],
        )

    for group in identical:
        for new, p in zip(group, sorted(group, key=role), strict=True):
            names[p] = new
    return tuple(names)
