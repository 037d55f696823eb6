"""The most bytes of activations that are needed at one time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parapipe.graph.operator_graph import OperatorGraph


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes at one time, and the operator that runs then (an index)."""

    size_bytes: int
    operator: int


def peak_activations(graph: OperatorGraph, order: Sequence[int]) -> Peak:
    """Return the largest sum of activation bytes while one frame runs through in this order.

    While an operator runs, these are there: graph inputs from the start to the end of their last
    reader; what an operator makes, from its start to the end of its last reader; graph outputs,
    from their maker's start to the end. Each tensor has memory of its own: views and operators
    that could work in place count in full, so an allocator may need less, and one that leaves gaps
    more. Weights and workspaces do not count. Of equal peaks the first is told.

    Parameters
    ----------
    order
        All operators, in a topological order.
    """
    last: dict[str, int] = {}
    for step, v in enumerate(order):
        operator = graph.operators[v]
        last.update(dict.fromkeys((*graph.reads(operator), *operator.outputs), step))
    last.update(dict.fromkeys(graph.outputs, len(order)))
    dying: dict[int, list[str]] = {}
    for name, step in last.items():
        dying.setdefault(step, []).append(name)
    live = sum(graph.tensors[name].size_bytes for name in graph.inputs if name in last)
    peak = Peak(-1, order[0])
    for step, v in enumerate(order):
        made = [name for name in graph.operators[v].outputs if name]
        live += sum(graph.tensors[name].size_bytes for name in made)
        if live > peak.size_bytes:
            peak = Peak(live, v)
        live -= sum(graph.tensors[name].size_bytes for name in dying.get(step, ()) if name)
    return peak
