"""Divided clusters and streams: a processor that works as several, as a platform file has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from parapipe.platform.fields import Many, Section, Shares, Travel

CoreCount = Annotated[int, Field(ge=1, le=1024)]


class Divisions(Section):
    """How a CPU's cores may be divided, and what its parts take.

    Where a part was not measured itself, one of c of the C cores takes t(c) = t(C)·(s·C/c + 1 − s),
    as by Amdahl's law. It draws c/C of the power.

    Parameters
    ----------
    into
        Divisions to choose from, each as the numbers of cores of its parts, in the order of the
        processor's `cores`: `[2, 2]` are the first two and the last two of four.
    parallel_share
        s: share of an operator's time on all the cores that grows as there are fewer; by operator
        class, `default` for the classes that are not listed.
    hand_over
        Time to hand a tensor from a part to another one, synchronisation included.
    """

    into: Annotated[
        Many[Annotated[Many[CoreCount], Field(min_length=2)]], Field(min_length=1, max_length=64)
    ]
    parallel_share: Shares
    hand_over: Travel


def parts_of(name: str, cores: Sequence[int], sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each part of a division, by the part's name.

    A part is called by its first and last core: `big-4-5`, or `big-4` of a single one.
    """
    bounds = pairwise((0, *accumulate(sizes)))
    runs = [tuple(cores[first:last]) for first, last in bounds]
    return {"-".join([name, *map(str, dict.fromkeys((run[0], run[-1])))]): run for run in runs}


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
