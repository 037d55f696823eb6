"""Model-local functions, replaced by the operators they stand for."""

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
        if _operators(model) > MOST_OPERATORS:
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


def _operators(model: onnx.ModelProto) -> int:
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
        count = _count(functions[key].node, called)
        open_ones.remove(key)
        return count

    def called(node: onnx.NodeProto) -> int:
        key = (node.domain, node.op_type, node.overload)
        return of_function(key) if key in functions else 1

    return _count(model.graph.node, called)


def _count(nodes: Iterable[onnx.NodeProto], called: Callable[[onnx.NodeProto], int]) -> int:
    total = 0
    for node in nodes:
        total += called(node)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                total += _count(graph.node, called)
    return total
