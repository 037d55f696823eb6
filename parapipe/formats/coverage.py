"""Where times come from, as documents say it."""

from __future__ import annotations

from pydantic import NonNegativeInt

from parapipe.cost.coverage import Coverage
from parapipe.cost.price import PROVENANCES
from parapipe.formats.record import Row
from parapipe.plan.record import Figure


class Share(Row):
    """A share of operators, and of time over all processors."""

    operators: Figure
    """Of the number of operators."""
    time: Figure
    """Of the seconds of the same operators."""


class NoisyShare(Share):
    """Shares of what was measured and is noisy, and how far its rows spread."""

    count: NonNegativeInt
    """How many operators, each counted on every processor where its time is noisy."""
    least_spread: Figure | None
    """Least of (longest - shortest row) / time; null if none is noisy."""
    most_spread: Figure | None
    """Largest of these; null if none is noisy."""


class ProcessorCoverageRow(Row):
    """Shares of one processor's operators by where their times come from."""

    measured: Figure
    """Measured for this very operator."""
    fitted: Figure
    """From a model fitted to measurements."""
    nominal: Figure
    """From data sheets."""
    noisy: NonNegativeInt | None = None
    """How many of its operators were measured and are noisy; null if that was not stored."""


class CoverageRow(Row):
    """Where the operator times come from."""

    measured: Share
    """Measured for this very operator."""
    noisy: NoisyShare | None = None
    """Of those measured: rows still differed too much after all repeats; null if that was not
    stored."""
    fitted: Share
    """From a model fitted to measurements."""
    nominal: Share
    """From data sheets."""
    extrapolated: Share
    """Of those fitted: smaller or larger than all operators that the fit was made of."""
    processors: dict[str, ProcessorCoverageRow]
    """Shares of the operators of each processor."""
    unmodelled: tuple[str, ...]
    """Operator types of which no MACs are known."""
    ruled: tuple[str, ...]
    """Operator types whose work a rules file gives."""


def coverage_row(found: Coverage) -> CoverageRow:
    """Return shares of operators and of their time by where the times come from."""
    overall = found.overall
    shares = {
        name: Share(operators=getattr(overall.operators, name), time=getattr(overall.time, name))
        for name in PROVENANCES
    }
    return CoverageRow.of(
        found,
        **shares,
        noisy=NoisyShare.of(overall.noisy),
        extrapolated=Share(operators=overall.extrapolated, time=overall.extrapolated_time),
        processors={
            name: ProcessorCoverageRow.of(each.operators, noisy=each.noisy.count)
            for name, each in found.processors.items()
        },
    )
