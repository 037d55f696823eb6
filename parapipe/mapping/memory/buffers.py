"""Buffers with lives, on a line or on the circle of a period, that share one arena of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import gcd

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
        begin = _whole(each.begin for each in self.buffers)
        length = _whole(each.end - each.begin for each in self.buffers)
        found: list[Indices] = []
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
            found += np.split(both.nonzero()[1], both.sum(axis=1).cumsum()[:-1])
        return found

    @cached_property
    def size_bytes(self) -> Indices:
        """Sizes of all buffers."""
        return _whole(each.size_bytes for each in self.buffers)

    @cached_property
    def alignment_bytes(self) -> Indices:
        """Alignments of all buffers."""
        return _whole(each.alignment_bytes for each in self.buffers)

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
    found = []
    if len(offset_bytes) != len(problem.buffers):
        return [f"{len(offset_bytes)} offsets for {len(problem.buffers)} buffers"]
    for each, offset in zip(problem.buffers, offset_bytes, strict=True):
        if offset < 0 or offset % each.alignment_bytes:
            found.append(
                f"{each.name!r} is at {offset}, no multiple of {each.alignment_bytes} from 0 on"
            )
    spans = sorted((span, b) for b in range(len(problem.buffers)) for span in problem.spans(b))
    begin, end, b = (_whole(each) for each in zip(*((*span, b) for span, b in spans), strict=True))
    low = np.array(offset_bytes, dtype=np.int64)[b]
    high = low + problem.size_bytes[b]
    for top in range(0, len(spans), ROWS):
        own = slice(top, top + ROWS)
        both = (low[own, None] < high[: top + ROWS]) & (low[: top + ROWS] < high[own, None])
        both &= (end[: top + ROWS] > begin[own, None]) & (b[own, None] != b[: top + ROWS])
        found += (
            f"{problem.buffers[b[top + j]].name!r} and {problem.buffers[b[i]].name!r} overlap"
            for j, i in np.argwhere(np.tril(both, k=top - 1)).tolist()
        )
    return found


def _whole(values: Iterable[int]) -> Indices:
    return np.fromiter(values, dtype=np.int64)
