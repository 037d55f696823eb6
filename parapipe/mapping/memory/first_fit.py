"""Offsets by first fits in several orders, then in these with what lies too high at first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import lcm

import numpy as np

from parapipe.mapping.memory.buffers import ArenaProblem

MOST_PAIRS = 300_000
"""Of buffers that meet, which first fits go through: with many buffers, there are fewer of them."""
ROUNDS = 4
"""For each order, in which all that lies too high goes first."""
POWERS = (1, 2)
"""Powers of the life, of which the size is a multiple in orders."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Offsets of all buffers.

    Parameters
    ----------
    size_bytes
        Where the uppermost buffer ends.
    """

    size_bytes: int
    offset_bytes: list[int]


class FirstFits:
    """First fits of the buffers of a problem.

    What meets all others has bytes of its own in any arena, so it lies at the bottom and is in no
    order.
    """

    def __init__(self, problem: ArenaProblem) -> None:
        count = range(len(problem.buffers))
        sizes, alignments = problem.size_bytes.tolist(), problem.alignment_bytes.tolist()
        meets_all = np.array(
            [len(met) == len(count) - 1 for met in problem.overlaps], dtype=np.bool_
        )
        always = np.flatnonzero(meets_all).tolist()
        self.problem = problem
        self.sizes: list[int] = sizes
        self.life = [each.end - each.begin for each in problem.buffers]
        self.others: list[int] = np.flatnonzero(~meets_all).tolist()
        self.overlaps = [met[~meets_all[met]] for met in problem.overlaps]
        self.met: list[list[int]] = [met.tolist() for met in self.overlaps]
        self.bottom, self.floor = [0] * len(count), 0
        for b in sorted(always, key=lambda b: -alignments[b]):
            self.bottom[b] = ceil_to(self.floor, alignments[b])
            self.floor = self.bottom[b] + sizes[b]
        most = lcm(*alignments)
        fits = not any(size % most for size in sizes)  # then all ends are aligned for all others
        self.steps = [1] * len(count) if fits else alignments

    def smallest_first(self, enough_bytes: int) -> list[Placed]:
        """Return one of each order, the smallest first, up to one of at most `enough_bytes`."""
        orders = MOST_PAIRS // ((1 + ROUNDS) * max(1, sum(map(len, self.met))))
        found = []
        for order in islice(self.orders(), max(1, orders)):
            found.append(self._in_rounds(order, enough_bytes))
            if found[-1].size_bytes <= enough_bytes:
                break
        return sorted(found, key=_size)

    def _in_rounds(self, order: list[int], enough_bytes: int) -> Placed:
        """Place what ends above the peak before all else, again and again."""
        best = found = self.placed(order)
        for _ in range(ROUNDS):
            if best.size_bytes <= enough_bytes:
                break
            ends = [*map(int.__add__, found.offset_bytes, self.sizes)]
            high = dict.fromkeys(b for b in order if ends[b] > self.problem.peak_bytes)
            order = [*high, *(b for b in order if b not in high)]
            found = self.placed(order)
            best = min(best, found, key=_size)
        return best

    def orders(self) -> Iterator[list[int]]:
        """Yield orders: by size, by time, by load and by life.

        Time begins where least is alive, or ends there; loads are highest at the peak or near it.
        """
        size, life, sections = self.sizes, self.life, self.problem.sections
        yield self._by(size, life)
        load = np.array(size) @ self.problem.alive
        count, least, peak = len(load), int(load.argmin()), int(load.argmax())
        late = [(int(own[0]) - least) % count for own in sections]
        yield self._by([-each for each in late], size)
        away = np.abs(np.arange(count) - peak)
        if self.problem.period is not None:
            away = np.minimum(away, count - away)
        yield self._by([-int(away[own].min()) for own in sections], size)
        yield self._by(late, life)
        beside = [sum(size[a] for a in met) for met in self.met]
        yield self._by([int(load[own].max()) for own in sections], beside)
        yield self._by(beside, size)
        for power in POWERS:
            yield self._by([a * b**power for a, b in zip(size, life, strict=True)], size)
        yield self._by(life, size)

    def _by(self, first: Sequence[int], then: Sequence[int]) -> list[int]:
        """Return an order in which most of the first goes first, then most of the other."""
        return sorted(self.others, key=lambda b: (first[b], then[b]), reverse=True)

    def placed(self, order: list[int]) -> Placed:
        """Put each buffer in the lowest gap where it fits, in an order."""
        offsets, is_placed = self.bottom.copy(), bytearray(len(self.sizes))
        for b in order:
            offsets[b] = self._lowest(b, offsets, is_placed)
            is_placed[b] = True
        return Placed(max(map(int.__add__, offsets, self.sizes)), offsets)

    def _lowest(self, b: int, offsets: Sequence[int], is_placed: bytearray) -> int:
        """Return the lowest offset of a buffer beside those that are placed."""
        sizes, step, size = self.sizes, self.steps[b], self.sizes[b]
        offset = ceil_to(self.floor, step)
        for begin, a in sorted([(offsets[a], a) for a in self.met[b] if is_placed[a]]):
            if offset + size <= begin:
                break
            if (end := begin + sizes[a]) > offset:
                offset = end if step == 1 else ceil_to(end, step)
        return offset


def _size(found: Placed) -> int:
    return found.size_bytes


def ceil_to(value: int, multiple: int) -> int:
    """Return the least multiple that is no less than a value."""
    return -(-value // multiple) * multiple
