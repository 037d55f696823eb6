"""The row of a document that says where times come from."""

from __future__ import annotations

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import Provenance
from parapipe.report.front_schema import CoverageRow, ProcessorCoverageRow, Share


def coverage_row(costs: CostTable) -> CoverageRow:
    """Return the shares of a cost table by where its times come from."""
    found = costs.coverage()

    def share(provenance: Provenance) -> Share:
        return Share(
            operators=getattr(found.overall.operators, provenance),
            time=getattr(found.overall.time, provenance),
        )

    return CoverageRow(
        measured=share("measured"),
        fitted=share("fitted"),
        nominal=share("nominal"),
        extrapolated=Share(
            operators=found.overall.extrapolated, time=found.overall.extrapolated_time
        ),
        unmodelled=found.unmodelled,
        ruled=found.ruled,
        processors={
            name: ProcessorCoverageRow(
                measured=each.operators.measured,
                fitted=each.operators.fitted,
                nominal=each.operators.nominal,
            )
            for name, each in found.processors.items()
        },
    )
