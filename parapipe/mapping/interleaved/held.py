"""What the tensors of frames under way hold while processors take turns, and schedules with less.

A tensor is held from the start of the operator that makes it to the end of the last one that reads
it. If a reader on another processor works at another frame lag, there is a queue, all of whose
slots are held at any time. The mean over a period is quick to find and falls with the peak.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from parapipe.mapping.interleaved.cyclic import Cyclic, ModuloSchedule
from parapipe.mapping.interleaved.modulo import Works, soon_read, tightened
from parapipe.mapping.interleaved.reordered import Orders

WARMTH = 0.005  # share of what is held that a change may add at the beginning
CHANGES = 100  # at most, for each work: few works have few orders


@dataclass(frozen=True, slots=True)
class Sizes:
    """What tensors count for.

    Parameters
    ----------
    size
        Of a flow where a processor keeps it: bytes, or shares of a limit.
    copied
        Whether a flow is copied from one processor to another.
    """

    size: Callable[[int, int], float]
    copied: Callable[[int, int, int], bool]


class _Life(NamedTuple):  # looked at most often
    """A tensor, or a copy, in one place.

    Parameters
    ----------
    begin
        After the maker's start.
    least
        How long it is there at least.
    readers, across
        All of them, and those on other processors than the maker.
    """

    size: float
    maker: int
    begin: int
    least: int
    readers: tuple[int, ...]
    across: tuple[int, ...]


class Held:
    """What is held on given processors, whatever the starts.

    Parameters
    ----------
    works
        On these processors, at this period.
    """

    def __init__(self, works: Works, period: int, sizes: Sizes) -> None:
        self.works, self.period = works, period
        self.lives: list[_Life] = []
        for flow, made in enumerate(works.net.problem.flows):
            if made.producer is not None:
                self._add(flow, made.producer, made.consumers, sizes)

    def _add(self, flow: int, maker: int, readers: Sequence[int], sizes: Sizes) -> None:
        net, place, time = self.works.net, self.works.place, self.works.time
        p = place[maker]
        copies: dict[int, list[int]] = {}
        here: list[int] = []
        for v in readers:
            q = place[v]
            (copies.setdefault(q, []) if q != p and sizes.copied(flow, p, q) else here).append(v)
        arrives = time[maker] + max((net.delay[flow][p][q] for q in copies), default=0)
        across = tuple(v for v in here if place[v] != p)
        self.lives.append(_Life(sizes.size(flow, p), maker, 0, arrives, tuple(here), across))
        for q, there in copies.items():
            delay, to = net.delay[flow][p][q], tuple(there)
            self.lives.append(_Life(sizes.size(flow, q), maker, time[maker], delay, to, to))

    def mean(self, start: Sequence[int]) -> float:
        """Return the mean over a period of what is held."""
        time, period = self.works.time, self.period
        first = min(start[: self.works.net.operators])
        total = 0.0
        for size, maker, begin, least, readers, across in self.lives:
            made = start[maker]
            life = least
            for v in readers:
                until = start[v] + time[v] - made - begin
                if until > life:  # noqa: PLR1730 - faster than max(), and run most often
                    life = until
            lag, slots = (made - first) // period, 0
            for v in across:
                if (start[v] - first) // period != lag:
                    slots = max(slots, 2, -(-(start[v] + time[v] - made) // period))
            if slots:
                life = max(slots, -(-life // period)) * period
            total += size * life
        return total / period


def thriftier(
    net: Cyclic, schedule: ModuloSchedule, sizes: Sizes, seed: int, pieces: int
) -> list[ModuloSchedule]:
    """Return schedules of the same assignment and period that hold less, as far as found.

    Parameters
    ----------
    seed
        Of all random choices.
    pieces
        Of work, or operators, whose starts are worked out.
    """
    works, period = Works.of(net, schedule.processor), schedule.period
    start = works.starts(schedule)
    held = Held(works, period, sizes)
    orders = Orders(works, period, start, held.mean, idle=True)
    changes = min(pieces // len(start), CHANGES * len(start))
    best = orders.annealed(random.Random(seed), changes, WARMTH)
    found = (works.schedule(period, each) for each in (best, tightened(works, period, best)))
    return [each for each in found if soon_read(works, each)]
