"""From a model, a platform and an assignment to an evaluation: the right prices, then the sums."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from parapipe.cost.cost_table import CostTable, View, build_cost_table
from parapipe.cost.measured_network import (
    Recognised,
    measured_networks,
    priced_as_run,
    recognise,
)
from parapipe.cost.profile import Profile
from parapipe.errors import AssignmentError
from parapipe.formats.evaluation_document import evaluation_document
from parapipe.formats.evaluation_schema import EvaluationDocument
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.pipeline.assigned import mapping_of
from parapipe.pipeline.assignment import (
    Assignment,
    assignment_of_file,
    assignment_of_order,
    load_assignment,
)
from parapipe.pipeline.evaluate import evaluate
from parapipe.platform.platform import Platform


def evaluation(
    graph: OperatorGraph,
    platform: Platform,
    *,
    assignment: Path | None,
    order: str | None,
    view: View | None = None,
    profiles: Sequence[Profile] | None = None,
) -> EvaluationDocument:
    """Price an assignment file, or an order of a measured network's blocks.

    Parameters
    ----------
    profiles
        In place of all that was measured on the platform.

    Raises
    ------
    AssignmentError
        If it does not fit, or the order is of a network that was not measured.
    CostError
        As for `build_cost_table`.
    """
    networks = () if profiles else measured_networks(platform.profile_name)
    found = recognise(graph, networks)
    chosen: View = view or ("as-measured" if found else "deployed")
    costs = build_cost_table(graph, platform, profiles=profiles, view=chosen)
    # Rows are the network's own times only where nothing is left out that ran on the board.
    as_run = found if chosen == "as-measured" else None
    if as_run:
        costs = priced_as_run(costs, graph, platform, as_run)
    blocks = found.blocks_of(graph) if found else None
    placed = (
        _of_file(assignment, graph, costs)
        if assignment is not None
        else _of_order(order or "", graph, platform, blocks, [each.name for each in networks])
    )
    mapping = mapping_of(graph, platform, costs, placed, blocks=blocks if as_run else None)
    return evaluation_document(
        evaluate(mapping, graph, costs, contention=platform.contention),
        mapping,
        costs,
        graph,
        platform,
        view=chosen,
        network=_name(found),
        order=order,
        blocks=blocks,
    )


def _name(found: Recognised | None) -> str | None:
    return found.network.name if found else None


def _of_file(path: Path, graph: OperatorGraph, costs: CostTable) -> Assignment:
    return assignment_of_file(
        load_assignment(path),
        str(path),
        graph=graph,
        partition=partition(graph),
        names=costs.processors,
    )


def _of_order(
    order: str,
    graph: OperatorGraph,
    platform: Platform,
    blocks: Sequence[int] | None,
    known: Sequence[str],
) -> Assignment:
    if blocks is None:
        measured = f"known are {', '.join(known)}" if known else "none was"
        raise AssignmentError(
            f"'{graph.source.name}' has no blocks that were measured on '{platform.name}' "
            f"({measured}); give --assignment in place of --order"
        )
    return assignment_of_order(order, graph=graph, blocks=blocks, names=platform.names)
