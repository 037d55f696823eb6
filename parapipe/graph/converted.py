"""A graph as it would be after conversion: its floating-point tensors in another data type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from parapipe.graph.operator_graph import (
    ITEM_BYTES,
    Constant,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.graph.work import work_of

CONVERTED = ("float16", "bfloat16", "float32")
"""Data types of tensors that a conversion concerns, the narrowest first."""

_Known = Mapping[str, Tensor | Constant]


def converted(graph: OperatorGraph, dtype: str) -> OperatorGraph:
    """Return a graph whose floating-point tensors and constants are of a data type.

    float64 stays, and so do sequences, optional tensors and quantised operators. Operators multiply
    as much as before, and move as many elements.
    """
    tensors = {
        name: replace(tensor, dtype=dtype) if tensor.dtype in CONVERTED else tensor
        for name, tensor in graph.tensors.items()
    }
    constants = {
        name: replace(constant, dtype=dtype) if constant.dtype in CONVERTED else constant
        for name, constant in graph.constants.items()
    }
    before: _Known = {**graph.constants, **graph.tensors}
    after: _Known = {**constants, **tensors}
    return replace(
        graph,
        operators=tuple(_operator(each, before, after) for each in graph.operators),
        tensors=tensors,
        constants=constants,
    )


def _operator(operator: Operator, before: _Known, after: _Known) -> Operator:
    if operator.computes_in:
        return operator
    folded = tuple(_operator(each, before, after) for each in operator.folded)
    if operator.singles == (operator,):
        return replace(operator, work=_work(operator, before, after), folded=folded)
    parts = tuple(_operator(part, before, after) for part in operator.parts)
    work = replace(
        operator.work,
        read_bytes=sum(part.work.read_bytes for part in parts),
        written_bytes=sum(part.work.written_bytes for part in parts),
    )
    return replace(operator, parts=parts, work=work, folded=folded)


def _work(operator: Operator, before: _Known, after: _Known) -> Work:
    """Return what an operator moves then; in proportion where rules or folding gave its bytes."""
    names = [name for name in (*operator.inputs, *operator.outputs) if name in before]
    changed = [name for name in names if before[name].dtype != after[name].dtype]
    if not changed:
        return operator.work
    own = operator.work.read_bytes, operator.work.written_bytes
    if all(name in before for name in operator.outputs if name):
        then, now = (
            work_of(
                operator.domain,
                operator.type,
                operator.attributes,
                operator.inputs,
                operator.outputs,
                known=known,
            )
            for known in (before, after)
        )
        if (then.read_bytes, then.written_bytes) == own:
            return replace(
                operator.work, read_bytes=now.read_bytes, written_bytes=now.written_bytes
            )
    first = changed[0]
    ratio = ITEM_BYTES[after[first].dtype] / ITEM_BYTES[before[first].dtype]
    read, written = (ceil(size * ratio) for size in own)
    return replace(operator.work, read_bytes=read, written_bytes=written)
