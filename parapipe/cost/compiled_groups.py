"""Which operators of a graph a compiler runs at one go, as the rows of profiles say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from parapipe.cost.profile import COMPILED, UNPRICED, Profile
from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.joined import can_join, join_groups
from parapipe.graph.operator_graph import OperatorGraph

_Then = tuple[str, ...]


def join_compiled(graph: OperatorGraph, profiles: Sequence[Profile] | None) -> OperatorGraph:
    """Return the graph with those operators as one that a compiler fuses, so no cut parts them.

    A row that was compiled names in `then` what ran at one go with an operator of its signature.
    Where such operators follow in the graph, they are joined; of several such rows, that with the
    most counts. Of two operators that could be joined with the same third one, the later is.
    """
    fused = _fused_types(profiles or ())
    if not fused or graph.granularity != "fused":
        return graph
    return join_groups(graph, _groups(graph, fused))


def _fused_types(profiles: Sequence[Profile]) -> Mapping[Signature, Sequence[_Then]]:
    """Return what follows each signature at one go, the longest first, whatever the data type."""
    types: dict[Signature, set[_Then]] = defaultdict(set)
    for m in (m for profile in profiles for m in profile.measurements):
        if m.method in {COMPILED, UNPRICED} and m.then:
            types[replace(m.signature, dtype="")].add(tuple(m.then.split()))
    return {key: sorted(some, key=lambda each: (-len(each), each)) for key, some in types.items()}


def _groups(
    graph: OperatorGraph, fused: Mapping[Signature, Sequence[_Then]]
) -> Iterator[Sequence[int]]:
    for v in reversed(range(len(graph.operators))):
        signature = replace(signature_of(graph.operators[v].singles[0], graph), dtype="")
        for then in fused.get(signature, ()):
            if group := _group_of(graph, v, then):
                yield group
                break


def _group_of(graph: OperatorGraph, first: int, then: _Then) -> Sequence[int]:
    """Return the operators that begin with one and continue by these types; none if others do."""
    group, left = [first], then
    own = _types(graph, first)[1:]
    if left[: len(own)] != own:
        return ()
    left = left[len(own) :]
    while left:
        readers = sorted({w for v in group for w in graph.successors(v)}.difference(group))
        fitting = (w for w in readers if left[: len(_types(graph, w))] == _types(graph, w))
        following = next(fitting, None)
        if following is None:
            return ()
        group.append(following)
        left = left[len(_types(graph, following)) :]
    return group if can_join(graph, sorted(group)) else ()


def _types(graph: OperatorGraph, v: int) -> _Then:
    return tuple(single.type for single in graph.operators[v].singles)
