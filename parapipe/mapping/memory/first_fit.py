"""Offsets by first fits: in several orders, then in these with what lies too high moved forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from random import Random

from parapipe.mapping.memory.buffers import ArenaProblem

ROUNDS = 12
"""In which all that lies too high goes first."""
WORSE = 0.02
"""Share of changes that are kept although what is found is worse."""


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

    def orders(self) -> Iterator[list[int]]:
        """Yield orders: by size, then by size times life, then by life."""
        size, life = self.sizes, self.life
        yield sorted(self.others, key=lambda b: (size[b], life[b]), reverse=True)
        yield sorted(self.others, key=lambda b: (size[b] * life[b], size[b]), reverse=True)
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

    def in_rounds(self, order: list[int], enough_bytes: int) -> Placed:
        """Place an order, then again and again what ends above the peak before all else."""
        best = found = self.placed(order)
        for _ in range(ROUNDS):
            if best.size_bytes <= enough_bytes:
                break
            high = dict.fromkeys(self.above(found, self.peak_bytes))
            order = [*high, *(b for b in order if b not in high)]
            if order == found.order:
                break
            found = self.placed(order)
            best = min(best, found, key=lambda each: each.size_bytes)
        return best

    def above(self, found: Placed, size_bytes: int) -> list[int]:
        """Return what ends above so many bytes, in order."""
        ends = [*map(int.__add__, found.offset_bytes, self.sizes)]
        return [b for b in found.order if ends[b] > size_bytes]

    def changed(self, found: Placed, enough_bytes: int, changes: int, seed: int) -> Placed:
        """Move one buffer that lies too high forward in the order, again and again, at random.

        What is worse is seldom kept: a larger arena, or as large a one with more bytes above
        `enough_bytes`.
        """
        rng, best = Random(seed), found  # noqa: S311 - no secret
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
                best = min(best, found, key=lambda each: each.size_bytes)
        return best

    def _excess(self, found: Placed, enough_bytes: int) -> tuple[int, int]:
        ends = map(int.__add__, found.offset_bytes, self.sizes)
        return found.size_bytes, sum(end - enough_bytes for end in ends if end > enough_bytes)


def ceil_to(value: int, multiple: int) -> int:
    """Return the least multiple that is no less than a value."""
    return -(-value // multiple) * multiple
