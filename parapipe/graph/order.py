"""Nodes of ONNX: what they read, their order and new names, and functions put in their place."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import onnx
import onnx.inliner

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
    own = _own_names(graph)
    read = [name for node in graph.node for name in reads_of(node)]
    read += [value.name for value in graph.output]
    return [name for name in dict.fromkeys(read) if name and name not in own]


def _own_names(body: onnx.GraphProto) -> set[str]:
    """Return the names of what a body is given, holds and makes."""
    return {
        *(value.name for value in body.input),
        *(tensor.name for tensor in body.initializer),
        *(sparse.values.name for sparse in body.sparse_initializer),
        *(name for node in body.node for name in node.output),
    }


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


MOST_OPERATORS = 100_000
"""No model is imported whose functions come to more: nesting may double them each time."""

_Key = tuple[str, str, str]


def inline_functions(model: onnx.ModelProto, model_name: str) -> onnx.ModelProto:
    """Return a model without functions of its own; the same one if it has none.

    Raises
    ------
    ModelError
        If they come to more than `MOST_OPERATORS`, or ONNX cannot inline them.
    """
    if not model.functions:
        return model
    try:
        if _count_inlined(model) > MOST_OPERATORS:
            raise ModelError(
                f"'{model_name}' has functions that come to more than {MOST_OPERATORS} operators: "
                "export it without"
            )
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"'{model_name}' has functions that ONNX cannot inline ({reason}): export it without"
        ) from None


def _count_inlined(model: onnx.ModelProto) -> int:
    """Return how many operators a model has once its functions are inlined."""
    functions: Mapping[_Key, onnx.FunctionProto] = {
        (each.domain, each.name, each.overload): each for each in model.functions
    }
    open_ones: set[_Key] = set()

    @cache
    def of_function(key: _Key) -> int:
        if key in open_ones:
            raise ValueError(f"'{key[1]}' calls itself")
        open_ones.add(key)
        count = _count_nodes(functions[key].node, count_calls)
        open_ones.remove(key)
        return count

    def count_calls(node: onnx.NodeProto) -> int:
        key = (node.domain, node.op_type, node.overload)
        return of_function(key) if key in functions else 1

    return _count_nodes(model.graph.node, count_calls)


def _count_nodes(nodes: Iterable[onnx.NodeProto], calls: Callable[[onnx.NodeProto], int]) -> int:
    total = 0
    for node in nodes:
        total += calls(node)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                total += _count_nodes(graph.node, calls)
    return total


def rename_node(node: onnx.NodeProto, new_name: Mapping[str, str]) -> onnx.NodeProto:
    """Rename what a node reads and makes, and what its bodies take from outside."""
    for names in (node.input, node.output):
        for position, name in enumerate(names):
            names[position] = new_name.get(name, name)
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            _rename_body(body, new_name)
    return node


def _rename_body(body: onnx.GraphProto, new_name: Mapping[str, str]) -> None:
    own = _own_names(body)
    outer = {name: new for name, new in new_name.items() if name not in own}
    for inner in body.node:
        rename_node(inner, outer)
    for value in body.output:
        value.name = outer.get(value.name, value.name)
