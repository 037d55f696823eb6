"""How much of the operator times was measured, stated, compiled, fitted, and is nominal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import NonNegativeInt, SerializerFunctionWrapHandler, model_serializer

from parapipe.cost.price import PROVENANCES, PartCost, Provenance
from parapipe.files.record import Figure, Row, without_none

_IF_ANY = ("stated", "compiled")


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
    stated: Figure | None = None
    """Stated for it by the chip's maker; left out if there are none."""
    compiled: Figure | None = None
    """Out of cycles that the processor's compiler tells; left out if there are none."""
    fitted: Figure
    """From a model fitted to measurements."""
    nominal: Figure
    """From data sheets."""
    noisy: NonNegativeInt | None = None
    """How many of its operators were measured and are noisy; null if that was not stored."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out stated and compiled times where there are none."""
        return without_none(write(self), *_IF_ANY)


class CoverageRow(Row):
    """Where the operator times come from."""

    measured: Share
    """Measured for this very operator."""
    noisy: NoisyShare | None = None
    """Of those measured: rows still differed too much after all repeats; null if that was not
    stored."""
    stated: Share | None = None
    """Stated for this very operator by the chip's maker; left out if there are none."""
    compiled: Share | None = None
    """Out of cycles that the processor's compiler tells; left out if there are none."""
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

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out stated and compiled times where there are none."""
        return without_none(write(self), *_IF_ANY)


def coverage_of(costs: Mapping[str, Iterable[PartCost]]) -> CoverageRow:
    """Return the coverage of the costs of single operators, given by processor.

    The parts of a fused operator count each, views that cost nothing don't. Of nothing, all is
    nominal. `unmodelled` and `ruled` are sorted.
    """
    parts = {name: [p for p in some if not p.free_view] for name, some in costs.items()}
    every = [part for some in parts.values() for part in some]
    noisy = _noisy_parts(every)
    spreads = [part.noisy_spread for part in noisy if part.noisy_spread is not None]
    share = _share_of(noisy, every)
    return CoverageRow(
        **_without_unused(_shares_by_provenance(every)),
        noisy=NoisyShare(
            operators=share.operators,
            time=share.time,
            count=len(noisy),
            least_spread=min(spreads, default=None),
            most_spread=max(spreads, default=None),
        ),
        extrapolated=_share_of([part for part in every if part.extrapolated], every),
        processors={
            name: ProcessorCoverageRow(
                **{
                    key: each.operators
                    for key, each in _without_unused(_shares_by_provenance(some)).items()
                },
                noisy=len(_noisy_parts(some)),
            )
            for name, some in parts.items()
        },
        unmodelled=tuple(sorted({p.type for p in every if not p.modelled})),
        ruled=tuple(sorted({p.type for p in every if p.ruled})),
    )


def _noisy_parts(parts: Sequence[PartCost]) -> list[PartCost]:
    return [part for part in parts if part.noisy_spread is not None]


def _shares_by_provenance(parts: Sequence[PartCost]) -> dict[Provenance, Share]:
    """Return shares by provenance; they add up to one."""
    by = {name: [p for p in parts if p.provenance == name] for name in PROVENANCES}
    shares = {name: _share_of(some, parts) for name, some in by.items()}
    if not any(part.time_s for part in parts):
        operators = shares["nominal"].operators if parts else 1.0
        shares["nominal"] = Share(operators=operators, time=1.0)
    return shares


def _without_unused(shares: Mapping[Provenance, Share]) -> dict[Provenance, Share]:
    """Leave out the shares of stated and of compiled times if there are none."""
    return {key: each for key, each in shares.items() if key not in _IF_ANY or each.operators}


def _share_of(some: Sequence[PartCost], parts: Sequence[PartCost]) -> Share:
    """Return the shares that some of the parts have."""
    times_s = dict.fromkeys(PROVENANCES, 0.0)  # added up by provenance, so that all are one
    for part in parts:
        times_s[part.provenance] += part.time_s
    return Share(
        operators=len(some) / (len(parts) or 1),
        time=sum(part.time_s for part in some) / (sum(times_s.values()) or 1),
    )
