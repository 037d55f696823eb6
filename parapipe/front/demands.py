"""What a user asks of a configuration, and which one keeps it: the best, or what stands in the way.

Each demand bounds one figure. Where no configuration keeps them all, the answer says what each
demand comes to as long as the others are kept, or alone if it is out of reach by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from parapipe.digits import plain
from parapipe.errors import DemandError
from parapipe.formats.front import ConfigurationRow
from parapipe.pipeline.dominance import TIE, TIES, least
from parapipe.platform.memories import no_such_memory

Objective = Literal["latency", "period", "energy", "power", "memory"]


class InMemory(NamedTuple):
    """What is needed in one memory of the platform, by its name."""

    name: str


Figure: TypeAlias = Objective | InMemory
Limits: TypeAlias = dict[Figure, float]
Row = TypeVar("Row", bound=ConfigurationRow)


@dataclass(frozen=True, slots=True)
class Demands:
    """Bounds on the figures of a configuration.

    Frames per second at least; seconds of one frame through all stages, joules per frame, and watts
    while frames come once per period, at most.

    Parameters
    ----------
    max_memory_bytes
        At most at one moment of a period, in all memories together, or in some by their names.
    board
        Count the board's idle power in energy and power.
    sustained
        Take frames as often as can be sustained, in place of once per longest stage: throughput,
        energy and power are those of that rate. Latency stays that of frames once per longest
        stage; queues may add to it.
    """

    min_fps: float = 0.0
    max_latency_s: float = inf
    max_energy_j: float = inf
    max_power_w: float = inf
    max_memory_bytes: float | Mapping[str, float] | None = None
    board: bool = False
    sustained: bool = False

    @property
    def limits(self) -> Limits:
        """The most that each figure may be, of those that are bounded, in SI units."""
        asked: Limits = {
            "period": 1 / self.min_fps if self.min_fps else inf,
            "latency": self.max_latency_s,
            "energy": self.max_energy_j,
            "power": self.max_power_w,
        }
        if isinstance(self.max_memory_bytes, Mapping):
            asked |= {InMemory(name): most for name, most in self.max_memory_bytes.items()}
        elif self.max_memory_bytes is not None:
            asked["memory"] = self.max_memory_bytes
        return {of: most for of, most in asked.items() if most < inf}

    def figure(self, row: ConfigurationRow, of: Figure) -> float:
        """Return a figure of a configuration as these demands count it."""
        return figure(row, of, board=self.board, sustained=self.sustained)

    def keeps(self, row: ConfigurationRow, of: Figure) -> bool:
        """Return whether a configuration keeps the bound of a figure.

        Frames per second are compared as such, as front.json states them: a period that is asked
        for to the last digit would be missed when it is turned into its reciprocal.
        """
        value = self.figure(row, of)
        if of == "period":
            return 1 / value >= self.min_fps
        return value <= self.limits[of]

    def missed(self, row: ConfigurationRow, of: Figure) -> str:
        """Say what a configuration comes to in place of what is asked, and how far off that is."""
        value, most = self.figure(row, of), self.limits[of]
        few = of == "period"
        share = 1 - most / value if few else value / most - 1
        percent = 100 * share
        size = "over 1000" if percent > 1e3 else plain(percent, 2)
        by = f"{size} % too {'few' if few else 'much'}"
        where = f" in '{of.name}'" if isinstance(of, InMemory) else ""
        return f"{_words(of, value)} instead of {_words(of, most)}{where}, {by} ({row.id})"


def _words(of: Figure, value: float) -> str:
    if of == "period":
        return f"{plain(1 / value)} frames/s"
    if of == "latency":
        return f"{plain(value * 1e3)} ms"
    if of == "memory" or isinstance(of, InMemory):
        return f"{plain(value / 1e6)} MB"
    return f"{plain(value)} W" if of == "power" else f"{plain(value * 1e3)} mJ per frame"


def figure(
    row: ConfigurationRow, of: Figure, *, board: bool = False, sustained: bool = False
) -> float:
    """Return a figure of a configuration: seconds, joules per frame, watts, or bytes.

    `board` and `sustained` are as in `Demands`. At another rate the operators of a frame take the
    same energy, and static and idle power last for another period.

    Raises
    ------
    DemandError
        Memory is asked for, and an older version wrote the front; or there is no such memory.
    """
    if of == "memory" or isinstance(of, InMemory):
        return _peak_bytes(row, of)
    period_s = row.sustained_period_s if sustained else row.period_s
    if of == "latency":
        return row.latency_s
    if of == "period":
        return period_s
    energy_j = row.board_energy_j if board else row.energy_j
    if sustained:
        lasting_w = sum(processor.static_power_w for processor in row.processors)
        if board:
            lasting_w += (row.board_energy_j - row.energy_j) / row.period_s
        energy_j += lasting_w * (period_s - row.period_s)
    return energy_j / period_s if of == "power" else energy_j


def _peak_bytes(row: ConfigurationRow, of: Figure) -> float:
    if row.peak_memory_bytes is None:
        raise DemandError(f"{row.id} says nothing of memory: write the front again with map")
    if not isinstance(of, InMemory):
        return row.peak_memory_bytes
    peaks = {each.name: each.peak_bytes for each in row.memories}
    if of.name not in peaks:
        raise DemandError(no_such_memory([of.name], tuple(peaks)))
    return peaks[of.name]


def best(rows: Sequence[Row], minimise: Objective, demands: Demands) -> Row:
    """Return the configuration that is least in one figure among those that keep all demands.

    Of those equal in it (`TIES`), the one of least latency, then period, then energy.

    Raises
    ------
    DemandError
        None keeps them all; the message says which demand stands in the way, and by how much.
    """
    kept = _keeping(rows, demands, demands.limits)
    if not kept:
        told = _in_the_way(rows, demands)
        raise DemandError(f"no configuration meets all demands: {told}{_sustains(rows, demands)}")
    order: tuple[Objective, ...] = (minimise, "latency", "period", "energy")
    ties = (TIES.get(minimise, TIE),)
    return least(kept, lambda row: [demands.figure(row, of) for of in order], ties)


def _keeping(rows: Sequence[Row], demands: Demands, limits: Limits) -> Sequence[Row]:
    """Return those that keep some of the demands."""

    def keeps(row: Row) -> bool:
        return all(demands.keeps(row, of) for of in limits)

    return list(filter(keeps, rows))


def _sustains(rows: Sequence[ConfigurationRow], demands: Demands) -> str:
    """Name the fastest that keeps all demands at the rate it can sustain, if that is what helps."""
    if demands.sustained or not demands.min_fps:
        return ""
    kept = _keeping(rows, replace(demands, sustained=True), demands.limits)
    if not kept:
        return ""
    fastest = min(kept, key=lambda row: row.sustained_period_s)
    return f"; {fastest.id} sustains {plain(1 / fastest.sustained_period_s)} frames/s: `sustained`"


def _in_the_way(rows: Sequence[ConfigurationRow], demands: Demands) -> str:
    """Say what to give up: demands that none keeps, else each that would do by itself."""
    asked = demands.limits

    def share(row: ConfigurationRow, of: Figure) -> float:
        """Return what a configuration takes of what is allowed."""
        return demands.figure(row, of) / asked[of] if asked[of] else inf

    def nearest(of: Figure, some: Sequence[ConfigurationRow]) -> str:
        return demands.missed(min(some, key=lambda row: share(row, of)), of)

    alone = [nearest(of, rows) for of in asked if not _keeping(rows, demands, {of: asked[of]})]
    if alone:
        return f"the nearest has {'; and the nearest has '.join(alone)}"
    single = [
        nearest(of, kept)
        for of in asked
        if (kept := _keeping(rows, demands, {o: asked[o] for o in asked if o != of}))
    ]
    if single:
        return f"one that meets the others has {'; or '.join(single)}"
    least = min(rows, key=lambda row: max(share(row, of) for of in asked))
    broken = [demands.missed(least, of) for of in asked if not demands.keeps(least, of)]
    return f"the nearest one has {' and '.join(broken)}"
