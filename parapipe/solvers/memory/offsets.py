"""Buffers with lifetimes that share one arena, and their offsets by first fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from parapipe.errors import VerificationError

Indices = npt.NDArray[np.int64]
ROWS = 256
"""Of lives that are compared with others at once."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes in a row that are needed from `begin` until just before `end`, in any whole unit.

    Raises
    ------
    ValueError
        If it has no size or no life, or its alignment is below 1.
    """

    name: str
    size_bytes: int
    begin: int
    end: int
    alignment_bytes: int = 1

    def __post_init__(self) -> None:
        if min(self.size_bytes, self.alignment_bytes, self.end - self.begin) < 1:
            raise ValueError(
                f"buffer {self.name!r}: size, alignment and length of its life have to be 1 or more"
            )


@dataclass(frozen=True)
class ArenaProblem:
    """Buffers that all want an offset; those that are alive at the same time must not overlap.

    Parameters
    ----------
    period
        Lives repeat after so much time: a life that goes beyond it goes on from 0, at the same
        offset. If None, all happens once.

    Raises
    ------
    ValueError
        If a life begins outside the period, or is longer. See `frames_of`.
    """

    buffers: tuple[Buffer, ...]
    period: int | None = None

    def __post_init__(self) -> None:
        if self.period is not None:
            for each in self.buffers:
                if not 0 <= each.begin < self.period or each.end - each.begin > self.period:
                    raise ValueError(
                        f"buffer {each.name!r} has to begin within the period of {self.period} and "
                        "to live no longer than it: make its frames by `frames_of`"
                    )

    def spans(self, b: int) -> tuple[tuple[int, int], ...]:
        """Return when a buffer is alive between 0 and the period: once, or twice if it wraps."""
        begin, end = self.buffers[b].begin, self.buffers[b].end
        if self.period is None or end <= self.period:
            return ((begin, end),)
        return ((begin, self.period), (0, end - self.period))

    @cached_property
    def sections(self) -> list[Indices]:
        """Numbers of the sections in which each buffer is alive.

        A section follows the begin of a life and goes before the end of one, and no life begins or
        ends within it: what is alive at any time is so in one of these.
        """
        spans = [self.spans(b) for b in range(len(self.buffers))]
        events = sorted(
            {(at, kind) for own in spans for span in own for kind, at in enumerate(span[::-1])}
        )  # at the same time, ends go before begins
        count, last = -1, 0
        section: dict[tuple[int, int], int] = {}
        for event in events:
            if event[1] > last:
                count += 1
            last = event[1]
            section[event] = count
        return [
            np.concatenate(
                [np.arange(section[begin, 1], section[end, 0] + 1) for begin, end in own]
            )
            for own in spans
        ]

    @cached_property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether each buffer is alive in each section."""
        count = 1 + max((int(each.max()) for each in self.sections), default=-1)
        alive = np.zeros((len(self.buffers), count), dtype=np.bool_)
        for b, sections in enumerate(self.sections):
            alive[b, sections] = True
        return alive

    @cached_property
    def overlaps(self) -> list[Indices]:
        """For each buffer, the others that are alive at some time of its life, ascending."""
        begin = _int_array(each.begin for each in self.buffers)
        length = _int_array(each.end - each.begin for each in self.buffers)
        others: list[Indices] = []
        for top in range(0, len(begin), ROWS):
            own = slice(top, top + ROWS)
            after = begin - begin[own, None]  # others begin so much after these
            if self.period is None:
                both = (after < length[own, None]) & (-after < length)
            else:
                after += (after < 0) * self.period
                both = (after < length[own, None]) | (self.period - after < length)
            rows = np.arange(len(both))
            both[rows, top + rows] = False
            others += np.split(both.nonzero()[1], both.sum(axis=1).cumsum()[:-1])
        return others

    @cached_property
    def size_bytes(self) -> Indices:
        """Sizes of all buffers."""
        return _int_array(each.size_bytes for each in self.buffers)

    @cached_property
    def alignment_bytes(self) -> Indices:
        """Alignments of all buffers."""
        return _int_array(each.alignment_bytes for each in self.buffers)

    @cached_property
    def unit_bytes(self) -> int:
        """A number that divides all offsets, if each buffer lies as low as those below let it."""
        sizes, alignments = gcd(*self.size_bytes.tolist()), self.alignment_bytes.tolist()
        if any(sizes % each for each in alignments):
            return gcd(sizes, *alignments)
        return sizes or 1

    @cached_property
    def peak_bytes(self) -> int:
        """Return the most that is alive at one time, a bound of every arena.

        All offsets are multiples of what divides all alignments. So each buffer but the uppermost
        takes its size rounded up to that.
        """
        step = gcd(*self.alignment_bytes.tolist()) or 1
        if not (self.size_bytes % step).any():
            return max(accumulate(change for _, change in sorted(self._changes())), default=0)
        rounded = -(-self.size_bytes // step) * step
        together = rounded @ self.alive
        slack = np.where(self.alive, (rounded - self.size_bytes)[:, None], 0)
        return int((together - slack.max(axis=0, initial=0)).max(initial=0))

    def _changes(self) -> Iterator[tuple[int, int]]:
        """Yield when bytes come, and go: at the same time, they go first."""
        for b, each in enumerate(self.buffers):
            for begin, end in self.spans(b):
                yield begin, each.size_bytes
                yield end, -each.size_bytes


def frames_of(buffer: Buffer, period: int, frames: int = 1) -> Iterator[Buffer]:
    """Yield the buffers of a tensor that is made once per period, for a circle of many frames.

    Offsets repeat after `frames` frames, so that the problem's period is `frames` times this one.
    There is a buffer for each of these frames. If more than `frames` of the tensor are alive at one
    time, so many buffers take turns, and each is in use at any time.

    Parameters
    ----------
    buffer
        The life of frame 0, which may be longer than the period.
    """
    circle = period * frames
    length = buffer.end - buffer.begin
    alive = -(-length // period)
    for frame in range(max(frames, alive)):
        begin, end = 0, circle
        if alive <= frames:
            begin = (buffer.begin + frame * period) % circle
            end = begin + length
        name = f"{buffer.name}@{frame}" if max(frames, alive) > 1 else buffer.name
        yield Buffer(name, buffer.size_bytes, begin, end, buffer.alignment_bytes)


def check(problem: ArenaProblem, offset_bytes: Sequence[int]) -> None:
    """Raise `VerificationError` if buffers do not lie right."""
    wrong = violations(problem, offset_bytes)
    if wrong:
        raise VerificationError(f"buffers do not lie right: {'; '.join(wrong)}", wrong)


def violations(problem: ArenaProblem, offset_bytes: Sequence[int]) -> list[str]:
    """Return what is wrong with offsets: buffers at wrong places, and pairs that overlap."""
    wrong = []
    if len(offset_bytes) != len(problem.buffers):
        return [f"{len(offset_bytes)} offsets for {len(problem.buffers)} buffers"]
    for each, offset in zip(problem.buffers, offset_bytes, strict=True):
        if offset < 0 or offset % each.alignment_bytes:
            wrong.append(
                f"{each.name!r} is at {offset}, no multiple of {each.alignment_bytes} from 0 on"
            )
    spans = sorted((span, b) for b in range(len(problem.buffers)) for span in problem.spans(b))
    begin, end, b = (
        _int_array(each) for each in zip(*((*span, b) for span, b in spans), strict=True)
    )
    low = np.array(offset_bytes, dtype=np.int64)[b]
    high = low + problem.size_bytes[b]
    for top in range(0, len(spans), ROWS):
        own = slice(top, top + ROWS)
        both = (low[own, None] < high[: top + ROWS]) & (low[: top + ROWS] < high[own, None])
        both &= (end[: top + ROWS] > begin[own, None]) & (b[own, None] != b[: top + ROWS])
        wrong += (
            f"{problem.buffers[b[top + j]].name!r} and {problem.buffers[b[i]].name!r} overlap"
            for j, i in np.argwhere(np.tril(both, k=top - 1)).tolist()
        )
    return wrong


def _int_array(values: Iterable[int]) -> Indices:
    return np.fromiter(values, dtype=np.int64)


MOST_PAIRS = 300_000
"""Of buffers that meet, which first fits go through: with many buffers, there are fewer of them."""
ROUNDS = 4
"""For each order, in which all that lies too high goes first."""
POWERS = (1, 2)
"""Powers of the life, of which the size is a multiple in orders."""


@dataclass(frozen=True, slots=True)
class Packing:
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

    def smallest_first(self, enough_bytes: int) -> list[Packing]:
        """Return one of each order, the smallest first, up to one of at most `enough_bytes`."""
        orders = MOST_PAIRS // ((1 + ROUNDS) * max(1, sum(map(len, self.met))))
        packings = []
        for order in islice(self.orders(), max(1, orders)):
            packings.append(self._in_rounds(order, enough_bytes))
            if packings[-1].size_bytes <= enough_bytes:
                break
        return sorted(packings, key=_size)

    def _in_rounds(self, order: list[int], enough_bytes: int) -> Packing:
        """Place what ends above the peak before all else, again and again."""
        best = packing = self.placed(order)
        for _ in range(ROUNDS):
            if best.size_bytes <= enough_bytes:
                break
            ends = [*map(int.__add__, packing.offset_bytes, self.sizes)]
            high = dict.fromkeys(b for b in order if ends[b] > self.problem.peak_bytes)
            order = [*high, *(b for b in order if b not in high)]
            packing = self.placed(order)
            best = min(best, packing, key=_size)
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

    def placed(self, order: list[int]) -> Packing:
        """Put each buffer in the lowest gap where it fits, in an order."""
        offsets, is_placed = self.bottom.copy(), bytearray(len(self.sizes))
        for b in order:
            offsets[b] = self._lowest(b, offsets, is_placed)
            is_placed[b] = True
        return Packing(max(map(int.__add__, offsets, self.sizes)), offsets)

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


def _size(packing: Packing) -> int:
    return packing.size_bytes


def ceil_to(value: int, multiple: int) -> int:
    """Return the least multiple that is no less than a value."""
    return -(-value // multiple) * multiple
