"""Frames of several models in one pattern: when each comes, and what is waiting for it worth.

A pattern repeats every period T and holds n frames of a model, which come T / n apart. When the
first one comes is free; so is which frame of the pattern is which, and a frame may be a period
older. What of a frame starts first may do so when it has come, and the latency of a model is that
of the frame that takes longest, from when it comes to its last end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

Span = tuple[int, int]  # first start and last end of a frame


@dataclass(frozen=True)
class Frames:
    """Which frame each operator is of.

    Parameters
    ----------
    operators
        Of one frame of each model; a pattern's operators are those of the first model's frames, one
        after the other, then those of the next one's.
    counts
        Frames of each model in a pattern.
    urgency
        What a nanosecond of latency counts, by model.
    phase
        When the first frame of each model comes, as a share of the period: to begin with.
    """

    operators: tuple[int, ...]
    counts: tuple[int, ...]
    urgency: tuple[float, ...]
    phase: tuple[float, ...] = ()

    @cached_property
    def of(self) -> tuple[int, ...]:
        """Frame of each operator."""
        return tuple(frame for frame, begin, end in self._ranges for _ in range(begin, end))

    @cached_property
    def model(self) -> tuple[int, ...]:
        """Model of each frame."""
        return tuple(model for model, count in enumerate(self.counts) for _ in range(count))

    @cached_property
    def _ranges(self) -> tuple[tuple[int, int, int], ...]:
        found, begin = [], 0
        for frame, model in enumerate(self.model):
            found.append((frame, begin, begin + self.operators[model]))
            begin += self.operators[model]
        return tuple(found)

    @cached_property
    def weight(self) -> tuple[float, ...]:
        """What a nanosecond counts until each operator ends."""
        return tuple(self.urgency[self.model[frame]] for frame in self.of)

    def arrivals(self, period: int) -> tuple[int, ...]:
        """Return when each operator's frame comes, to begin with."""
        phase = self.phase or (0.0,) * len(self.counts)
        at = [
            int(share * period) + number * period // count
            for share, count in zip(phase, self.counts, strict=True)
            for number in range(count)
        ]
        return tuple(at[frame] for frame in self.of)

    def spans(self, start: Sequence[int], end: Sequence[int]) -> list[Span]:
        """Return when each frame starts and ends."""
        return [(min(start[a:b]), max(end[a:b])) for _, a, b in self._ranges]

    def cost(self, period: int, start: Sequence[int], end: Sequence[int]) -> float:
        """Return what latencies count: the most urgent one, and a little of all others."""
        found = self.latencies(period, self.spans(start, end))
        counted = [each * urgent for each, urgent in zip(found, self.urgency, strict=True)]
        return max(counted) + sum(counted) / 100

    def latencies(self, period: int, spans: Sequence[Span]) -> list[int]:
        """Return the latency of each model."""
        if len(spans) == len(self.counts):  # a frame of each: asked again and again
            return [end - begin for begin, end in spans]
        return [latency for _, latency in self.served(period, spans)]

    def served(self, period: int, spans: Sequence[Span]) -> list[tuple[tuple[int, ...], int]]:
        """Return when each model's frames come, one by one as in the pattern, and its latency.

        A frame comes at most a period before its first start; none comes later than that.
        """
        found, begin = [], 0
        for count in self.counts:
            own = spans[begin : begin + count]
            turns = sorted(range(count), key=lambda frame: (own[frame][0] % period, frame))
            due = {frame: turn * period // count for turn, frame in enumerate(turns)}
            first = min(at % period - due[frame] for frame, (at, _) in enumerate(own))
            come = tuple(
                at // period * period + first + due[frame] for frame, (at, _) in enumerate(own)
            )
            latency = max(end - came for (_, end), came in zip(own, come, strict=True))
            found.append((come, latency))
            begin += count
        return found
