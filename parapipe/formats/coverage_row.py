"""The row of a document that says where times come from."""

from __future__ import annotations

from parapipe.cost.coverage import Coverage
from parapipe.cost.price import Provenance
from parapipe.formats.front_schema import CoverageRow, ProcessorCoverageRow, Share


def coverage_row(found: Coverage) -> CoverageRow:
    """Return shares of operators and their time by where the times come from."""

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
