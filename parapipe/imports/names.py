"""The operators that a layer's name names.

Runtimes write what they fused into a layer's name: `a + b` and `PWN(a, b)` (TensorRT), `a;b`
(TFLite), `a||b`; and add words of their own before and behind: `Conv:a` (RKNN), `a_nchwc` (ONNX
Runtime), `a/WithoutBiases` (OpenVINO), `{ForeignNode[a...b]}` (TensorRT: all from a to b).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parapipe.graph.operator_graph import OperatorGraph

_JOINTS = re.compile(r" \+ |\|\||[;,()\[\]{}]| ")
_RANGE = re.compile(r"ForeignNode\[(.+?)\.\.\.(.+?)\]")
_LABEL = re.compile(r"^[A-Za-z]\w*:")
_BREAK = re.compile(r"[/_:.@-](?!\d+$)")  # what stands behind is the runtime's, but no bare number
_SMALLEST = 2  # characters of a name that may be followed by other words


class OperatorNames:
    """The names of a graph's operators: of their nodes first, then of the tensors they write."""

    def __init__(self, graph: OperatorGraph) -> None:
        self._graph = graph
        self._by_name: dict[str, int] = {}
        for v, operator in enumerate(graph.operators):
            holders = (operator, *operator.parts)
            folded = [part for holder in holders for part in holder.folded]
            every = (*holders, *folded)
            for name in (*operator.members, *(each.name for each in every)):
                self._by_name.setdefault(name, v)
        for v, operator in enumerate(graph.operators):
            for each in (operator, *operator.parts):
                for name in filter(None, each.outputs):
                    self._by_name.setdefault(name, v)
        for name, v in [*self._by_name.items()]:
            self._by_name.setdefault(_plain(name), v)

    def named_in(self, text: str) -> tuple[int, ...]:
        """Return the numbers of the operators that a layer's name names, ascending."""
        if (v := self._number(text)) is not None:
            return (v,)
        if span := _RANGE.search(text):
            ends = [self._number(end) for end in span.groups()]
            if None not in ends:
                return tuple(self._between(*(v for v in ends if v is not None)))
        words = (self._number(word) for word in _JOINTS.split(text) if word)
        return tuple(sorted({v for v in words if v is not None}))

    def _number(self, word: str) -> int | None:
        """Return the operator of one name, with what a runtime has added to it."""
        for name in _shortened(word.strip()):
            for each in (name, _plain(name)):
                if each in self._by_name:
                    return self._by_name[each]
        return None

    def _between(self, first: int, last: int) -> Iterator[int]:
        """Yield the operators on the ways from one to another, both included."""
        after, before = {first}, {last}
        for v in range(first + 1, last + 1):
            if after.intersection(self._graph.predecessors(v)):
                after.add(v)
        for v in range(last - 1, first - 1, -1):
            if before.intersection(self._graph.successors(v)):
                before.add(v)
        yield from sorted(before & after | {first, last})


def _plain(name: str) -> str:
    """Return a name as converters write it that know letters, digits and underscores only."""
    return re.sub(r"\W", "_", name).strip("_")


def _shortened(word: str) -> Iterator[str]:
    """Yield a word, then without a label in front, then ever shorter."""
    for text in dict.fromkeys((word, _LABEL.sub("", word))):
        yield text
        breaks = [match.start() for match in _BREAK.finditer(text)]
        yield from (text[:at] for at in reversed(breaks) if at >= _SMALLEST)
