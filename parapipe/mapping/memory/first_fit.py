"""Offsets by first fits: in several orders, then in these with what lies too high moved forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm
from random import Random

from parapipe.mapping.memory.buffers import ArenaProblem

ROUNDS = 4
"""For each order, in which all that lies too high goes first."""
LIFE = (0, 2, 1)
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
        self.peak_bytes = problem.peak_bytes
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
            Placements, beside those of the first few orders.
        """
        tried: list[Placed] = []
        for order in self.orders():
            tried.append(self.placed(order))
            if tried[-1].size_bytes <= enough_bytes:
                return tried[-1]
        tried.sort(key=_size)
        for i, found in enumerate(tried):
            rounds = min(ROUNDS, most)
            tried[i] = self.in_rounds(found, enough_bytes, rounds)
            if tried[i].size_bytes <= enough_bytes:
                return tried[i]
            most -= rounds
        return self.changed(min(tried, key=_size), enough_bytes, most, seed)

    def orders(self) -> Iterator[list[int]]:
        """Yield orders: large ones first, then those of a large area, then those that live long."""
        size, life = self.sizes, self.life
        for power in LIFE:
            key = [(a * b**power, a, b) for a, b in zip(size, life, strict=True)]
            yield sorted(self.others, key=key.__getitem__, reverse=True)
        yield sorted(self.others, key=lambda b: (life[b], size[b]), reverse=True)

    def placed(self, order: list[int], known: Placed | None = None, same: int = 0) -> Placed:
        """Put each buffer in the lowest gap where it fits, in an order.

        Parameters
        ----------
        known
            Of an order with the same beginning, of so many buffers.
        """
        sizes, steps, met, floor = self.sizes, self.steps, self.met, self.floor
        offsets = (known.offset_bytes if known else self.bottom).copy()
        is_placed, top = bytearray(len(offsets)), floor
        for b in order[:same]:
            is_placed[b] = True
            top = max(top, offsets[b] + sizes[b])
        for b in order[same:]:
            offset = ceil_to(floor, step := steps[b])
            size = sizes[b]
            for begin, a in sorted([(offsets[a], a) for a in met[b] if is_placed[a]]):
                if offset + size <= begin:
                    break
                if (end := begin + sizes[a]) > offset:
                    offset = end if step == 1 else ceil_to(end, step)
            offsets[b], is_placed[b] = offset, True
            top = max(top, offset + size)
        return Placed(top, offsets, order)

    def in_rounds(self, found: Placed, enough_bytes: int, rounds: int) -> Placed:
        """Place what ends above the peak before all else, again and again."""
        best = found
        for _ in range(rounds):
            if best.size_bytes <= enough_bytes:
                break
            high = dict.fromkeys(self.above(found, self.peak_bytes))
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
            order, high = found.order, self.above(found, enough_bytes)
            if not high:
                break
            at = order.index(rng.choice(high))
            to = rng.randrange(at) if at else 0
            order = [*order[:to], order[at], *order[to:at], *order[at + 1 :]]
            made = self.placed(order, found, to)
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
