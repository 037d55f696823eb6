"""What a user asks of a configuration, and which one keeps it: the best, or what stands in the way.

Each demand bounds one figure. Where no configuration keeps them all, the answer says what each
demand comes to as long as the others are kept, or alone if it is out of reach by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from parapipe.errors import DemandError
from parapipe.report.front_schema import ConfigurationRow

Objective = Literal["latency", "period", "energy", "power"]


@dataclass(frozen=True, slots=True)
class Demands:
    """Bounds on the figures of a configuration.

    Parameters
    ----------
    min_throughput_fps
        Frames per second, at least.
    max_latency_s
        Seconds of one frame through all stages, at most.
    max_energy_j
        Joules per frame, at most.
    max_power_w
        Watts while frames come once per period, at most.
    board
        Count the board's idle power in energy and power.
    """

    min_throughput_fps: float = 0.0
    max_latency_s: float = inf
    max_energy_j: float = inf
    max_power_w: float = inf
    board: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """A demand as the most that one figure may be: seconds, joules or watts."""

    of: Objective
    most: float
    board: bool

    def share_of(self, row: ConfigurationRow) -> float:
        """Return what a configuration takes of what is allowed: at most 1 if it keeps it."""
        return figure(row, self.of, board=self.board) / self.most

    def reached(self, row: ConfigurationRow) -> str:
        """Return a configuration's figure in the words of the demand."""
        return self._words(figure(row, self.of, board=self.board))

    def missed(self, row: ConfigurationRow) -> str:
        """Say what a configuration comes to in place of what is asked, and how far off that is."""
        taken = self.share_of(row)
        few = self.of == "period"
        share = 1 - 1 / taken if few else taken - 1
        by = f"{100 * share:.2g} % too {'few' if few else 'much'}"
        return f"{self.reached(row)} in place of {self._words(self.most)}, {by} ({row.id})"

    def _words(self, value: float) -> str:
        if self.of == "period":
            return f"{1 / value:.4g} frames/s"
        if self.of == "latency":
            return f"{value * 1e3:.4g} ms"
        return f"{value:.4g} W" if self.of == "power" else f"{value * 1e3:.4g} mJ per frame"


def limits(demands: Demands) -> tuple[Limit, ...]:
    """Return those that are asked for."""
    asked: Sequence[tuple[Objective, float]] = (
        ("period", 1 / demands.min_throughput_fps if demands.min_throughput_fps else inf),
        ("latency", demands.max_latency_s),
        ("energy", demands.max_energy_j),
        ("power", demands.max_power_w),
    )
    return tuple(Limit(of, most, demands.board) for of, most in asked if most < inf)


def figure(row: ConfigurationRow, of: Objective, *, board: bool = False) -> float:
    """Return a figure of a configuration: seconds, joules per frame, or watts."""
    energy_j = row.board_energy_j if board else row.energy_j
    if of == "power":
        return energy_j / row.period_s
    return {"latency": row.latency_s, "period": row.period_s, "energy": energy_j}[of]


def best(
    rows: Sequence[ConfigurationRow], minimise: Objective, demands: Demands
) -> ConfigurationRow:
    """Return the configuration that is least in one figure among those that keep all demands.

    Of those equal in it, the one of least latency, then period, then energy.

    Raises
    ------
    DemandError
        None keeps them all; the message says which demand stands in the way, and by how much.
    """
    asked = limits(demands)
    kept = _keeping(rows, asked)
    if not kept:
        raise DemandError(f"no configuration keeps all demands: {_in_the_way(rows, asked)}")
    return min(
        kept,
        key=lambda row: (
            figure(row, minimise, board=demands.board),
            row.latency_s,
            row.period_s,
            row.energy_j,
        ),
    )


def _keeping(
    rows: Sequence[ConfigurationRow], asked: Sequence[Limit]
) -> Sequence[ConfigurationRow]:
    return [row for row in rows if all(limit.share_of(row) <= 1 for limit in asked)]


def _in_the_way(rows: Sequence[ConfigurationRow], asked: Sequence[Limit]) -> str:
    """Say what to give up: demands that none keeps, else each that would do by itself."""
    alone = [_nearest(limit, rows) for limit in asked if not _keeping(rows, [limit])]
    if alone:
        return f"the front comes to {'; and to '.join(alone)}"
    others = {limit: [other for other in asked if other is not limit] for limit in asked}
    single = [_nearest(limit, kept) for limit in asked if (kept := _keeping(rows, others[limit]))]
    if single:
        return f"with the others kept, it comes to {'; or to '.join(single)}"
    nearest = min(rows, key=lambda row: max(limit.share_of(row) for limit in asked))
    broken = [limit.missed(nearest) for limit in asked if limit.share_of(nearest) > 1]
    return f"the one that misses least comes to {'; and to '.join(broken)}"


def _nearest(limit: Limit, rows: Sequence[ConfigurationRow]) -> str:
    return limit.missed(min(rows, key=limit.share_of))
