"""An inspection, and what a platform can do with the model, as a document."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.formats.coverage_row import coverage_row
from parapipe.formats.inspection_schema import SCHEMA, InspectionDocument, PlatformCoverage
from parapipe.graph.fusion import fuse
from parapipe.graph.inspection import Inspection, inspect
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.platform.platform import Platform


def inspected(graph: OperatorGraph, platform: Platform | None) -> InspectionDocument:
    """Describe a graph of single operators, and how a platform runs it if one is given.

    Raises
    ------
    CostError
        The platform has no processor, or no price, for an operator.
    """
    fused = fuse(graph)
    found = inspect(graph, fused, partition(graph))
    if platform is None:
        return inspection_document(found)
    costs = build_cost_table(fused, platform)
    return inspection_document(found, platform_coverage(platform.name, fused, costs))


def inspection_document(
    inspection: Inspection, coverage: PlatformCoverage | None = None
) -> InspectionDocument:
    """Return the document of an inspection, with the coverage by a platform if there is one."""
    return InspectionDocument.model_validate(
        {"schema": SCHEMA, **asdict(inspection), "coverage": coverage}
    )


def platform_coverage(platform: str, graph: OperatorGraph, costs: CostTable) -> PlatformCoverage:
    """Say where a platform's times of the graph's operators come from, and what it cannot run."""
    unsupported = {}
    for p, processor in enumerate(costs.processors):
        types = Counter(
            operator.type
            for v, operator in enumerate(graph.operators)
            if costs.unsupported(v, p) is not None
        )
        unsupported[processor] = dict(sorted(types.items(), key=lambda it: (-it[1], it[0])))
    return PlatformCoverage(
        platform=platform, times=coverage_row(costs.coverage()), unsupported=unsupported
    )
