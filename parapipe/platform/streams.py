"""Streams: several operators that one processor runs at the same time."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from parapipe.platform.fields import Many, Section
from parapipe.platform.travel import Travel

Factor = Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]


def _law(factors: tuple[float, ...]) -> tuple[float, ...]:
    if factors[0] != 1:
        raise ValueError(
            f"begins with {factors[0]:g}: one operator by itself takes 1 times as long"
        )
    if any(more < fewer for fewer, more in pairwise(factors)):
        raise ValueError("falls: with more operators at once, none takes less time")
    return factors


class Streams(Section):
    """How many operators a processor runs at once, and how much they slow each other down.

    With k streams, an operator takes as many times as long as by itself as the k-th factor says,
    and draws 1/k of the power: as if the others were always at work too. So no time is too short.
    The streams of a CPU share its cores: each has a k-th of its threads, at least one.

    Parameters
    ----------
    slowdown
        The law: the time of an operator when 1, 2, … run at once, over its time by itself. There
        are at most as many streams as factors.
    hand_over
        Time to hand a tensor from a stream to another one, synchronisation included.
    """

    slowdown: Annotated[Many[Factor], Field(min_length=2, max_length=64), AfterValidator(_law)]
    hand_over: Travel

    @property
    def into(self) -> tuple[tuple[int, ...], ...]:
        """Ways to open streams, as divisions are written: so many of one processor's each."""
        return tuple((1,) * count for count in range(2, len(self.slowdown) + 1))


def stream_names(name: str, count: int) -> tuple[str, ...]:
    """Return what the streams of a processor are called: `gpu-1of2` and `gpu-2of2`."""
    return tuple(f"{name}-{number}of{count}" for number in range(1, count + 1))
