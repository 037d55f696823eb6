"""The networks of the A1000's operator times, and which operators of the zoo's graphs they are.

The source names its operators `node12` or by its own layers, and says of each its type and its
successors, no shapes. So an operator is found by structure: the networks are compared as graphs of
types, with operators that only reshape, and the final Softmax, looked through, because one side may
have such an operator where the other has none. Operators whose ancestors and descendants are of
equal types (two branches of 1×1 and n×n convolutions) are told apart by their order, which is that
of the network's definition on both sides. A pair counts only if what it reads is paired as well.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from parapipe.graph.operator_graph import Operator, OperatorGraph

NETWORKS = {
    "GoogLeNet": "googlenet",
    "Inception-v3": "inception-v3",
    "Inception-v4": "inception-v4",
    "Inception-ResNet-v2": "inception-resnet-v2",
}
"""The source's networks that the zoo builds as they are, and the zoo's names of them."""

RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
_LOOKED_THROUGH = RESHAPES | {"Transpose", "Softmax"}

PLACEHOLDER_NS = 100.0
"""What the source states for operators that are views or were merged: no time."""


@dataclass(frozen=True, slots=True)
class StatedOperator:
    """An operator of the source; times in seconds, None where the processor cannot run it.

    Parameters
    ----------
    read_s, write_s
        Time to load its inputs from shared memory, and to store its output there.
    """

    network: str
    name: str
    type: str
    successors: tuple[str, ...]
    read_s: float
    write_s: float
    npu_s: float | None
    dsp_s: float | None

    @property
    def is_placeholder(self) -> bool:
        """Whether all its times are the source's number for what is no work of its own."""
        times = (self.read_s, self.write_s, self.npu_s, self.dsp_s)
        return all(time is None or time == PLACEHOLDER_NS * 1e-9 for time in times)


def read_stated(path: Path) -> dict[str, list[StatedOperator]]:
    """Return the source's operators by network, in topological order."""
    networks: dict[str, list[StatedOperator]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            read_s, write_s, npu_s, dsp_s = (
                float(cells[f"{name}_ns"]) * 1e-9 if cells[f"{name}_ns"] else None
                for name in ("read", "write", "npu", "dsp")
            )
            if read_s is None or write_s is None:
                raise SystemExit(f"{cells['operator']} of {cells['network']} has no transfer times")
            networks[cells["network"]].append(
                StatedOperator(
                    cells["network"], cells["operator"], cells["type"],
                    tuple(cells["successors"].split()), read_s, write_s, npu_s, dsp_s,
                )
            )  # fmt: skip
    return dict(networks)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A network as a graph of types; nodes are numbered in topological order."""

    types: Sequence[str]
    read: Sequence[Sequence[int]]

    @property
    def read_by(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.types]
        for node, before in enumerate(self.read):
            for each in before:
                found[each].append(node)
        return found


def match(stated: Sequence[StatedOperator], graph: OperatorGraph) -> dict[str, Operator]:
    """Return the graph's operator for each of the source's that has one, by the source's name."""
    ours, theirs = _shape_of_graph(graph), _shape_of_stated(stated)
    past_ours, past_theirs = _looked_through(ours), _looked_through(theirs)
    pairs = dict(_paired(past_theirs, past_ours))
    for node, kind in enumerate(theirs.types):
        if kind not in _LOOKED_THROUGH:
            continue
        before = {pairs.get(each) for each in past_theirs.read[node]}
        same = [
            each for each, its in enumerate(ours.types)
            if its == kind and before == set(past_ours.read[each]) and each not in pairs.values()
        ]  # fmt: skip
        if before and len(same) == 1:
            pairs[node] = same[0]
    return {stated[a].name: graph.operators[b] for a, b in sorted(pairs.items())}


def _shape_of_stated(stated: Sequence[StatedOperator]) -> _Shape:
    number = {operator.name: node for node, operator in enumerate(stated)}
    read: list[list[int]] = [[] for _ in stated]
    for node, operator in enumerate(stated):
        for name in operator.successors:
            read[number[name]].append(node)
    return _Shape([_kind(operator.type) for operator in stated], read)


def _shape_of_graph(graph: OperatorGraph) -> _Shape:
    makers = {name: v for v, each in enumerate(graph.operators) for name in each.outputs if name}
    read = [
        sorted({makers[name] for name in each.inputs if name in makers}) for each in graph.operators
    ]
    return _Shape([_kind(operator.type) for operator in graph.operators], read)


def _kind(operator_type: str) -> str:
    return "Reshape" if operator_type in RESHAPES else operator_type


def _looked_through(shape: _Shape) -> _Shape:
    """Return the network whose operators read past those that are looked through."""
    seen: list[list[int]] = []
    for before in shape.read:
        past = [
            node
            for each in before
            for node in (seen[each] if shape.types[each] in _LOOKED_THROUGH else [each])
        ]
        seen.append(past)
    return _Shape(shape.types, seen)


def _paired(theirs: _Shape, ours: _Shape) -> Iterator[tuple[int, int]]:
    """Yield pairs of equal structure whose operands are pairs, too."""
    groups = _by_structure(ours)
    pairs: dict[int, int] = {}
    candidates: dict[int, int] = {}
    for code, nodes in _by_structure(theirs).items():
        if len(nodes) == len(groups.get(code, ())):
            candidates.update(zip(nodes, groups[code], strict=True))
    for a, b in sorted(candidates.items()):
        if {pairs.get(each) for each in theirs.read[a]} == set(ours.read[b]):
            pairs[a] = b
            yield a, b


def _by_structure(shape: _Shape) -> Mapping[object, list[int]]:
    """Return the nodes of each structure, in order; without those that are looked through."""
    down, up = _codes(shape.types, shape.read, range(len(shape.types))), _upward(shape)
    groups: dict[object, list[int]] = defaultdict(list)
    for node, kind in enumerate(shape.types):
        if kind not in _LOOKED_THROUGH:
            groups[down[node], up[node]].append(node)
    return groups


def _upward(shape: _Shape) -> dict[int, int]:
    kept = [
        [each for each in after if shape.types[each] not in _LOOKED_THROUGH]
        for after in shape.read_by
    ]
    return _codes(shape.types, kept, reversed(range(len(shape.types))))


def _codes(
    types: Sequence[str], beside: Sequence[Sequence[int]], order: Iterator[int] | range
) -> dict[int, int]:
    """Return a number for the type of each node and all that lies on one side of it."""
    codes: dict[int, int] = {}
    for node in order:
        codes[node] = hash((types[node], tuple(sorted(codes[each] for each in beside[node]))))
    return codes
