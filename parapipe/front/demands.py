"""What a user asks of a configuration, and which one keeps it: the best, or what stands in the way.

Each demand bounds one figure. Where no configuration keeps them all, the answer says what each
demand comes to as long as the others are kept, or alone if it is out of reach by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, TypeVar

from parapipe.errors import DemandError
from parapipe.formats.front import ConfigurationRow

Objective = Literal["latency", "period", "energy", "power"]
Row = TypeVar("Row", bound=ConfigurationRow)


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
    sustained
        Take frames as often as can be sustained, in place of once per longest stage: throughput,
        energy and power are those of that rate. Latency stays that of frames once per longest
        stage; queues may add to it.
    """

    min_throughput_fps: float = 0.0
    max_latency_s: float = inf
    max_energy_j: float = inf
    max_power_w: float = inf
    board: bool = False
    sustained: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """A demand as the most that one figure may be: seconds, joules or watts."""

    of: Objective
    most: float
    board: bool
    sustained: bool

    def share_of(self, row: ConfigurationRow) -> float:
        """Return what a configuration takes of what is allowed: at most 1 if it keeps it."""
        return self._of(row) / self.most

    def reached(self, row: ConfigurationRow) -> str:
        """Return a configuration's figure in the words of the demand."""
        return self._words(self._of(row))

    def missed(self, row: ConfigurationRow) -> str:
        """Say what a configuration comes to in place of what is asked, and how far off that is."""
        taken = self.share_of(row)
        few = self.of == "period"
        share = 1 - 1 / taken if few else taken - 1
        by = f"{100 * share:.2g} % too {'few' if few else 'much'}"
        return f"{self.reached(row)} in place of {self._words(self.most)}, {by} ({row.id})"

    def _of(self, row: ConfigurationRow) -> float:
        return figure(row, self.of, board=self.board, sustained=self.sustained)

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
    board, sustained = demands.board, demands.sustained
    return tuple(Limit(of, most, board, sustained) for of, most in asked if most < inf)


def figure(
    row: ConfigurationRow, of: Objective, *, board: bool = False, sustained: bool = False
) -> float:
    """Return a figure of a configuration: seconds, joules per frame, or watts.

    Parameters
    ----------
    board, sustained
        As in `Demands`. At another rate the operators of a frame take the same energy, and static
        and idle power last for another period.
    """
    period_s = row.sustained_period_s if sustained else row.period_s
    if of == "latency":
        return row.latency_s
    if of == "period":
        return period_s
    energy_j = row.board_energy_j if board else row.energy_j
    if sustained:
        energy_j += _lasting_w(row, board=board) * (period_s - row.period_s)
    return energy_j / period_s if of == "power" else energy_j


def _lasting_w(row: ConfigurationRow, *, board: bool) -> float:
    """Return the watts drawn whether processors compute or not."""
    used = [processor for stage in row.stages for processor in stage.processors]
    static_w = sum(processor.static_power_w for processor in used)
    idle_w = (row.board_energy_j - row.energy_j) / row.period_s
    return static_w + (idle_w if board else 0.0)


def best(rows: Sequence[Row], minimise: Objective, demands: Demands) -> Row:
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
        told = _in_the_way(rows, asked)
        raise DemandError(f"no configuration keeps all demands: {told}{_sustains(rows, demands)}")
    board, sustained = demands.board, demands.sustained
    return min(
        kept,
        key=lambda row: [
            figure(row, of, board=board, sustained=sustained)
            for of in (minimise, "latency", "period", "energy")
        ],
    )


def _sustains(rows: Sequence[ConfigurationRow], demands: Demands) -> str:
    """Name the fastest that keeps all demands at the rate it can sustain, if that is what helps."""
    if demands.sustained or not demands.min_throughput_fps:
        return ""
    kept = _keeping(rows, limits(replace(demands, sustained=True)))
    if not kept:
        return ""
    fastest = min(kept, key=lambda row: row.sustained_period_s)
    return f"; {fastest.id} sustains {1 / fastest.sustained_period_s:.4g} frames/s: --sustained"


def _keeping(rows: Sequence[Row], asked: Sequence[Limit]) -> Sequence[Row]:
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
