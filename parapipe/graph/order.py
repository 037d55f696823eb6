"""Order of ONNX nodes: which ones the outputs need, and in which order they can run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed

# Files of ONNX's first version do not say what an attribute holds.
_MAY_HOLD_GRAPHS = frozenset(
    {onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS, onnx.AttributeProto.UNDEFINED}
)


def node_name(node: onnx.NodeProto) -> str:
    """Return a node's name, or its first output's if it has none."""
    return node.name or next((name for name in node.output if name), node.op_type)


def reads_of(node: onnx.NodeProto) -> tuple[str, ...]:
    """Names that a node reads: its inputs, then what its subgraphs take from outside."""
    direct = tuple(node.input)
    if not node.attribute or not has_body(node):
        return direct
    captured: dict[str, None] = {}
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            captured.update(dict.fromkeys(outer_names(graph)))
    return (*direct, *(name for name in captured if name not in direct))


def has_body(node: onnx.NodeProto) -> bool:
    """Whether a node holds graphs of its own, as If, Loop and Scan do."""
    for attribute in node.attribute:
        if attribute.type in _MAY_HOLD_GRAPHS and (attribute.HasField("g") or attribute.graphs):
            return True
    return False


class NodeView(NamedTuple):
    """A node with its `reads_of`, its `has_body`, and the bytes of its attributes."""

    node: onnx.NodeProto
    reads: tuple[str, ...]
    has_body: bool
    attributes: tuple[bytes, ...]


class NodeCache:
    """What is asked of nodes again and again, looked up once; they must not be changed."""

    def __init__(self) -> None:
        self._facts: dict[int, NodeView] = {}  # which hold the nodes, so that ids stay theirs

    def __call__(self, node: onnx.NodeProto) -> NodeView:
        """Look at a node."""
        facts = self._facts.get(id(node))
        if facts is None:
            body = has_body(node)
            reads = reads_of(node) if body else tuple(node.input)
            texts = [each.SerializeToString(deterministic=True) for each in node.attribute]
            facts = self._facts[id(node)] = NodeView(node, reads, body, tuple(texts))
        return facts

    def reads(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """Return what `reads_of` does."""
        return self(node).reads

    def has_body(self, node: onnx.NodeProto) -> bool:
        """Return what the function of this name does."""
        return self(node).has_body


def outer_names(graph: onnx.GraphProto) -> list[str]:
    """Names that a body reads and does not make."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {sparse.values.name for sparse in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in reads_of(node)]
    read += [value.name for value in graph.output]
    return [name for name in dict.fromkeys(read) if name and name not in own]


def needed_nodes(
    nodes: Sequence[onnx.NodeProto],
    outputs: Iterable[str],
    reads: Callable[[onnx.NodeProto], tuple[str, ...]] = reads_of,
) -> list[onnx.NodeProto]:
    """Keep the nodes whose results reach an output, in their order."""
    producer = {name: node for node in nodes for name in node.output if name}
    reached: set[int] = set()
    waiting = list(outputs)
    while waiting:
        node = producer.get(waiting.pop())
        if node is not None and id(node) not in reached:
            reached.add(id(node))
            waiting.extend(reads(node))
    return [node for node in nodes if id(node) in reached]


def sort_nodes(
    model_name: str,
    nodes: Sequence[onnx.NodeProto],
    existing: Collection[str],
    reads_of: Callable[[onnx.NodeProto], tuple[str, ...]] = reads_of,
) -> list[onnx.NodeProto]:
    """Sort nodes topologically; of those that can run, the first in the file goes first.

    Parameters
    ----------
    existing
        Names that exist before the first node: graph inputs and initializers.

    Raises
    ------
    ModelError
        If a tensor is made twice or by nobody, or if nodes wait for each other.
    """
    producer = _producers(model_name, nodes, existing)
    reads = [{name for name in reads_of(node) if name} for node in nodes]
    _check_reads(model_name, nodes, reads, producer.keys() | set(existing))
    waits = [{producer[name] for name in names if name in producer} for names in reads]
    if all(other < index for index, before in enumerate(waits) for other in before):
        return list(nodes)
    sorter = TopologicalSorter(dict(enumerate(waits)))
    try:
        sorter.prepare()
    except CycleError as error:
        stuck = [node_name(nodes[index]) for index in sorted(set(error.args[1]))]
        raise ModelError(
            f"'{model_name}' has operators that wait for each other "
            f"({listed(stuck)}): export the model again"
        ) from None
    ready: list[int] = []
    order = []
    while sorter.is_active():
        for index in sorter.get_ready():
            heapq.heappush(ready, index)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return [nodes[index] for index in order]


def _producers(
    model_name: str, nodes: Sequence[onnx.NodeProto], existing: Collection[str]
) -> dict[str, int]:
    producer: dict[str, int] = {}
    twice: list[str] = []
    for index, node in enumerate(nodes):
        for name in node.output:
            if name in producer or name in existing:
                twice.append(name)
            elif name:
                producer[name] = index
    if twice:
        raise ModelError(
            f"'{model_name}' makes tensors twice ({listed(twice)}): export the model again"
        )
    return producer


def _check_reads(
    model_name: str,
    nodes: Sequence[onnx.NodeProto],
    reads: Sequence[Collection[str]],
    produced: Collection[str],
) -> None:
    lacking = [
        f"'{node_name(node)}' reads '{name}'"
        for node, names in zip(nodes, reads, strict=True)
        for name in sorted(names)
        if name not in produced
    ]
    if lacking:
        raise ModelError(
            f"'{model_name}' has operators that read what nothing makes "
            f"({listed(lacking)}): export the model again"
        )
