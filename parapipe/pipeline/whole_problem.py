"""The whole network as one mapping problem, as interleaved frames ask for."""

from __future__ import annotations

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.problem import Flow, MappingProblem


def whole_problem(graph: OperatorGraph, costs: CostTable) -> MappingProblem:
    """Return all operators of a graph, and every tensor that goes between them, as one problem.

    Operators keep their indices. Synchronisation and casts are in the transfers' times, as in the
    cost table's. Graph inputs are available everywhere once loaded, and have no flow.
    """
    processors = range(len(costs.processors))
    operators = range(len(graph.operators))
    return MappingProblem(
        time_s=tuple(tuple(costs.time_s(v, p) for p in processors) for v in operators),
        flows=tuple(
            Flow(graph.producer[name], readers, costs.transfer_matrix(name))
            for name, readers in graph.consumers.items()
            if name in graph.producer
        ),
        structure=tuple(operators),
        transfer_resource=costs.transfer_resource,
    )
