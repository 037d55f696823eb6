"""All ways to run one unit, as columns of arrays, with bounds for requests not yet built."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.problems.problems import FromOutside, Template, UnitMode, UnitRun
from parapipe.problems.time_energy import Locations
from parapipe.processes.memory_limit import MemoryLimit
from parapipe.solvers.problem import Flow

Numbers = NDArray[np.float64]
Pins = Sequence[Mapping[int, int] | None]
MOST_CELLS = 1 << 24  # of all steps together, where they are limited
CELL_BYTES = 40  # that each takes, what is found from it included
CELLS_SHARE = 0.25  # of a limit of memory, that is for them


def most_cells(memory: MemoryLimit | None) -> int:
    """Return how many cells all steps together may have, with room for them in the memory."""
    room = inf if memory is None else CELLS_SHARE * memory.limit_bytes / CELL_BYTES
    return int(min(MOST_CELLS, room))


def membership(count: int) -> NDArray[np.bool_]:
    """Return which of so many processors are in which set: [set, processor]."""
    inside: NDArray[np.bool_] = (np.arange(1 << count)[:, None] >> np.arange(count) & 1) == 1
    return inside


def _reads_by_operator(
    template: Template, exits: Collection[int]
) -> tuple[dict[int, list[Flow | FromOutside]], dict[int, float]]:
    """Return what each operator reads, and which is the last to read what each makes.

    Exits are of use to the end.
    """
    reads_of: dict[int, list[Flow | FromOutside]] = {}
    last: dict[int, float] = dict.fromkeys(exits, inf)
    for read in template.reads:
        readers = read.consumers if isinstance(read, Flow) else read.readers
        for v in readers:
            reads_of.setdefault(v, []).append(read)
        if isinstance(read, Flow) and read.producer is not None:
            last[read.producer] = max(last.get(read.producer, 0), *readers)
    return reads_of, last


def _arrival_s(
    read: Flow | FromOutside, places: Sequence[Locations], ends: Mapping[int, Numbers], count: int
) -> Numbers | None:
    """Return when a tensor is at each processor at the earliest; None where it always is."""
    matrix = np.array(read.transfer_s)
    if isinstance(read, Flow):
        if read.producer is None:
            return None
        arrival: Numbers = (ends[read.producer][..., None] + matrix).min(axis=2)
        return arrival
    before = read.before
    if before is None:
        return None
    rows = [
        [0.0 if q in at[before] else matrix[at[before][0], q] for q in range(count)]
        for at in places
    ]
    return np.array(rows)[:, None, :]


def bounds_s(template: Template, places: Sequence[Locations], pins: Pins, count: int) -> Numbers:
    """Return lower bounds by longest paths and loads: [place, column, set]."""
    inside = membership(count)
    time_s = np.array(template.time_s)
    reads_of, last = _reads_by_operator(template, {v for pin in pins for v in pin or ()})
    ends: dict[int, Numbers] = {}  # [place, set, processor], of what is still of use
    path_s = np.zeros((len(places), len(inside)))
    for v, row in enumerate(time_s):
        start_s = np.zeros((len(places), len(inside), count))
        for read in reads_of.get(v, ()):
            if (arrival_s := _arrival_s(read, places, ends, count)) is not None:
                start_s = np.maximum(start_s, arrival_s)
        ends[v] = np.where(inside, start_s + row, inf)
        path_s = np.maximum(path_s, ends[v].min(axis=2))
        for u in [u for u in ends if last.get(u, u) <= v]:
            del ends[u]
    size = np.maximum(inside.sum(axis=1), 1)
    # Whatever the shares of processors, that add up to 1: operators take at least their times
    # multiplied by shares, each where that is least. Shares in proportion to speed are good ones.
    finite = np.where(time_s < inf, time_s, 0.0)
    alone_s = np.where(time_s < inf, time_s.min(axis=1, keepdims=True), 0.0).sum(axis=0)
    speed = alone_s / np.maximum(finite.sum(axis=0), 1e-12) + 1e-9
    share = np.where(inside, speed, 0.0)
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-12)  # [set, processor]
    runs = inside & (time_s < inf)[:, None, :]
    loads = [
        (np.where(runs, each * finite[:, None, :], inf).min(axis=2), each)
        for each in (share, np.where(inside, 1 / size[:, None], 0.0))
    ]
    bounds = np.empty((len(places), len(pins), len(inside)))
    for column, pin in enumerate(pins):
        bound_s = path_s
        for v, p in (pin or {}).items():
            bound_s = np.maximum(bound_s, ends[v][:, :, p])
        for shared, each in loads:
            load_s = shared.sum(axis=0)
            for v, p in (pin or {}).items():
                more_s = np.where(inside[:, p], each[:, p] * time_s[v, p], 0.0) - shared[v]
                load_s = load_s + np.where(np.isfinite(more_s), more_s, 0.0)
            bound_s = np.maximum(bound_s, load_s)
        bounds[:, column] = bound_s
    return bounds


def least_energy_j(run: UnitRun, pins: Pins, costs: CostTable) -> Numbers:
    """Return lower bounds of the energy: [column, set]."""
    count = len(costs.processors)
    inside = membership(count)
    energy_j = np.array(
        [
            [costs.energy_j(v, p) if row[p] < inf else inf for p in range(count)]
            for v, row in zip(run.operators, run.template.time_s, strict=True)
        ]
    )
    least = np.where(inside, energy_j[:, None, :], inf).min(axis=2)
    bounds = np.empty((len(pins), len(inside)))
    for column, pin in enumerate(pins):
        total = least.sum(axis=0)
        for v, p in (pin or {}).items():
            total = total + np.where(least[v] < inf, energy_j[v, p] - least[v], 0.0)
        bounds[column] = total
    return bounds


Integers = NDArray[np.int64]


class UnitModes(NamedTuple):
    """Columns by their codes, and ways to run a unit by column and processors."""

    columns: Mapping[int, int]
    modes: Mapping[tuple[int, int], UnitMode]


@dataclass(frozen=True, slots=True)
class Step:
    """All ways to run one unit, or several as one.

    A column says where exits run: first one for each processor of the platform, which runs all
    alone, then one for each choice of the exits' processors among several.

    Parameters
    ----------
    modes
        By column and processors.
    columns
        Number of each column, by its code.
    time_s
        [place before, column, processors]: a bound, or what was found. Infinite if impossible.
    energy_j
        [column, processors]: a bound of the dynamic energy.
    out
        [place before, column]: number of the place behind.
    solved
        [place before, column, processors]: whether a schedule for it is known.
    """

    run: UnitRun
    modes: Mapping[tuple[int, int], UnitMode]
    columns: Mapping[int, int]
    time_s: Numbers
    energy_j: Numbers
    out: Integers
    solved: NDArray[np.bool_]


def modes_of(template: Template, count: int, choices: float) -> UnitModes:
    """Return the ways to run a unit on `count` processors, with so many choices for its exits."""
    every = template.modes(choices)
    codes = [code_of(mode.processors, mode.pins.values(), count) for mode in every]
    # processors that cannot run the unit have columns, too: there may even be no way at all
    columns = {code: i for i, code in enumerate(sorted({*range(count), *codes}))}
    coded = zip(codes, every, strict=True)
    modes = {(columns[code], mode.processors): mode for code, mode in coded}
    return UnitModes(columns, modes)


def code_of(processors: int, pins: Iterable[int], count: int) -> int:
    """Return a number for where exits run: that of the processor that runs all alone, if any."""
    if processors.bit_count() == 1:
        return processors.bit_length() - 1
    code = 0
    for p in pins:
        code = code * count + p
    return count + code


def places_behind(
    template: Template,
    places: Sequence[Locations],
    modes: Mapping[int, UnitMode],
    *,
    copies: bool = False,
) -> list[dict[int, Locations]]:
    """Return, for each place before a unit, the place behind it by column.

    Parameters
    ----------
    places
        Without copies, unless these count.
    modes
        One by column.
    copies
        Whether copies that a unit makes count.
    """
    if copies:
        return [{c: template.locations_out(at, mode) for c, mode in modes.items()} for at in places]
    makers = template.behind
    exits = {
        column: [None if maker is None else (mode.pins[maker],) for maker, _ in makers]
        for column, mode in modes.items()
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
