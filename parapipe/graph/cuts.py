"""Second-level cuts: where few tensors are live, inside units that single cuts leave oversize.

Single cuts do not help where tensors skip far: in a U-Net, a PAN neck, a DenseNet. A unit is
*oversize* if it holds more than `OVERSIZE` single operators (the largest block of the paper's
convolutional networks has 24). Its operators are put into an order in which few tensors are live;
a cut may be made where no more than `MOST_LIVE` are.

A cut *loses nothing* if every heavy operator behind it waits for every heavy one before it. All
such places are cut. Units that are oversize still are cut at the other places, too, where the
fewest tensors are live altogether so that none stays oversize, if that can be. There operators that
could have run side by side no longer do, so the whole remains as a merged unit, an alternative to
its parts. A unit that stays oversize all the same, as in PETR's decoder, is hard enough to map:
beside it, only cuts where one tensor is live are kept, unless it is a mere chain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile

from parapipe.graph.lifetimes import Lifetime, count_live_behind, low_memory_order
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.subgraphs import parallelism

OVERSIZE = 32
MOST_LIVE = 3
LARGEST_MERGED = 32  # operators, fused ones counted once
HEAVY = 0.005  # of all multiply-accumulates, or of all bytes that are moved


def heavy_operators(graph: OperatorGraph) -> list[bool]:
    """Tell of each operator whether its share of the work is worth overlapping with others."""
    all_work = [operator.work for operator in graph.operators]
    macs = [work.macs for work in all_work]
    moved = [work.read_bytes + work.written_bytes for work in all_work]
    least_macs, least_moved = HEAVY * sum(macs), HEAVY * sum(moved)
    return [
        bool(m and m >= least_macs) or bool(b and b >= least_moved)
        for m, b in zip(macs, moved, strict=True)
    ]


def cut_unit(
    graph: OperatorGraph,
    operators: Sequence[int],
    before: Collection[str],
    behind: Collection[str],
    heavy: Sequence[bool],
    *,
    other: Mapping[int, int],
) -> list[tuple[int, ...]]:
    """Cut a unit into smaller ones; one that is not oversize stays as it is.

    Parameters
    ----------
    operators
        Indices of its operators, in topological order. Where orders of few live tensors are equal,
        this one decides, or the other one if its parts leave more to run side by side.
    before, behind
        Names of the tensors that are live before it and behind it.
    heavy
        Of each operator of the graph, whether it counts as heavy.
    other
        Place of each operator of the graph in another topological order.

    Returns
    -------
    The operators of each smaller unit, in a topological order.
    """
    if not is_oversize(graph, operators):
        return [tuple(operators)]
    orders = (operators, sorted(operators, key=other.__getitem__))
    candidates = [_cut_in_order(graph, order, before, behind, heavy) for order in orders]
    return min(candidates, key=lambda parts: _loss(graph, parts))


def _loss(graph: OperatorGraph, parts: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Count operators in oversize parts, and multiply-accumulates on the longest paths of parts."""
    large = sum(len(part) for part in parts if is_oversize(graph, part))
    serial_macs = 0
    for part in parts:
        until: dict[int, int] = {}
        for v in part:
            longest = max((until.get(u, 0) for u in graph.predecessors(v)), default=0)
            until[v] = longest + graph.operators[v].work.macs
        serial_macs += max(until.values())
    return large, serial_macs


def _cut_in_order(
    graph: OperatorGraph,
    operators: Sequence[int],
    before: Collection[str],
    behind: Collection[str],
    heavy: Sequence[bool],
) -> list[tuple[int, ...]]:
    lifetimes = _tensor_lifetimes(graph, operators, before, behind)
    ranks = low_memory_order(len(operators), lifetimes)
    order = [operators[rank] for rank in ranks]
    live = count_live_behind(ranks, lifetimes)
    sizes = [len(graph.operators[v].singles) for v in order]
    free = lossless_cuts(graph, order, heavy)
    ends: list[int] = []
    begin, allowed = 0, list[int]()
    for i, few in enumerate(live):
        last = i == len(order) - 1
        if few <= MOST_LIVE or last:
            allowed.append(i - begin)
        if last or (few <= MOST_LIVE and free[i]):
            chosen = _choose_cuts(sizes[begin : i + 1], live[begin : i + 1], allowed)
            ends += [begin + end for end in chosen]
            begin, allowed = i + 1, []
    retained = _without_costly_cuts(graph, order, ends, live)
    return [tuple(order[a:b]) for a, b in pairwise([0, *(end + 1 for end in retained)])]


def _without_costly_cuts(
    graph: OperatorGraph, order: Sequence[int], ends: Sequence[int], live: Sequence[int]
) -> list[int]:
    """Leave out cuts that multiply the locations around an oversize unit that is hard to map.

    Hard are oversize units inside which operators may run side by side. Beside such a unit, cuts
    are left out up to the next place where a single tensor is live.
    """
    left_out: set[int] = set()
    for i, (begin, end) in enumerate(pairwise([0, *(end + 1 for end in ends)])):
        unit = order[begin:end]
        if is_oversize(graph, unit) and _is_wide(graph, unit):
            left_out.update(takewhile(lambda at: live[at] > 1, reversed(ends[:i])))
            left_out.update(takewhile(lambda at: live[at] > 1, ends[i:-1]))
    return [end for end in ends if end not in left_out]


def lossless_cuts(graph: OperatorGraph, order: Sequence[int], heavy: Sequence[bool]) -> list[bool]:
    """Tell for each position whether all heavy operators behind it wait for all those up to it.

    Parameters
    ----------
    order
        Operators in a topological order; edges that leave them do not count.
    """
    bit = {v: 1 << i for i, v in enumerate(v for v in order if heavy[v])}
    waits_for: dict[int, int] = {}
    for v in order:
        waits_for[v] = 0
        for u in graph.predecessors(v):
            waits_for[v] |= waits_for.get(u, 0) | bit.get(u, 0)
    flags: list[bool] = []
    common = before = sum(bit.values())
    for v in reversed(order):
        flags.append(not before & ~common)
        if v in bit:
            before ^= bit[v]
            common &= waits_for[v]
    return flags[::-1]


def mergeable_ranges(
    graph: OperatorGraph, units: Sequence[Sequence[int]], live: Sequence[int], heavy: Sequence[bool]
) -> list[tuple[int, int]]:
    """Find runs of units that lose by the cuts between them: side towers, heads, parts of one.

    Parameters
    ----------
    units
        Operators of each unit, the units in order.
    live
        Number of tensors that are live before each unit, and behind the last one.
    heavy
        Of each operator of the graph, whether it counts as heavy.

    Returns
    -------
    Ranges of units, ends exclusive, ascending and apart: as long as may be, with no more than
    `LARGEST_MERGED` operators, and with no more than `MOST_LIVE` tensors live at either end: larger
    mapping problems may take a minute each, and there is one for each combination of locations.
    """
    free = lossless_cuts(graph, [v for unit in units for v in unit], heavy)
    ends = accumulate(len(unit) for unit in units)
    tied = [not free[end - 1] for end in ends]  # to the unit behind
    sizes = [len(unit) for unit in units]
    ranges: list[tuple[int, int]] = []
    begin = 0
    while begin < len(units):
        best = begin + 1
        end, size = begin + 1, sizes[begin]
        while end < len(units) and tied[end - 1] and (size := size + sizes[end]) <= LARGEST_MERGED:
            end += 1
            if max(live[begin], live[end]) <= MOST_LIVE:
                best = end
        if best > begin + 1:
            ranges.append((begin, best))
        begin = best
    return ranges


def _is_wide(graph: OperatorGraph, operators: Sequence[int]) -> bool:
    return parallelism(operators, {v: graph.successors(v) for v in operators}) > 1


def is_oversize(graph: OperatorGraph, operators: Sequence[int]) -> bool:
    """Tell whether a unit holds too many single operators: a fused one stands for several."""
    return sum(len(graph.operators[v].singles) for v in operators) > OVERSIZE


def _tensor_lifetimes(
    graph: OperatorGraph, operators: Sequence[int], before: Collection[str], behind: Collection[str]
) -> list[Lifetime]:
    """Tensors that are live somewhere in a unit; nodes are ranks in `operators`."""
    rank = {v: i for i, v in enumerate(operators)}
    maker = {name: i for i, v in enumerate(operators) for name in graph.operators[v].outputs}
    lifetimes = []
    for name in (*before, *maker):
        inside = frozenset(rank[v] for v in graph.consumers.get(name, ()) if v in rank)
        if inside or name in behind:
            lifetimes.append(Lifetime(maker.get(name), inside, name in behind))
    return lifetimes


def _choose_cuts(sizes: Sequence[int], live: Sequence[int], allowed: Sequence[int]) -> list[int]:
    """Choose cuts among the allowed: least operators beyond the limit, then fewest live tensors.

    Behind the last allowed position a cut must be made.
    """
    before = [0, *accumulate(sizes)]
    best: list[tuple[int, int, int]] = []  # excess, live tensors, index of the cut before
    for i, end in enumerate(allowed):
        options = []
        for j in range(i - 1, -2, -1):
            start = 0 if j < 0 else allowed[j] + 1
            size = before[end + 1] - before[start]
            excess, cost, _ = best[j] if j >= 0 else (0, 0, -1)
            options.append((excess + max(0, size - OVERSIZE), cost + live[end], j))
            if size > OVERSIZE:
                break  # a longer unit would exceed the limit by more
        best.append(min(options))
    chosen = [len(allowed) - 1]
    while (previous := best[chosen[-1]][2]) >= 0:
        chosen.append(previous)
    return [allowed[i] for i in reversed(chosen)]
