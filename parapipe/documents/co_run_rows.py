"""What documents say of processors that slow each other down."""

from __future__ import annotations

from parapipe.files.record import Figure, Row
from parapipe.mappings.configuration import Configuration, stated_figure
from parapipe.mappings.evaluate import Evaluated
from parapipe.search.exploration_result import Exploration


class CoRunCostRow(Row):
    """What a mapping would take if its processors did not slow each other down."""

    free_latency_s: Figure
    """Its latency then."""
    free_period_s: Figure
    """Its period then."""
    free_sustained_period_s: Figure
    """Its sustained period then."""
    exact: bool
    """Whether what runs beside what recurs, so that its figures are exact; else they are those of a
    long run."""

    @classmethod
    def of_evaluated(cls, evaluated: Evaluated) -> CoRunCostRow | None:
        """Return what an evaluation says of it; None if nothing is known of co-runs."""
        effect = evaluated.co_run
        if effect is None:
            return None
        return cls(
            free_latency_s=stated_figure(effect.free_latency_s),
            free_period_s=stated_figure(effect.free_period_s),
            free_sustained_period_s=stated_figure(effect.free_sustained_period_s),
            exact=effect.frames.exact,
        )


class FreeBoundsRow(Row):
    """What no configuration is below, and how far the front is from it.

    The bounds are of processors that do not slow each other down, and so hold all the more where
    they do. Nothing else is proven of such a front: it may have all that could be found, and be as
    far from the bounds as co-runs cost.
    """

    latency_s: Figure
    """No configuration has less latency."""
    period_s: Figure
    """No configuration has a shorter period."""
    latency_gap: Figure
    """1 − bound ÷ the least latency of the front."""
    period_gap: Figure
    """1 − bound ÷ the shortest period of the front."""

    @classmethod
    def of_exploration(cls, exploration: Exploration) -> FreeBoundsRow | None:
        """Return the bounds of a front; None if nothing is known of co-runs."""
        if exploration.free is None:
            return None
        free = exploration.free
        return cls(
            latency_s=stated_figure(free.latency_s),
            period_s=stated_figure(free.period_s),
            latency_gap=_gap(free.latency_s, exploration.found, "latency_s"),
            period_gap=_gap(free.period_s, exploration.found, "period_s"),
        )


def _gap(bound_s: float, found: tuple[Configuration, ...], figure: str) -> float:
    least_s: float = min(getattr(each.evaluated, figure) for each in found)
    return max(0.0, 1 - bound_s / least_s)
