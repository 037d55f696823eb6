"""A mapping problem as arrays, in exact seconds, and the bounds that longest paths give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from parapipe.mapping.paths import readers_of
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Energies

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
        found = []
        for v in range(count):
            waiting = {v}
            for w in range(v + 1, count):
                if (
                    self.edges[w]
                    and all(u >= v for u, _ in self.edges[w])
                    and waiting.intersection(u for u, _ in self.edges[w])
                ):
                    waiting.add(w)
            found.append(in_a_row[v] and len(waiting) == count - v)
        return tuple(found)


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
    return Tables(time_s, joules, release_s, tuple(_needed(time_s, edges)))


def _needed(
    time_s: Floats, edges: list[list[tuple[int, Floats]]]
) -> Iterator[tuple[tuple[int, Floats], ...]]:
    """Leave out edges that longer ways round always outlast, as of tensors that skip far."""
    able = time_s < inf
    for v, inputs in enumerate(edges):
        kept = []
        for u, delay_s in inputs:
            if u < v - 1 and len(inputs) > 1:
                least_s = _way_round_s(time_s, edges, u, v)
                if (
                    least_s is not None
                    and ((delay_s <= least_s) | ~able[u][:, None] | ~able[v]).all()
                ):
                    continue
            kept.append((u, delay_s))
        yield tuple(kept)


def _way_round_s(
    time_s: Floats, edges: list[list[tuple[int, Floats]]], u: int, v: int
) -> Floats | None:
    """Return `least_s[p][q]`, seconds from the end of u on p to the start of v on q on other ways.

    None if there is no other way.
    """
    start_s: dict[int, Floats] = {}
    for w in range(u + 1, v + 1):
        ways = []
        for x, delay_s in edges[w]:
            if x == u and w < v:
                ways.append(delay_s)
            elif x in start_s:
                end_s = start_s[x] + time_s[x]
                ways.append((end_s[:, :, None] + delay_s).min(1))
        if ways:
            start_s[w] = np.maximum.reduce(ways)
    return start_s.get(v)
