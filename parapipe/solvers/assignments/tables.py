"""A mapping problem as arrays in exact seconds, and assignments extended operator by operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from parapipe.solvers.paths import readers_of
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Energies

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
NEVER = -inf  # of a delay: no edge


@dataclass(frozen=True)
class Tables:
    """A problem whose transfers are pure delays.

    Parameters
    ----------
    time_s, energy_j, release_s
        Of operator v on processor p; infinite times where v cannot run. `release_s` is when the
        last tensor from outside has arrived.
    edges
        `edges[v]`: the operators that v reads, each with `delay_s[p][q]` from its end on p to the
        start of v on q. Edges that no schedule waits for are left out.
    """

    time_s: Floats
    energy_j: Floats
    release_s: Floats
    edges: tuple[tuple[tuple[int, Floats], ...], ...]

    @property
    def operators(self) -> int:
        """Number of operators."""
        return len(self.edges)

    @cached_property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """Processors that can run each operator."""
        return tuple(tuple(np.flatnonzero(row < inf).tolist()) for row in self.time_s)

    @cached_property
    def tail_s(self) -> Floats:
        """`tail_s[v][p]`: seconds at least from the end of v on p to the end of all behind it."""
        tail_s = np.zeros_like(self.time_s)
        for v in reversed(range(self.operators)):
            behind_s = self.time_s[v] + tail_s[v]
            for u, delay_s in self.edges[v]:
                np.maximum(tail_s[u], (delay_s + behind_s).min(1), out=tail_s[u])
        return tail_s

    @cached_property
    def passes(self) -> tuple[bool, ...]:
        """Whether all up to operator v run one after the other, and all behind waits for v alone.

        What is behind then depends on nothing before v but its processor and its end.
        """
        count = self.operators
        in_a_row = [True]
        for v in range(1, count):
            in_a_row.append(in_a_row[-1] and any(u == v - 1 for u, _ in self.edges[v]))
        alone = []
        for v in range(count):
            waiting = {v}
            for w in range(v + 1, count):
                if (
                    self.edges[w]
                    and all(u >= v for u, _ in self.edges[w])
                    and waiting.intersection(u for u, _ in self.edges[w])
                ):
                    waiting.add(w)
            alone.append(in_a_row[v] and len(waiting) == count - v)
        return tuple(alone)


def tables(problem: MappingProblem, energy_j: Energies | None) -> Tables:
    """Return a problem as arrays; without energies they are 0."""
    time_s = np.array(problem.time_s)
    release_s = np.zeros_like(time_s)
    for flow in problem.flows:
        if flow.location is not None:
            for v in flow.consumers:
                np.maximum(release_s[v], flow.transfer_s[flow.location], out=release_s[v])
    edges: list[list[tuple[int, Floats]]] = [[] for _ in problem.time_s]
    for u, readers in enumerate(readers_of(problem)):
        for v, delay_s in readers.items():
            edges[v].append((u, np.array(delay_s)))
    joules = np.zeros_like(time_s) if energy_j is None else np.array(energy_j)
    return Tables(time_s, joules, release_s, tuple(_needed_edges(time_s, edges)))


def _needed_edges(
    time_s: Floats, edges: list[list[tuple[int, Floats]]]
) -> Iterator[tuple[tuple[int, Floats], ...]]:
    """Leave out edges that detours always outlast, as of tensors that skip far."""
    able = time_s < inf
    for v, inputs in enumerate(edges):
        needed = []
        for u, delay_s in inputs:
            if u < v - 1 and len(inputs) > 1:
                least_s = _detour_s(time_s, edges, u, v)
                if (
                    least_s is not None
                    and ((delay_s <= least_s) | ~able[u][:, None] | ~able[v]).all()
                ):
                    continue
            needed.append((u, delay_s))
        yield tuple(needed)


def _detour_s(
    time_s: Floats, edges: list[list[tuple[int, Floats]]], u: int, v: int
) -> Floats | None:
    """Return `least_s[p][q]`, seconds from the end of u on p to the start of v on q by detours.

    None if there is no detour.
    """
    start_s: dict[int, Floats] = {}
    for w in range(u + 1, v + 1):
        detours_s = []
        for x, delay_s in edges[w]:
            if x == u and w < v:
                detours_s.append(delay_s)
            elif x in start_s:
                end_s = start_s[x] + time_s[x]
                detours_s.append((end_s[:, :, None] + delay_s).min(1))
        if detours_s:
            start_s[w] = np.maximum.reduce(detours_s)
    return start_s.get(v)


ROUNDING = 1e-12  # share by which sums of the same figures in different orders may differ


class Best:
    """Schedules by ascending time and descending energy, and what may still be better.

    Parameters
    ----------
    least_j
        The least energy that any schedule can take.
    gap
        A schedule does not matter if a known one takes at most this share more time, and energy;
        but for the shortest, and those of least energy.
    """

    def __init__(self, least_j: float, gap: float, operators: int) -> None:
        self.least_j, self.gap = least_j, gap
        self.time_s: Floats = np.empty(0)
        self.energy_j: Floats = np.empty(0)
        self.processor: Numbers = np.empty((0, operators), np.int64)
        self.start_s: Floats = np.empty((0, operators))
        self._front_j: Floats = np.full(1, inf)  # the energies behind that of no schedule

    def offer(self, time_s: Floats, energy_j: Floats, processor: Numbers, start_s: Floats) -> None:
        """Take what is not beaten of some schedules."""
        times_s = np.concatenate((self.time_s, time_s))
        energies_j = np.concatenate((self.energy_j, energy_j))
        order = np.lexsort((energies_j, times_s))
        least_j = np.minimum.accumulate(energies_j[order])
        front = order[np.append(True, energies_j[order][1:] < least_j[:-1] * (1 - ROUNDING))]
        self.time_s, self.energy_j = times_s[front], energies_j[front]
        self._front_j = np.append(inf, self.energy_j)
        self.processor = np.concatenate((self.processor, processor))[front]
        self.start_s = np.concatenate((self.start_s, start_s))[front]

    def matter(self, time_s: Floats, energy_j: Floats) -> NDArray[np.bool_]:
        """Tell which lower bounds on time and energy leave room for a schedule that matters."""
        share: Floats | float = 1 + ROUNDING
        if self.gap and len(self.time_s):
            ends = (time_s <= self.time_s[0] * (1 + ROUNDING)) | (
                energy_j <= self.least_j * (1 + ROUNDING)
            )
            share = np.where(ends, 1 + ROUNDING, 1 + (self.gap + ROUNDING))
        front_j = self._front_j[np.searchsorted(self.time_s, time_s * share, "right")]
        matters: NDArray[np.bool_] = front_j > energy_j * share
        return matters

    def least_before(self) -> Floats:
        """Return the energy that nothing falls below that is as short as each of the schedules."""
        at = np.searchsorted(self.time_s, self.time_s * (1 + self.gap), "right") - 1
        least_j: Floats = self.energy_j[at] / (1 + self.gap)
        least_j[[0, -1]] = self.energy_j[[0, -1]]  # the ends are exact
        return least_j


def sparse(time_s: Floats, energy_j: Floats, share: float) -> list[int]:
    """Return the numbers of pairs that match all others within a share; both ends stay.

    Times ascend and energies descend.
    """
    numbers, last = [0], len(time_s) - 1
    for at in range(1, last):
        if at > numbers[-1] and energy_j[numbers[-1]] > energy_j[at] * (1 + share):
            latest_s = time_s[at] * (1 + share)
            numbers.append(min(int(np.searchsorted(time_s, latest_s, "right")), last) - 1)
    return [*numbers, last] if last else numbers


MOST = 300_000  # assignments at once
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of energy, of those that are looked at first


@dataclass(frozen=True, slots=True)
class Rows:
    """Assignments of the first operators, and lower bounds of what they lead to.

    The last axis of every array counts the assignments.

    Parameters
    ----------
    processor, end_s
        By operator; ends as if processors could run several operators at once.
    load_s
        By processor.
    time_s, energy_j
        Of all that they can be extended to, no schedule takes less.
    """

    processor: Numbers
    end_s: Floats
    load_s: Floats
    time_s: Floats
    energy_j: Floats

    def pick(self, chosen: Numbers) -> Rows:
        """Return some of the rows."""
        return Rows(*(getattr(self, each.name).take(chosen, -1) for each in fields(self)))


def assignments(arrays: Tables, best: Best, most: int | None = None) -> Rows | None:
    """Return every assignment that can matter; None if there are too many to look at.

    Parameters
    ----------
    most
        Keep only about so many promising ones at every step.
    """
    rows = Rows(
        np.empty((0, 1), np.int64),
        np.empty((0, 1)),
        np.zeros((arrays.time_s.shape[1], 1)),
        np.zeros(1),
        np.full(1, best.least_j),
    )
    for v in range(arrays.operators):
        if len(rows.time_s) * len(arrays.choices[v]) > MOST:
            return None
        rows = _extended(arrays, rows, v, best)
        if not len(rows.time_s):
            break
        if arrays.passes[v]:
            rows = rows.pick(_undominated(rows))
        if most is not None and len(rows.time_s) > most:
            rows = rows.pick(_promising(rows, most))
    return rows


def _extended(arrays: Tables, rows: Rows, v: int, best: Best) -> Rows:
    """Place one more operator, wherever it can run and matters."""
    choices = np.array(arrays.choices[v])
    lasts_s, joules = arrays.time_s[v, choices, None], arrays.energy_j[v, choices, None]
    start_s = arrays.release_s[v, choices, None]
    for u, delay_s in arrays.edges[v]:
        moved_s = delay_s.T[choices].take(rows.processor[u], -1)
        start_s = np.maximum(start_s, rows.end_s[u] + moved_s)
    load_s = rows.load_s[choices] + lasts_s
    end_s = np.broadcast_to(start_s + lasts_s, load_s.shape)
    time_s = np.maximum(rows.time_s, end_s + arrays.tail_s[v, choices, None])
    np.maximum(time_s, load_s, out=time_s)
    energy_j = rows.energy_j + (joules - joules.min())
    matters = np.flatnonzero(best.matter(time_s.ravel(), energy_j.ravel()))
    chosen, parent = np.divmod(matters, len(rows.time_s))
    processor, loads_s = choices[chosen], rows.load_s.take(parent, -1)
    loads_s[processor, np.arange(len(matters))] = load_s[chosen, parent]
    return Rows(
        np.concatenate((rows.processor.take(parent, -1), processor[None])),
        np.concatenate((rows.end_s.take(parent, -1), end_s[chosen, parent][None])),
        loads_s,
        time_s[chosen, parent],
        energy_j[chosen, parent],
    )


def _undominated(rows: Rows) -> Numbers:
    """Return, of operators one after the other, what ends first on each processor, or saves."""
    order = np.lexsort((rows.energy_j, rows.end_s[-1], rows.processor[-1]))
    last = rows.processor[-1, order]
    fronts = []
    for own in np.split(order, np.flatnonzero(np.diff(last)) + 1):
        energy_j = rows.energy_j[own]
        least_j = np.minimum.accumulate(energy_j)
        fronts.append(own[np.append(True, energy_j[1:] < least_j[:-1])])
    return np.concatenate(fronts)


def _promising(rows: Rows, most: int) -> Numbers:
    """Return rows of little time, of little energy, and of little of both together."""
    time, energy = (
        (values - values.min()) / max(float(np.ptp(values)), 1e-300)
        for values in (rows.time_s, rows.energy_j)
    )
    some = max(1, most // len(WEIGHTS))
    return np.unique(
        np.concatenate([np.argpartition(time + weight * energy, some)[:some] for weight in WEIGHTS])
    )
