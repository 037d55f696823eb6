"""Operators that a compiler runs at one go are one operator, so that no cut lies between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.rewrites import join_parts


def join_groups(graph: OperatorGraph, groups: Iterable[Sequence[int]]) -> OperatorGraph:
    """Return the graph with each group of operators as one, where that is possible.

    Parameters
    ----------
    groups
        Numbers of operators. A group stays as it is if something outside it reads what another one
        than its last makes, if it has an operator of an earlier group, or if an operator is of
        another domain, quantised, or control flow.
    """
    taken: dict[int, tuple[int, ...]] = {}
    for group in groups:
        members = tuple(sorted(set(group)))
        if can_join(graph, members) and taken.keys().isdisjoint(members):
            taken.update(dict.fromkeys(members, members))
    if not taken:
        return graph
    operators = (
        _joined(graph, taken[v]) if v in taken else operator
        for v, operator in enumerate(graph.operators)
        if v not in taken or v == taken[v][-1]
    )
    return replace(graph, operators=tuple(operators))


def join_as(graph: OperatorGraph, members: Iterable[Collection[str]]) -> OperatorGraph:
    """Return the graph with those operators as one that are one elsewhere, as in a plan.

    Parameters
    ----------
    members
        Names of the nodes of each operator there.
    """
    place = {name: i for i, names in enumerate(members) for name in names}
    groups: dict[int, list[int]] = {}
    for v, operator in enumerate(graph.operators):
        for i in {place[name] for name in operator.members if name in place}:
            groups.setdefault(i, []).append(v)
    return join_groups(graph, groups.values())


def can_join(graph: OperatorGraph, members: Sequence[int]) -> bool:
    """Tell whether operators can be one, given by number in ascending order.

    If only the last one's results are read elsewhere, no way through the network leaves the group
    and comes back to it, and all that the group reads is there before the last one runs.
    """
    if len(members) < 2:
        return False
    if any(not _is_plain(graph.operators[v]) for v in members):
        return False
    inner = (name for v in members[:-1] for name in graph.operators[v].outputs if name)
    return all(
        name not in graph.outputs
        and graph.consumers.get(name)
        and set(graph.consumers[name]) <= set(members)
        for name in inner
    )


def _is_plain(operator: Operator) -> bool:
    return not (operator.domain or operator.computes_in or operator.opaque)


def _joined(graph: OperatorGraph, members: Sequence[int]) -> Operator:
    return join_parts([single for v in members for single in graph.operators[v].singles])
