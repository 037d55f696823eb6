"""How much of the costs was measured, how much fitted, and how much is nominal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from parapipe.cost.price import PROVENANCES, PartCost, Provenance


@dataclass(frozen=True, slots=True)
class Share:
    """Shares of a whole by provenance; they add up to one. Of nothing, all is nominal."""

    measured: float
    fitted: float
    nominal: float


@dataclass(frozen=True, slots=True)
class Noisy:
    """Times that were measured, and whose rows still differed too much after all repeats.

    Parameters
    ----------
    count
        How many single operators, each counted on every processor that it was measured on.
    operators, time
        Their shares of operators and of seconds; they are a part of what was measured.
    least_spread, most_spread
        Of (longest − shortest row) / time; None if there are none.
    """

    count: int
    operators: float
    time: float
    least_spread: float | None
    most_spread: float | None


@dataclass(frozen=True, slots=True)
class ProcessorCoverage:
    """Where the costs of one processor (or of all together) come from.

    Parameters
    ----------
    operators
        Shares of single operators: the parts of a fused one count each, views that cost nothing
        and operators that the processor does not support don't.
    time
        Shares of the seconds of the same operators.
    counted
        How many single operators were counted.
    extrapolated, extrapolated_time
        Shares of operators and of seconds that are fitted beyond the range of what was measured.
    noisy
        Those measured that are noisy.
    """

    operators: Share
    time: Share
    counted: int
    extrapolated: float
    extrapolated_time: float
    noisy: Noisy


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where costs come from.

    Parameters
    ----------
    overall
        Of all processors together.
    processors
        By name of processor.
    unmodelled
        Types, sorted, whose multiply-accumulates are not known: they are priced by their bytes.
    ruled
        Types, sorted, whose work a rules file gives.
    """

    overall: ProcessorCoverage
    processors: Mapping[str, ProcessorCoverage]
    unmodelled: tuple[str, ...]
    ruled: tuple[str, ...]


def coverage_of(costs: Mapping[str, Iterable[PartCost]]) -> Coverage:
    """Return the coverage of the costs of single operators, given by processor."""
    parts = {name: [p for p in found if not p.free_view] for name, found in costs.items()}
    every = [part for found in parts.values() for part in found]
    return Coverage(
        overall=_cover(every),
        processors={name: _cover(found) for name, found in parts.items()},
        unmodelled=tuple(sorted({p.type for p in every if not p.modelled})),
        ruled=tuple(sorted({p.type for p in every if p.ruled})),
    )


def _cover(parts: list[PartCost]) -> ProcessorCoverage:
    counts = {name: sum(p.provenance == name for p in parts) for name in PROVENANCES}
    seconds = {name: sum(p.time_s for p in parts if p.provenance == name) for name in PROVENANCES}
    beyond = [p.time_s for p in parts if p.extrapolated]
    noisy = [(p.time_s, p.noisy_spread) for p in parts if p.noisy_spread is not None]
    spreads = [spread for _, spread in noisy]
    count, total_s = len(parts) or 1, sum(seconds.values()) or 1
    return ProcessorCoverage(
        _share(counts),
        _share(seconds),
        len(parts),
        extrapolated=len(beyond) / count,
        extrapolated_time=sum(beyond) / total_s,
        noisy=Noisy(
            count=len(noisy),
            operators=len(noisy) / count,
            time=sum(time_s for time_s, _ in noisy) / total_s,
            least_spread=min(spreads, default=None),
            most_spread=max(spreads, default=None),
        ),
    )


def _share(amounts: Mapping[Provenance, float]) -> Share:
    total = sum(amounts.values())
    if not total:
        return Share(measured=0, fitted=0, nominal=1)
    return Share(**{name: amount / total for name, amount in amounts.items()})
