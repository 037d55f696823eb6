"""All ways to run one unit, as columns of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.problems import Placed, Template, UnitRun
from parapipe.pipeline.time_energy import Locations

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


class Ways(NamedTuple):
    """Columns by their codes, and ways to run a unit by column and processors."""

    columns: Mapping[int, int]
    ways: Mapping[tuple[int, int], Placed]


@dataclass(frozen=True, slots=True)
class Step:
    """All ways to run one unit, or several as one.

    A column says where exits run: first one for each processor of the platform, which runs all
    alone, then one for each choice of the exits' processors among several.

    Parameters
    ----------
    ways
        By column and processors.
    columns
        Number of each column, by its code.
    time_s
        [place before, column, processors]: a bound, or what was found. Infinite if impossible.
    energy_j
        [column, processors]: a bound of the dynamic energy.
    out
        [place before, column]: number of the place behind.
    known
        [place before, column, processors]: whether a schedule for it is known.
    """

    run: UnitRun
    ways: Mapping[tuple[int, int], Placed]
    columns: Mapping[int, int]
    time_s: Numbers
    energy_j: Numbers
    out: Whole
    known: NDArray[np.bool_]


def ways_of(template: Template, count: int, choices: float) -> Ways:
    """Return the ways to run a unit on `count` processors, with so many choices for its exits."""
    every = template.ways(choices)
    codes = [code_of(way.processors, way.pins.values(), count) for way in every]
    # processors that cannot run the unit have columns, too: there may even be no way at all
    columns = {code: i for i, code in enumerate(sorted({*range(count), *codes}))}
    ways = {(columns[code], way.processors): way for code, way in zip(codes, every, strict=True)}
    return Ways(columns, ways)


def code_of(processors: int, pins: Iterable[int], count: int) -> int:
    """Return a number for where exits run: that of the processor that runs all alone, if any."""
    if processors.bit_count() == 1:
        return processors.bit_length() - 1
    found = 0
    for p in pins:
        found = found * count + p
    return count + found


def places_behind(
    template: Template,
    places: Sequence[Locations],
    ways: Mapping[int, Placed],
    *,
    copies: bool = False,
) -> list[dict[int, Locations]]:
    """Return, for each place before a unit, the place behind it by column.

    Parameters
    ----------
    places
        Without copies, unless these count.
    ways
        One by column.
    copies
        Whether copies that a unit makes count.
    """
    if copies:
        return [{c: template.locations_out(at, way) for c, way in ways.items()} for at in places]
    makers = template.behind
    exits = {
        column: [None if maker is None else (way.pins[maker],) for maker, _ in makers]
        for column, way in ways.items()
    }
    return [
        {
            column: tuple(
                [at[before] if p is None else p for p, (_, before) in zip(own, makers, strict=True)]
            )
            for column, own in exits.items()
        }
        for at in places
    ]
