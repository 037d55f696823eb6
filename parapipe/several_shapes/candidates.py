"""Placements of a shape beside those that its own search lists.

That search leaves out what is beaten within the shape; beside other shapes it may be better, since
it moves less or shares weights. So what was found for the other shapes is tried here, too, and in
small graphs every placement in stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf, prod

from parapipe.cost.cost_table import CostTable
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.several_shapes.placed_shapes import Shape

MOST_PLACEMENTS = 4000  # of a graph of which all are tried
MOST_OPERATORS = 40  # likewise: of more, even the first orders take long to find


def as_elsewhere(
    shape: Shape, other: Shape, found: Sequence[Configuration]
) -> Iterator[Configuration]:
    """Yield configurations of another shape as they are in this one, where it can run them so.

    Operators keep their processors and stages, and where that takes less, their processors alone.
    An operator that the other shape does not have goes where its first input is made.
    """
    same_tables = len(shape.tables) == len(other.tables)
    for each in found:
        if each.split or (each.table and not same_tables):
            continue
        place = {
            operator.id: each.mapping.at[v].processor
            for v, operator in enumerate(other.graph.operators)
        }
        processors = _processors_in(shape.graph, place)
        stages = [tuple(range(len(processors)))]
        for divided in (True, False):
            if divided:
                own = _stages_in(shape.graph, other.graph, each)
                if own is None:
                    continue
                assignment = Assignment(processors, own, ordered=True)
            else:
                assignment = Assignment(processors, tuple(stages))
            table = each.table
            yield from _configured(shape.graph, shape.tables[table], assignment, table)


def _processors_in(graph: OperatorGraph, place: dict[str, int]) -> tuple[int, ...]:
    default = next(iter(place.values()))
    chosen: list[int] = []
    for v, operator in enumerate(graph.operators):
        before = graph.predecessors(v)
        chosen.append(place.get(operator.id, chosen[before[0]] if before else default))
    return tuple(chosen)


def _stages_in(
    graph: OperatorGraph, other: OperatorGraph, configuration: Configuration
) -> tuple[tuple[int, ...], ...] | None:
    """Return the stages of a configuration of another graph in this one; None if they differ."""
    mapping = configuration.mapping
    index = {operator.id: v for v, operator in enumerate(graph.operators)}
    if mapping.period_s is not None or mapping.replicated:
        return None
    if index.keys() != {operator.id for operator in other.operators}:
        return None
    return tuple(
        tuple(index[other.operators[v].id] for v in stage)
        for stage in assignment_of(mapping).stages
    )


def every_placement(shape: Shape) -> list[Configuration] | None:
    """Return all placements in stages of a small graph, at its first costs; None if too many.

    Stages divide the operators in each order that the graph allows, and share no processor; each
    processor takes its operators in that order.
    """
    graph, costs = shape.graph, shape.tables[0]
    if len(graph.operators) > MOST_OPERATORS:
        return None
    able = [
        [p for p in range(len(costs.processors)) if costs.time_s(v, p) < inf]
        for v in range(len(graph.operators))
    ]
    count = prod(map(len, able))
    if count > MOST_PLACEMENTS:
        return None
    orders: list[tuple[int, ...]] = []
    for order in _orders(graph, ()):
        orders.append(order)
        if len(orders) * count > MOST_PLACEMENTS:
            return None
    assignments = {
        Assignment(chosen, stages, ordered=True)
        for chosen in product(*able)
        for order in orders
        for stages in _stages(order, chosen)
    }
    ordered = sorted(assignments, key=lambda each: (each.processors, each.stages))
    return [some for each in ordered for some in _configured(graph, costs, each, 0)]


def _orders(graph: OperatorGraph, begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the topological orders of a graph that begin so."""
    if len(begun) == len(graph.operators):
        yield begun
    for v in range(len(graph.operators)):
        if v not in begun and {*graph.predecessors(v)} <= {*begun}:
            yield from _orders(graph, (*begun, v))


def _stages(
    order: tuple[int, ...], processors: Sequence[int], used: frozenset[int] = frozenset()
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the divisions of an order into stages that share no processor."""
    if not order:
        yield ()
    for end in range(1, len(order) + 1):
        own = frozenset(processors[v] for v in order[:end])
        if own & used:
            return
        for behind in _stages(order[end:], processors, used | own):
            yield (order[:end], *behind)


def _configured(
    graph: OperatorGraph, costs: CostTable, assignment: Assignment, table: int
) -> Iterator[Configuration]:
    """Yield the configuration of an assignment, if its processors can run it."""
    try:
        mapping = mapping_of(graph, None, costs, assignment)
        evaluated = evaluate(mapping, graph, costs)
    except AssignmentError:
        return
    if evaluated.period_s < inf:
        gap = max(0.0, 1 - costs.least_period_s / evaluated.period_s)
        yield Configuration(mapping, evaluated, proven=False, gap=gap, table=table)
