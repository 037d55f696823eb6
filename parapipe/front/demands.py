"""The demands on a configuration, which one meets them best, and how sure that is.

Each demand bounds one figure of the table. Where no configuration keeps them all, the answer says
what each demand comes to as long as the others are kept, or alone if it is out of reach by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from parapipe.digits import plain
from parapipe.documents.figure_table import BY_DEMAND, BY_NAME, Demands, FigureEntry, Minimise
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.errors import DemandError
from parapipe.files.mistakes import did_you_mean, listed
from parapipe.pareto import TIE, TIES, least
from parapipe.platform.memories import no_such_memory
from parapipe.uncertainty.causes import Array
from parapipe.uncertainty.samples import INTERVAL, SampledFront, at_quantile


class InMemory(NamedTuple):
    """What is needed in one memory of the platform, by its name."""

    name: str


class OnProcessor(NamedTuple):
    """The segments of one processor of the platform, by its name."""

    name: str


Figure: TypeAlias = str | InMemory | OnProcessor
"""Name of an entry of the table of figures, or what one memory or one processor takes of it."""
Limits: TypeAlias = dict[Figure, float]
Row = TypeVar("Row", bound=ConfigurationRow)


def limits(demands: Demands) -> Limits:
    """Return the most that each figure may be, of those that are bounded, in SI units.

    Of what is to be great, it is the most of the reciprocal: seconds between frames.
    """
    most: Limits = {}
    for name in (each.name for each in fields(demands) if each.name in BY_DEMAND):
        entry = BY_DEMAND[name]
        bound = getattr(demands, name)
        if isinstance(bound, Mapping):
            place = InMemory if entry.name == "memory" else OnProcessor
            most |= {place(name): each for name, each in bound.items()}
        elif bound is not None:
            great = entry.direction == "greatest"
            most[entry.name] = (1 / bound if bound else inf) if great else bound
    return {of: bound for of, bound in most.items() if bound < inf}


def meets_demand(row: ConfigurationRow, of: Figure, demands: Demands) -> bool:
    """Return whether a configuration keeps the bound of a figure.

    What is to be great is compared as such, as front.json states it: a period that is asked for to
    the last digit would be missed when it is turned into its reciprocal.
    """
    value, entry = figure(row, of, demands), _figure_entry(of)
    if entry.direction == "greatest":
        return bool(1 / value >= getattr(demands, entry.demand))
    return value <= limits(demands)[of]


def _describe_shortfall(row: ConfigurationRow, of: Figure, demands: Demands) -> str:
    """Say what a configuration comes to in place of what is asked, and how far off that is."""
    value, most, entry = figure(row, of, demands), limits(demands)[of], _figure_entry(of)
    is_rate = entry.direction == "greatest"
    percent = 100 * (1 - most / value if is_rate else value / most - 1)
    size = "over 1000" if percent > 1e3 else plain(percent, 2)
    by = f"{size} % too {'few' if is_rate else 'much'}"
    where = f" in '{of.name}'" if isinstance(of, InMemory) else ""
    where = f" on '{of.name}'" if isinstance(of, OnProcessor) else where
    reached, required = (entry.text(1 / each if is_rate else each) for each in (value, most))
    return f"{reached} instead of {required}{where}, {by} ({row.id})"


def _figure_entry(of: Figure) -> FigureEntry:
    if isinstance(of, OnProcessor):
        return BY_NAME["segments"]
    return BY_NAME["memory" if isinstance(of, InMemory) else of]


def figure(row: ConfigurationRow, of: Figure, demands: Demands = Demands()) -> float:  # noqa: B008 - frozen
    """Return a figure of a configuration as demands count it: what is to be least, in SI units.

    At another rate the operators of a frame take the same energy, and static and idle power last
    for another period.

    Raises
    ------
    DemandError
        An older version wrote the front, without this figure; or there is no such memory.
    """
    if isinstance(of, InMemory):
        peaks = {each.name: each.peak_bytes for each in row.memories}
        if row.peak_memory_bytes is not None and of.name not in peaks:
            raise DemandError(no_such_memory([of.name], tuple(peaks)))
        return _stated_value(row, "memory") if row.peak_memory_bytes is None else peaks[of.name]
    if isinstance(of, OnProcessor):
        _stated_value(row, "segments")
        return float({each.name: each.segments or 0 for each in row.processors}.get(of.name, 0))
    period_s = row.sustained_period_s if demands.sustained else row.period_s
    if of in ("period", "throughput"):
        return period_s
    if of == "tokens":
        return _stated_value(row, of) * period_s / row.period_s
    if of == "energy per token":
        return figure(row, "energy", demands) * _stated_value(row, of) / row.energy_j
    if of not in ("energy", "power"):
        return _stated_value(row, of)
    energy_j = row.board_energy_j if demands.board else row.energy_j
    if demands.sustained:
        lasting_w = sum(processor.static_power_w for processor in row.processors)
        if demands.board:
            lasting_w += (row.board_energy_j - row.energy_j) / row.frame_s
        energy_j += lasting_w * (max(period_s, row.arrival_s or 0.0) - row.frame_s)
    return energy_j / max(period_s, row.arrival_s or 0.0) if of == "power" else energy_j


def _stated_value(row: ConfigurationRow, of: str) -> float:
    if (value := getattr(row, BY_NAME[of].compared)) is None:
        raise DemandError(f"{row.id} says nothing of {of}: write the front again with map")
    return float(value)


def best(rows: Sequence[Row], minimise: Minimise, demands: Demands) -> Row:
    """Return the configuration that is least in one figure among those that keep all demands.

    Of those equal in it (`TIES`), the one of least latency, then period, then energy.

    Raises
    ------
    DemandError
        None keeps them all; the message says which demand stands in the way, and by how much.
    """
    _check_processors(rows, demands)
    meeting = _rows_meeting(rows, demands, limits(demands))
    if not meeting:
        reason = _describe_conflict(rows, demands)
        advice = _suggest_sustained(rows, demands)
        raise DemandError(f"no configuration meets all demands: {reason}{advice}")
    order = (minimise, "latency", "period", "energy")
    ties = (TIES.get(minimise, TIE),)
    return least(meeting, lambda row: [figure(row, of, demands) for of in order], ties)


def _check_processors(rows: Sequence[ConfigurationRow], demands: Demands) -> None:
    """Raise a DemandError if segments are limited of what no configuration uses."""
    asked = [of.name for of in limits(demands) if isinstance(of, OnProcessor)]
    used = dict.fromkeys(each.name for row in rows if asked for each in row.processors)
    if unknown := [name for name in asked if name not in used]:
        wrong, there = (listed([f"'{name}'" for name in each]) for each in (unknown, used))
        raise DemandError(
            f"no configuration uses a processor {wrong}, so its segments cannot be limited; there "
            f"are {there}{did_you_mean(unknown[0], list(used))}"
        )


def _rows_meeting(rows: Sequence[Row], demands: Demands, some: Limits) -> Sequence[Row]:
    """Return those that keep some of the demands."""
    return [row for row in rows if all(meets_demand(row, of, demands) for of in some)]


def _suggest_sustained(rows: Sequence[ConfigurationRow], demands: Demands) -> str:
    """Name the fastest that keeps all demands at the rate it can sustain, if that is what helps."""
    if demands.sustained or not demands.min_fps:
        return ""
    meeting = _rows_meeting(rows, replace(demands, sustained=True), limits(demands))
    if not meeting:
        return ""
    fastest = min(meeting, key=lambda row: row.sustained_period_s)
    return f"; {fastest.id} sustains {plain(1 / fastest.sustained_period_s)} frames/s: `sustained`"


def _describe_conflict(rows: Sequence[ConfigurationRow], demands: Demands) -> str:
    """Say what to give up: demands that none keeps, else each that would do by itself."""
    bounds = limits(demands)

    def share(row: ConfigurationRow, of: Figure) -> float:
        """Return what a configuration takes of what is allowed."""
        return figure(row, of, demands) / bounds[of] if bounds[of] else inf

    def nearest(of: Figure, some: Sequence[ConfigurationRow]) -> str:
        return _describe_shortfall(min(some, key=lambda row: share(row, of)), of, demands)

    alone = [
        nearest(of, rows) for of in bounds if not _rows_meeting(rows, demands, {of: bounds[of]})
    ]
    if alone:
        return f"the nearest has {'; and the nearest has '.join(alone)}"
    single = [
        nearest(of, meeting)
        for of in bounds
        if (meeting := _rows_meeting(rows, demands, {o: bounds[o] for o in bounds if o != of}))
    ]
    if single:
        return f"one that meets the others has {'; or '.join(single)}"
    nearest_row = min(rows, key=lambda row: max(share(row, of) for of in bounds))
    broken = [of for of in bounds if not meets_demand(nearest_row, of, demands)]
    texts = (_describe_shortfall(nearest_row, of, demands) for of in broken)
    return f"the nearest one has {' and '.join(texts)}"


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
        By how much more it takes than the best one of a draw that keeps the demands, of throughput
        by how much less it has: on average, and the most in nine of ten draws. None if no draw has
        one.
    """

    keeps: float
    best: float
    regret_mean: float | None
    regret_most: float | None


def surest(
    rows: Sequence[Row], samples: SampledFront | None, minimise: Minimise, demands: Demands
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
    if samples is None:
        raise DemandError(
            "the front has no draws to be confident by: map again with `draws` 200, or leave out "
            "`confidence`"
        )
    chances = _draws_meeting(rows, samples, demands).mean(axis=1)
    candidates = [i for i, chance in enumerate(chances) if chance >= confidence]
    if not candidates:
        most = int(chances.argmax())
        raise DemandError(
            f"no configuration keeps all demands in {confidence:.0%} of the draws: the most is "
            f"{chances[most]:.0%} ({rows[most].id}); demand less, or less confidence"
        )
    order = ("latency", "period", "energy")

    def order_key(i: int) -> list[float]:
        values = _sampled_figure(rows, samples, i, minimise, demands)
        return [at_quantile(values, confidence), *(figure(rows[i], of, demands) for of in order)]

    return rows[least(candidates, order_key, (TIES.get(minimise, TIE),))]


def certainty(
    rows: Sequence[ConfigurationRow],
    samples: SampledFront,
    minimise: Minimise,
    demands: Demands,
    choice: int,
) -> Certainty:
    """Return how sure it is that one of the rows, by its place, is the right choice."""
    meets = _draws_meeting(rows, samples, demands)
    every = range(len(rows))
    figures = np.stack([_sampled_figure(rows, samples, i, minimise, demands) for i in every])
    best = np.where(meets, figures, np.inf).min(axis=0)
    possible = np.isfinite(best)
    own, least_there = figures[choice][possible], best[possible]
    is_rate = _figure_entry(minimise).direction == "greatest"
    regret = np.maximum(1 - least_there / own if is_rate else own / least_there - 1, 0)
    most = best * (1 + TIES.get(minimise, TIE))
    return Certainty(
        keeps=float(meets[choice].mean()),
        best=float((meets[choice] & (figures[choice] <= most)).mean()),
        regret_mean=float(regret.mean()) if possible.any() else None,
        regret_most=float(np.quantile(regret, INTERVAL)) if possible.any() else None,
    )


def _draws_meeting(
    rows: Sequence[ConfigurationRow], samples: SampledFront, demands: Demands
) -> NDArray[np.bool_]:
    """Return in which draws each configuration keeps all demands."""
    if demands.sustained:
        raise DemandError(
            "draws are of frames once per longest stage: leave out either sustained or confidence"
        )
    meets = np.ones((len(rows), samples.count), bool)
    for i in range(len(rows)):
        for of, most in limits(demands).items():
            each = _sampled_figure(rows, samples, i, of, demands)
            entry = _figure_entry(of)
            is_rate = entry.direction == "greatest"
            meets[i] &= 1 / each >= getattr(demands, entry.demand) if is_rate else each <= most
    return meets


def _sampled_figure(
    rows: Sequence[ConfigurationRow], samples: SampledFront, i: int, of: Figure, demands: Demands
) -> Array:
    """Return a figure of a configuration in each draw, as the demands count it."""
    row = rows[i]
    latency_s: Array = samples.latency_s[i]
    period_s: Array = samples.period_s[i]
    energy_j: Array
    if of == "latency":
        return latency_s
    if of in ("period", "throughput"):
        return period_s
    if of == "tokens":
        return period_s * (_stated_value(row, of) / row.period_s)
    if of == "energy per token":
        energy_j = _sampled_figure(rows, samples, i, "energy", demands)
        return energy_j * (_stated_value(row, of) / row.energy_j)
    if of not in ("energy", "power"):  # it has no draws
        return np.full(samples.count, figure(row, of, demands))
    idle_w = (row.board_energy_j - row.energy_j) / row.frame_s if demands.board else 0.0
    frame_s = np.maximum(period_s, row.arrival_s or 0.0)
    energy_j = samples.energy_j[i] + idle_w * frame_s
    return energy_j / frame_s if of == "power" else energy_j
