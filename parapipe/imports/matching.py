"""Which operators of a model a tool's layers stand for: by names, then by order and shapes.

A layer that names operators stands for these. Of the others, layers and operators of one kind with
equal shapes stand for each other in their order if there are as many of both; of what remains, the
longest common row of both orders. An operator that no layer stands for belongs to the layer of a
neighbour if it is of a kind that runtimes fuse and no layer remains that may be it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.cost.pricing import folded_into
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.imports.kinds import JOINS_OTHERS, PASSING, kind_of
from parapipe.imports.layers import Layer
from parapipe.imports.names import OperatorNames


@dataclass(frozen=True, slots=True)
class Block:
    """Operators of which only the time of all together is known; often one.

    Parameters
    ----------
    operators
        Numbers, ascending; no views.
    time_s
        Of all layers that stand for any of them.
    place
        Where the longest of these ran, in the tool's words.
    """

    operators: tuple[int, ...]
    time_s: float
    place: str


@dataclass(frozen=True, slots=True)
class Matches:
    """Layers and operators, brought together.

    Parameters
    ----------
    blocks
        In the order of the graph.
    unmatched
        Layers that stand for no operator, in their order.
    inserted_s
        Seconds of conversions of layouts and types and of views, which are in those of blocks.
    without
        Numbers of operators that no layer stands for, views not among them.
    """

    blocks: tuple[Block, ...]
    unmatched: tuple[Layer, ...]
    inserted_s: float
    without: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Subject:
    """A single operator as a layer may tell of it: the number of its operator, and what it is."""

    operator: int
    kind: str
    extents: tuple[int, ...]
    kernel: tuple[int, ...]

    def as_told(self, layer: Layer) -> Hashable:
        """Return as much of it as a layer tells of itself."""
        return (
            self.kind,
            self.extents if layer.shapes else None,
            self.kernel if layer.kernel else None,
        )


def match_layers(graph: OperatorGraph, layers: Sequence[Layer]) -> Matches:
    """Bring the layers of one inference and a graph's operators together.

    Parameters
    ----------
    layers
        In the order in which they ran.
    """
    names = OperatorNames(graph)
    every = [v for v, each in enumerate(graph.operators) if not _is_view(each)]
    links: dict[int, tuple[int, ...]] = {}
    for i, layer in enumerate(layers):
        if layer.whole:
            links[i] = tuple(every)
        elif not layer.inserted and (named := names.named_in(layer.name)):
            links[i] = named
    subjects = [*_subjects(graph)]
    for by_order in (_in_equal_numbers, _in_common_order):
        linked = {v for operators in links.values() for v in operators}
        waiting = [i for i, each in enumerate(layers) if i not in links and not each.inserted]
        free = [each for each in subjects if each.operator not in linked]
        links |= {i: (v,) for i, v in by_order([(i, layers[i]) for i in waiting], free)}
    return _matches(graph, layers, links, every)


def _is_view(operator: Operator) -> bool:
    return kind_of(operator.singles[0].type) == "view"


def _subjects(graph: OperatorGraph) -> Iterator[_Subject]:
    for v, operator in enumerate(graph.operators):
        for single in (*operator.singles, *folded_into(operator)):
            outputs = (*single.outputs, *operator.outputs)
            shape = next((graph.tensors[n].shape for n in outputs if n in graph.tensors), ())
            window = single.attributes.get("kernel_shape")
            kernel = tuple(int(each) for each in window) if isinstance(window, tuple) else ()
            yield _Subject(v, kind_of(single.type), _extents(shape), kernel)


def _told(layer: Layer) -> Hashable:
    shape = _extents(layer.shapes[0]) if layer.shapes else None
    return kind_of(layer.type), shape, layer.kernel or None


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape's extents in any layout: sorted, without ones."""
    return tuple(sorted(extent for extent in shape if extent != 1))


def _in_equal_numbers(
    waiting: Sequence[tuple[int, Layer]], free: Sequence[_Subject]
) -> Iterator[tuple[int, int]]:
    """Yield layers with the operators of equal kind and shape, where there are as many of both."""
    groups: dict[Hashable, list[tuple[int, Layer]]] = defaultdict(list)
    for i, layer in waiting:
        if layer.type:
            groups[_told(layer)].append((i, layer))
    for told, group in groups.items():
        equal = [each.operator for each in free if each.as_told(group[0][1]) == told]
        if len(equal) == len(group):
            yield from zip((i for i, _ in group), equal, strict=True)


def _in_common_order(
    waiting: Sequence[tuple[int, Layer]], free: Sequence[_Subject]
) -> Iterator[tuple[int, int]]:
    """Yield the longest row of layers and operators of equal kind and shape in both orders."""
    rows, columns = [each for each in waiting if each[1].type], free
    length = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    equal = [
        [column.as_told(layer) == told for column in columns]
        for _, layer in rows
        for told in (_told(layer),)
    ]
    for r in range(len(rows) - 1, -1, -1):
        for c in range(len(columns) - 1, -1, -1):
            length[r][c] = (
                1 + length[r + 1][c + 1] if equal[r][c] else max(length[r + 1][c], length[r][c + 1])
            )
    r = c = 0
    while r < len(rows) and c < len(columns):
        if equal[r][c]:
            yield rows[r][0], columns[c].operator
            r, c = r + 1, c + 1
        elif length[r + 1][c] >= length[r][c + 1]:
            r += 1
        else:
            c += 1


def _matches(
    graph: OperatorGraph,
    layers: Sequence[Layer],
    links: Mapping[int, tuple[int, ...]],
    every: Collection[int],
) -> Matches:
    counted = {i: kept for i, each in links.items() if (kept := set(each).intersection(every))}
    passing = {
        i
        for i, layer in enumerate(layers)
        if i not in counted and (layer.inserted or i in links or kind_of(layer.type) in PASSING)
    }
    unmatched = [each for i, each in enumerate(layers) if i not in counted and i not in passing]
    groups = _Groups(every)
    for operators in counted.values():
        groups.join(operators)
    ran = {v: i for i, operators in counted.items() for v in operators}
    without = _absorb(graph, groups, ran, [v for v in every if v not in ran], unmatched)
    blocks = _blocks_of(layers, counted, passing, groups)
    inserted_s = sum(layers[i].time_s for i in passing)
    return Matches(blocks, tuple(unmatched), inserted_s if blocks else 0.0, tuple(without))


class _Groups:
    """Sets of operators that become one when they are joined."""

    def __init__(self, every: Collection[int]) -> None:
        self._of = {v: {v} for v in every}

    def join(self, operators: Collection[int]) -> None:
        """Make one set of those that some operators are in."""
        whole = set().union(*(self._of[v] for v in operators))
        self._of.update(dict.fromkeys(whole, whole))

    def of(self, v: int) -> tuple[int, ...]:
        """Return the set that an operator is in, ascending."""
        return tuple(sorted(self._of[v]))


def _absorb(
    graph: OperatorGraph,
    groups: _Groups,
    ran: dict[int, int],
    rest: Sequence[int],
    unmatched: Sequence[Layer],
) -> list[int]:
    """Let operators that no layer stands for join those of a neighbour; return those left.

    That is, of those which make what they read and have multiply-accumulates, the last one that
    ran: by then all that they read was there. Else the last of any of them. What begins the graph
    joins what reads it. All these must have run.

    Parameters
    ----------
    ran
        By operator: the number of its last layer. Those that join others are added.
    """
    waiting = {kind_of(layer.type) for layer in unmatched}
    able = {
        v
        for v in rest
        if not graph.operators[v].work.macs
        and (kind := kind_of(graph.operators[v].singles[0].type)) in JOINS_OTHERS
        and waiting.isdisjoint({kind, ""})
    }
    for neighbours, order in ((graph.predecessors, rest), (graph.successors, rest[::-1])):
        for v in order:
            near = [*_beyond_views(graph, neighbours, v)]
            first = neighbours == graph.predecessors or able.issuperset(graph.predecessors(v))
            if v in able and v not in ran and near and first and ran.keys() >= set(near):
                joined = max(near, key=lambda u: (graph.operators[u].work.macs > 0, ran[u]))
                groups.join((v, joined))
                ran[v] = ran[joined]
    return [v for v in rest if v not in ran]


def _beyond_views(
    graph: OperatorGraph, neighbours: Callable[[int], Sequence[int]], v: int
) -> Iterator[int]:
    """Yield the operators next to one, and those next to views there."""
    for u in neighbours(v):
        if _is_view(graph.operators[u]):
            yield from _beyond_views(graph, neighbours, u)
        else:
            yield u


def _blocks_of(
    layers: Sequence[Layer],
    counted: Mapping[int, Collection[int]],
    passing: Collection[int],
    groups: _Groups,
) -> tuple[Block, ...]:
    """Return the blocks: what converts or views belongs to what comes next, or came last."""
    times_s: dict[tuple[int, ...], float] = defaultdict(float)
    longest: dict[tuple[int, ...], Layer] = {}
    pending_s, last = 0.0, None
    for i, layer in enumerate(layers):
        if i in passing:
            pending_s += layer.time_s
        elif i in counted:
            last = groups.of(next(iter(counted[i])))
            times_s[last] += layer.time_s + pending_s
            longest[last] = max(longest.get(last, layer), layer, key=lambda each: each.time_s)
            pending_s = 0.0
    if last is not None:
        times_s[last] += pending_s
    return tuple(Block(each, times_s[each], longest[each].place) for each in sorted(times_s))
