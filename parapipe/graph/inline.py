"""Model-local functions replaced by their operators, and nodes under other names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

import onnx
import onnx.inliner

from parapipe.errors import ModelError

MOST_OPERATORS = 100_000
"""No model is imported whose functions come to more: nesting may double them each time."""

_Key = tuple[str, str, str]


def inlined(model: onnx.ModelProto, model_name: str) -> onnx.ModelProto:
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


def renamed_node(node: onnx.NodeProto, new_name: Mapping[str, str]) -> onnx.NodeProto:
    """Rename what a node reads and makes, and what its bodies take from outside."""
    for names in (node.input, node.output):
        for position, name in enumerate(names):
            names[position] = new_name.get(name, name)
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            _rename_body(body, new_name)
    return node


def _rename_body(body: onnx.GraphProto, new_name: Mapping[str, str]) -> None:
    own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    own |= {name for inner in body.node for name in inner.output}
    outer = {name: new for name, new in new_name.items() if name not in own}
    for inner in body.node:
        renamed_node(inner, outer)
    for value in body.output:
        value.name = outer.get(value.name, value.name)
