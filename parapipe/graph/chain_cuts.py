"""Cuts inside units that are chains of operators: inside skip connections around them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain, combinations, pairwise

from parapipe.graph.cuts import MOST_LIVE, lossless
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import CutGraph, Partition, Run, live_behind, unit_of

LARGEST_SHARE = 0.05  # of a network's work, in what runs between two cuts where there may be more


def cuts_in_chains(
    graph: OperatorGraph, partition: Partition, time_s: Sequence[float]
) -> CutGraph | None:
    """Return cuts between units and inside large chains; None if there are none of these.

    In a chain each operator waits for all that stand before it, so nothing is parallel, but tensors
    may skip operators. One that holds more than `LARGEST_SHARE` of the work is cut into runs of at
    most so much, if they are no single operators, wherever few tensors are live. The whole unit
    remains as an alternative for several processors, and so does what several of its runs are
    together where a tensor may come in while operators run that do not read it.

    Parameters
    ----------
    time_s
        Work of each operator, such as its least time on any processor.
    """
    largest_s = LARGEST_SHARE * sum(time_s)
    before: set[int] = set()
    parts: list[list[Sequence[int]]] = []
    for unit in partition.units:
        parts.append(list(_parts(graph, unit.operators, before, time_s, largest_s)))
        before.update(unit.operators)
    ends = [0, *accumulate(map(len, parts))]
    stretches = tuple(tuple(part) for each in parts for part in each)
    if len(stretches) == len(partition.units):
        return None
    operators = list(chain.from_iterable(stretches))
    sizes = accumulate(map(len, stretches), initial=0)
    boundaries = tuple(live_behind(graph, operators[:size]) for size in sizes)
    runs: list[list[Run]] = [[] for _ in stretches]
    for unit_ends in pairwise(ends):
        for begin, end in combinations(range(unit_ends[0], unit_ends[1] + 1), 2):
            inside = list(chain.from_iterable(stretches[begin:end]))
            alone = end == begin + 1 or _overlaps(graph, boundaries[begin], inside)
            if alone or (begin, end) == unit_ends:
                runs[begin].append(Run(end, unit_of(graph, inside), alone))
    for each in partition.merged_units:
        runs[ends[each.begin]].append(Run(ends[each.end], each.unit, alone=False))
    line = tuple(range(len(boundaries)))
    return CutGraph(boundaries, tuple(map(tuple, runs)), line, stretches)


def _parts(
    graph: OperatorGraph,
    operators: Sequence[int],
    before: Collection[int],
    time_s: Sequence[float],
    largest_s: float,
) -> Iterator[Sequence[int]]:
    """Yield what a unit is cut into; one that is small or no chain stays as it is."""
    large = len(operators) > 1 and sum(time_s[v] for v in operators) > largest_s
    if not large or not all(lossless(graph, operators, [True] * len(graph.operators))):
        yield operators
        return
    begin, sum_s = 0, 0.0
    for end in range(1, len(operators)):
        sum_s += time_s[operators[end - 1]]
        enough = sum_s + time_s[operators[end]] > largest_s
        if enough and len(live_behind(graph, [*before, *operators[:end]])) <= MOST_LIVE:
            yield operators[begin:end]
            begin, sum_s = end, 0.0
    yield operators[begin:]


def _overlaps(graph: OperatorGraph, live: Sequence[str], operators: Sequence[int]) -> bool:
    """Tell whether one of the tensors before a chain is first read behind its first operator."""
    readers = ({*graph.consumers[name]}.intersection(operators) for name in live)
    return any(some and operators[0] not in some for some in readers)
