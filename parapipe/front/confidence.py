"""How often configurations keep what is asked of them, by draws of the costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parapipe.errors import DemandError
from parapipe.formats.figure_table import Demands, Minimise
from parapipe.formats.front import ConfigurationRow
from parapipe.front.demands import Figure, Row, figure, limits
from parapipe.pipeline.chances import INTERVAL, DrawnFront, at_quantile
from parapipe.pipeline.dominance import TIE, TIES, least
from parapipe.pipeline.uncertain import Array


@dataclass(frozen=True, slots=True)
class Certainty:
    """How sure the choice of a configuration is: shares of the draws, and of a figure.

    Parameters
    ----------
    keeps
        Draws in which it keeps all demands.
    best
        Draws in which it keeps them, and no other one that does has less of what is to be least,
        by more than `TIES`.
    regret_mean, regret_most
        By how much more it takes than the best one of a draw that keeps the demands: on average,
        and the most in nine of ten draws. None if no draw has one.
    """

    keeps: float
    best: float
    regret_mean: float | None
    regret_most: float | None


def surest(
    rows: Sequence[Row],
    drawn: DrawnFront | None,
    minimise: Minimise,
    demands: Demands,
) -> Row:
    """Return what keeps all demands, and the least of one figure, in a share of the draws.

    The figure is what is not exceeded in that share of the draws. Of those equal in it (`TIES`),
    the one of least stated latency, then period, then energy.

    Parameters
    ----------
    rows
        Those that were drawn, in the same order.
    demands
        With `confidence`, that share.

    Raises
    ------
    DemandError
        None does, with how often the best one keeps them; or there are no draws.
    """
    confidence = demands.confidence
    assert confidence is not None
    if drawn is None:
        raise DemandError(
            "the front has no draws to be confident by: map again with `draws` 200, or leave out "
            "`confidence`"
        )
    chances = _kept(rows, drawn, demands).mean(axis=1)
    sure = [i for i, chance in enumerate(chances) if chance >= confidence]
    if not sure:
        most = int(chances.argmax())
        raise DemandError(
            f"no configuration keeps all demands in {confidence:.0%} of the draws: the most is "
            f"{chances[most]:.0%} ({rows[most].id}); demand less, or less confidence"
        )
    order = ("latency", "period", "energy")

    def first(i: int) -> list[float]:
        drawn_ones = _figure(rows, drawn, i, minimise, demands)
        return [
            at_quantile(drawn_ones, confidence),
            *(figure(rows[i], of, demands) for of in order),
        ]

    return rows[least(sure, first, (TIES.get(minimise, TIE),))]


def certainty(
    rows: Sequence[ConfigurationRow],
    drawn: DrawnFront,
    minimise: Minimise,
    demands: Demands,
    choice: int,
) -> Certainty:
    """Return how sure it is that one of the rows, by its place, is the right choice."""
    kept = _kept(rows, drawn, demands)
    figures = np.stack([_figure(rows, drawn, i, minimise, demands) for i in range(len(rows))])
    best = np.where(kept, figures, np.inf).min(axis=0)
    there = np.isfinite(best)
    regret = np.maximum(figures[choice][there] / best[there] - 1, 0)
    most = best * (1 + TIES.get(minimise, TIE))
    return Certainty(
        keeps=float(kept[choice].mean()),
        best=float((kept[choice] & (figures[choice] <= most)).mean()),
        regret_mean=float(regret.mean()) if there.any() else None,
        regret_most=float(np.quantile(regret, INTERVAL)) if there.any() else None,
    )


def _kept(
    rows: Sequence[ConfigurationRow], drawn: DrawnFront, demands: Demands
) -> NDArray[np.bool_]:
    """Return in which draws each configuration keeps all demands."""
    if demands.sustained:
        raise DemandError(
            "draws are of frames once per longest stage: leave out either sustained or confidence"
        )
    kept = np.ones((len(rows), drawn.count), bool)
    for i in range(len(rows)):
        for of, most in limits(demands).items():
            each = _figure(rows, drawn, i, of, demands)
            kept[i] &= 1 / each >= demands.min_fps if of == "throughput" else each <= most
    return kept


def _figure(
    rows: Sequence[ConfigurationRow],
    drawn: DrawnFront,
    i: int,
    of: Figure,
    demands: Demands,
) -> Array:
    """Return a figure of a configuration in each draw, as the demands count it."""
    row = rows[i]
    latency_s: Array = drawn.latency_s[i]
    period_s: Array = drawn.period_s[i]
    if of == "latency":
        return latency_s
    if of in ("period", "throughput"):
        return period_s
    if of not in ("energy", "power"):  # it has no draws
        return np.full(drawn.count, figure(row, of, demands))
    idle_w = (row.board_energy_j - row.energy_j) / row.period_s if demands.board else 0.0
    energy_j: Array = drawn.energy_j[i] + idle_w * period_s
    return energy_j / period_s if of == "power" else energy_j
