"""Divided clusters: a CPU whose cores work as several processors, as Pipe-it divides them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated

from pydantic import Field

from parapipe.platform.fields import Many, Section, Shares
from parapipe.platform.travel import Travel

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
