"""Offsets by first fits: in several orders, then in these with what lies too high moved forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from random import Random

import numpy as np

from parapipe.mapping.memory.buffers import ArenaProblem

ROUNDS = 4
"""For each order, in which all that lies too high goes first."""
POWERS = (1, 2)
"""Powers of the life, of which the size is a multiple in orders."""
WORSE = 0.4
"""Share of worse changes that are kept: with few of them, the walk stays where it is."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Offsets of all buffers, and the order in which first fit gives them.

    Parameters
    ----------
    size_bytes
        Where the uppermost buffer ends.
    """

    size_bytes: int
    offset_bytes: list[int]
    order: list[int]


class FirstFits:
    """First fits of the buffers of a problem.

    What meets all others has bytes of its own in any arena, so it lies at the bottom and is in no
    order.

    Parameters
    ----------
    pairs
        Of buffers that meet: what one first fit takes.
    """

    def __init__(self, problem: ArenaProblem) -> None:
        count = range(len(problem.buffers))
        sizes, alignments = problem.size_bytes.tolist(), problem.alignment_bytes.tolist()
        always = {b for b in count if len(problem.met[b]) == len(count) - 1}
        self.problem = problem
        self.sizes: list[int] = sizes
        self.life = [each.end - each.begin for each in problem.buffers]
        self.others = [b for b in count if b not in always]
        self.met = [[a for a in met if a not in always] for met in problem.met]
        self.pairs = sum(len(self.met[b]) for b in self.others)
        self.bottom, self.floor = [0] * len(count), 0
        for b in sorted(always, key=lambda b: -alignments[b]):
            self.bottom[b] = ceil_to(self.floor, alignments[b])
            self.floor = self.bottom[b] + sizes[b]
        most = lcm(*alignments)
        fits = not any(size % most for size in sizes)  # then all ends are aligned for all others
        self.steps = [1] * len(count) if fits else alignments

    def least(self, enough_bytes: int, most: int, seed: int) -> Placed:
        """Return the smallest that is found, or the first that takes no more than `enough_bytes`.

        Parameters
        ----------
        most
            Placements, beside the first one.
        """
        best: Placed | None = None
        for order in self.orders():
            found = self.in_rounds(self.placed(order), enough_bytes, min(ROUNDS, most))
            best = found if best is None else min(best, found, key=_size)
            most -= 1 + ROUNDS
            if best.size_bytes <= enough_bytes or most <= 0:
                return best
        assert best is not None
        return self.changed(best, enough_bytes, most, seed)

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
        return self._placed(offsets, order)

    def moved(self, found: Placed, b: int, to: int) -> Placed:
        """Put buffers as `placed` does in an order in which one of them comes earlier.

        Only what meets buffers that lie elsewhere now is placed anew.
        """
        before, at = found.order, found.order.index(b)
        order = [*before[:to], b, *before[to:at], *before[at + 1 :]]
        offsets = found.offset_bytes.copy()
        is_placed, is_touched = bytearray(len(offsets)), bytearray(len(offsets))
        for a in order[:to]:
            is_placed[a] = True
        for a in (b, *self.met[b]):
            is_touched[a] = True
        for a in order[to:]:
            if is_touched[a] and (offset := self._lowest(a, offsets, is_placed)) != offsets[a]:
                offsets[a] = offset
                for other in self.met[a]:
                    is_touched[other] = True
            is_placed[a] = True
        return self._placed(offsets, order)

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

    def _placed(self, offsets: list[int], order: list[int]) -> Placed:
        return Placed(max(map(int.__add__, offsets, self.sizes)), offsets, order)

    def in_rounds(self, found: Placed, enough_bytes: int, rounds: int) -> Placed:
        """Place what ends above the peak before all else, again and again."""
        best = found
        for _ in range(rounds):
            if best.size_bytes <= enough_bytes:
                break
            high = dict.fromkeys(self.above(found, self.problem.peak_bytes))
            found = self.placed([*high, *(b for b in found.order if b not in high)])
            best = min(best, found, key=_size)
        return best

    def above(self, found: Placed, size_bytes: int) -> list[int]:
        """Return what ends above so many bytes, in order."""
        ends = [*map(int.__add__, found.offset_bytes, self.sizes)]
        return [b for b in found.order if ends[b] > size_bytes]

    def changed(self, found: Placed, enough_bytes: int, changes: int, seed: int) -> Placed:
        """Move one buffer that lies too high forward in the order, again and again, at random.

        Worse is what reaches further above `enough_bytes`, summed over all buffers.
        """
        rng, best = Random(seed), found
        worst = self._excess(found, enough_bytes)
        for _ in range(changes):
            if best.size_bytes <= enough_bytes:
                break
            high = self.above(found, enough_bytes)
            if not high:
                break
            b = rng.choice(high)
            at = found.order.index(b)
            made = self.moved(found, b, rng.randrange(at) if at else 0)
            excess = self._excess(made, enough_bytes)
            if excess <= worst or rng.random() < WORSE:
                found, worst = made, excess
                best = min(best, found, key=_size)
        return best

    def _excess(self, found: Placed, enough_bytes: int) -> int:
        ends = map(int.__add__, found.offset_bytes, self.sizes)
        return sum(end - enough_bytes for end in ends if end > enough_bytes)


def _size(found: Placed) -> int:
    return found.size_bytes


def ceil_to(value: int, multiple: int) -> int:
    """Return the least multiple that is no less than a value."""
    return -(-value // multiple) * multiple
