"""Cuts inside units: at every ideal of a small network, inside chains of a large one.

An *ideal* is a set of operators that holds all that its members wait for: what may lie before a
cut. An order of the operators passes through some of them only. Source: Tarnawski et al., Efficient
algorithms for device placement of DNN graph operators, NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, combinations, pairwise

from parapipe.graph.cuts import MOST_LIVE, lossless_cuts
from parapipe.graph.operator_graph import OperatorGraph, canonical_order
from parapipe.graph.partition import CutGraph, Partition, Run, live_behind, make_unit

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
        parts.append(list(_cut_chain(graph, unit.operators, before, time_s, largest_s)))
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
            alone = end == begin + 1 or _may_overlap(graph, boundaries[begin], inside)
            if alone or (begin, end) == unit_ends:
                runs[begin].append(Run(end, make_unit(graph, inside), alone))
    for each in partition.merged_units:
        runs[ends[each.begin]].append(Run(ends[each.end], each.unit, alone=False))
    line = tuple(range(len(boundaries)))
    return CutGraph(boundaries, tuple(map(tuple, runs)), line, stretches)


def _cut_chain(
    graph: OperatorGraph,
    operators: Sequence[int],
    before: Collection[int],
    time_s: Sequence[float],
    largest_s: float,
) -> Iterator[Sequence[int]]:
    """Yield what a unit is cut into; one that is small or no chain stays as it is."""
    large = len(operators) > 1 and sum(time_s[v] for v in operators) > largest_s
    if not large or not all(lossless_cuts(graph, operators, [True] * len(graph.operators))):
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


def _may_overlap(graph: OperatorGraph, live: Sequence[str], operators: Sequence[int]) -> bool:
    """Tell whether one of the tensors before a chain is first read behind its first operator."""
    readers = ({*graph.consumers[name]}.intersection(operators) for name in live)
    return any(some and operators[0] not in some for some in readers)


MOST_OPERATORS = 24  # of a network that is cut at every ideal
MOST_IDEALS = 36  # all boundaries of a first pass and of bounds, see pipeline.search


def cuts_at_ideals(
    graph: OperatorGraph, partition: Partition, fits: Callable[[CutGraph], bool]
) -> CutGraph | None:
    """Return cuts at every ideal behind which few tensors are live; None if that is too much.

    What runs between two of them is what would lose if it was cut once more: a single operator, or
    operators that may run side by side. Units and merged units are there, too. If what runs makes
    too many problems, the largest are left out, except for units and merged ones.

    Parameters
    ----------
    fits
        Tells whether cuts make few enough problems.
    """
    small = len(graph.operators) <= MOST_OPERATORS
    lattice = _Lattice.of(graph, partition) if small else None
    if lattice is None:
        return None
    ideals = lattice.ideals
    every = [list(lattice.runs(graph, ideal)) for ideal in ideals[:-1]]
    boundaries = tuple(live_behind(graph, lattice.operators(ideal)) for ideal in ideals)
    # those that the order passes through: all operators up to a place in it
    line = [at for at, ideal in enumerate(ideals) if not ideal & (ideal + 1)]
    stretches = tuple(tuple(lattice.operators(ideals[b] ^ ideals[a])) for a, b in pairwise(line))
    sizes = {len(run.unit.operators) for runs in every for run, _ in runs}
    for most in sorted(sizes, reverse=True):
        runs = tuple(
            tuple(run for run, required in some if required or len(run.unit.operators) <= most)
            for some in every
        )
        if fits(cut_graph := CutGraph(boundaries, runs, tuple(line), stretches, few=True)):
            return cut_graph
    return None


@dataclass(frozen=True, slots=True)
class _Lattice:
    """Ideals of a network as bit masks; bits are places in the partition's order.

    Parameters
    ----------
    waits
        Of each operator, all that it waits for.
    ideals
        Those at which stages may be cut, smaller ones first.
    units
        Pairs of ideals between which a unit lies, or several that are merged.
    """

    order: tuple[int, ...]
    waits: Sequence[int]
    ideals: Sequence[int]
    units: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, graph: OperatorGraph, partition: Partition) -> _Lattice | None:
        """Return what there is to choose from; None if it is too much."""
        rank = {v: i for i, v in enumerate(canonical_order(graph))}
        order = tuple(
            v for unit in partition.units for v in sorted(unit.operators, key=rank.__getitem__)
        )
        waits = _waiting_masks(graph, order)
        every = _all_ideals(waits)
        if every is None:
            return None
        sizes = accumulate((len(unit.operators) for unit in partition.units), initial=0)
        ends = [(1 << size) - 1 for size in sizes]
        merged = ((ends[each.begin], ends[each.end]) for each in partition.merged_units)
        lattice = cls(order, waits, every, frozenset({*pairwise(ends), *merged}))
        few = [
            ideal
            for ideal in every
            if ideal in ends or len(live_behind(graph, lattice.operators(ideal))) <= MOST_LIVE
        ]
        return replace(lattice, ideals=few)

    def operators(self, ideal: int) -> list[int]:
        """Return the operators of a set, in order."""
        return [v for i, v in enumerate(self.order) if ideal >> i & 1]

    def runs(self, graph: OperatorGraph, begin: int) -> Iterator[tuple[Run, bool]]:
        """Yield what may run from an ideal on, and whether there is no other way."""
        for at, end in enumerate(self.ideals):
            if begin == end or begin & ~end:
                continue
            unit = (begin, end) in self.units
            between = [i for i in self.ideals if i not in (begin, end) and begin & i == begin]
            between = [i for i in between if not i & ~end]
            if unit or not any(self._loses_nothing(begin, i, end) for i in between):
                # as in units, operators stand as in the graph
                operators = sorted(self.operators(end & ~begin))
                alone = not between or self._may_overlap(graph, begin, end)
                yield Run(at, make_unit(graph, operators), alone), unit or not between

    def _may_overlap(self, graph: OperatorGraph, begin: int, end: int) -> bool:
        """Tell whether a tensor may come in while operators run that do not wait for it.

        If not, one processor takes as long for the operators one by one.
        """
        inside = [i for i in range(len(self.order)) if (end & ~begin) >> i & 1]
        for name in live_behind(graph, self.operators(begin)):
            readers = sum(1 << i for i in inside if self.order[i] in graph.consumers[name])
            if readers and any(not (self.waits[i] | 1 << i) & readers for i in inside):
                return True
        return False

    def _loses_nothing(self, begin: int, cut: int, end: int) -> bool:
        """Tell whether all behind a cut wait for all before it, between two ideals."""
        before, behind = cut & ~begin, end & ~cut
        return all(not before & ~waits for i, waits in enumerate(self.waits) if behind >> i & 1)


def _waiting_masks(graph: OperatorGraph, order: Sequence[int]) -> list[int]:
    """Return of each operator all that it waits for, as bit masks; operators are places."""
    place = {v: i for i, v in enumerate(order)}
    masks: list[int] = []
    for v in order:
        mask = 0
        for u in graph.predecessors(v):
            mask |= 1 << place[u] | masks[place[u]]
        masks.append(mask)
    return masks


def _all_ideals(waits: Sequence[int]) -> list[int] | None:
    """Return all ideals, smaller ones first; None if there are more than `MOST_IDEALS`."""
    ideals = same_size = [0]
    while len(ideals) <= MOST_IDEALS:
        larger = {
            ideal | 1 << i
            for ideal in same_size
            for i, before in enumerate(waits)
            if not ideal >> i & 1 and not before & ~ideal
        }
        if not larger:
            return ideals
        same_size = sorted(larger)
        ideals = ideals + same_size
    return None
