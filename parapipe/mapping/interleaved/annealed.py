"""Assignments whose greatest load is small, where hand-overs are work: simulated annealing.

A relaxation says little there, since fractions of operators need no hand-overs. Operators that
follow each other move together, so that hand-overs move with them (S. Kirkpatrick et al.,
Optimization by simulated annealing, 1983).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from math import exp

from parapipe.mapping.interleaved.cyclic import NEVER, Cyclic

CHANGES, MOST_CHANGES = 1_500, 200_000  # for each operator, and in all
HOT, COLD = 0.03, 0.0003  # shares of the load by which a change may be worse, first and last
NORM = 12  # of the loads: the greatest counts most
LONGEST_RUN = 40  # operators that move together
BESIDE = 0.7  # share of changes that go to the processor of the operator before or behind


def annealed(net: Cyclic, place: Sequence[int], *, enough: int = 0, seed: int = 0) -> list[int]:
    """Return an assignment whose greatest load is at most that of a given one.

    Parameters
    ----------
    enough
        Greatest load, in nanoseconds, from which on no less is searched.
    seed
        Of all random choices.
    """
    draw, state = random.Random(seed), Loads(net, place)
    best, least, norm = [*place], max(state.loads), state.norm()
    changes, heat = min(CHANGES * net.operators, MOST_CHANGES), HOT * norm
    for _ in range(changes):
        if least <= enough:
            break
        heat *= (COLD / HOT) ** (1 / changes)
        before = state.apply(random_change(net, state.place, draw))
        now = state.norm()
        if now > norm and draw.random() >= exp((norm - now) / heat):
            state.restore(*before)
            continue
        norm = now
        if max(state.loads) < least:
            best, least = [*state.place], max(state.loads)
    return best


class Loads:
    """An assignment, and for how long one frame keeps each resource busy."""

    def __init__(self, net: Cyclic, place: Sequence[int]) -> None:
        self.net, self.place, self.loads = net, [*place], net.loads(place)
        self.flows: list[list[int]] = [[*reads] for reads in net.reads]
        for flow, maker in enumerate(net.maker):
            if maker >= 0:
                self.flows[maker].append(flow)

    def norm(self) -> float:
        """Return the greatest load, and a little of all others."""
        greatest = max(self.loads)
        return greatest * float(sum((load / greatest) ** NORM for load in self.loads) ** (1 / NORM))

    def apply(self, change: dict[int, int]) -> tuple[list[int], dict[int, int]]:
        """Move operators; return what the loads and these places were."""
        before = [*self.loads], {v: self.place[v] for v in change}
        flows = {flow for v in change for flow in self.flows[v]}
        for resource, time in self._moves(flows):
            self.loads[resource] -= time
        for v, p in change.items():
            self.loads[self.place[v]] -= self.net.time[v][self.place[v]]
            self.loads[p] += self.net.time[v][p]
            self.place[v] = p
        for resource, time in self._moves(flows):
            self.loads[resource] += time
        return before

    def restore(self, loads: list[int], places: dict[int, int]) -> None:
        """Undo a change."""
        self.loads = loads
        for v, p in places.items():
            self.place[v] = p

    def _moves(self, flows: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the resource and the time of each transfer that keeps something busy."""
        net, place = self.net, self.place
        for flow in flows:
            p = place[net.maker[flow]]
            for q in {place[v] for v in net.problem.flows[flow].consumers}:
                if q != p and (resource := net.resource[p][q]) is not None:
                    yield resource, net.delay[flow][p][q]


def random_change(net: Cyclic, place: Sequence[int], draw: random.Random) -> dict[int, int]:
    """Return operators in a row, those that can, with one processor for all of them."""
    begin = draw.randrange(net.operators)
    end = min(net.operators, begin + int(LONGEST_RUN ** draw.random()))
    target = draw.randrange(net.processors)
    if draw.random() < BESIDE:
        target = place[draw.choice((max(0, begin - 1), min(end, net.operators - 1)))]
    return {
        v: target for v in range(begin, end) if place[v] != target and net.time[v][target] < NEVER
    }
