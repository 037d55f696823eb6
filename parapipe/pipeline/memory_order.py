"""The order of operators on one processor as a problem of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.memory.orders import LiveTensor, OrderProblem


def order_problem(
    graph: OperatorGraph,
    operators: Sequence[int],
    size_bytes: Callable[[str], int] | None = None,
) -> OrderProblem:
    """Return the problem of an order for these operators of a graph, numbered as they stand there.

    Parameters
    ----------
    operators
        Of a stage, each once. What others read, and graph outputs, stay alive; what others make,
        and graph inputs, is there from the start.
    size_bytes
        Gives what a tensor takes; as in the model if not given.
    """
    place = {v: i for i, v in enumerate(operators)}
    names = (
        name
        for v in operators
        for name in (*graph.reads(graph.operators[v]), *graph.operators[v].outputs)
        if name
    )
    tensors: list[LiveTensor] = []
    for name in dict.fromkeys(names):
        maker = graph.producer.get(name, -1)
        readers = graph.consumers.get(name, ())
        tensors.append(
            LiveTensor(
                size_bytes(name) if size_bytes else graph.tensors[name].size_bytes,
                place.get(maker),
                frozenset(place[v] for v in readers if v in place),
                name in graph.outputs or any(v not in place for v in readers),
            )
        )
    return OrderProblem(len(place), tuple(tensors))
