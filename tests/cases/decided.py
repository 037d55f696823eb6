"""Plans priced at random on all of their processors, and small pieces of work made by hand."""

from __future__ import annotations

import random
from math import inf
from string import ascii_lowercase

from parapipe.plan.program import program
from parapipe.simulate.priced_work import Costs, work_of
from parapipe.strategies.work import Order, Tensor, Work


class RandomTable:
    """Seconds of any operator anywhere, some impossible, and of any tensor between any two."""

    co_run = None
    graph_launch_s = ()

    def __init__(self, seed, count):
        self._rng, self._count = random.Random(seed), count
        self._known = {}

    def time_s(self, v, p):
        times_s = (0.0, 0.1, 0.4, 0.7, 1.5, inf)
        return self._known.setdefault((v, p), self._rng.choice(times_s))

    def transfer_matrix(self, tensor):
        every = range(self._count)
        if tensor not in self._known:
            self._known[tensor] = tuple(
                tuple(0.0 if p == q else self._rng.choice((0.0, 0.125, 0.3)) for q in every)
                for p in every
            )
        return self._known[tensor]


def random_costs(plan, seed):
    """What a plan's operators take on all its processors."""
    place = {each.name: p for p, each in enumerate(plan.processors)}
    row = {each.id: v for v, each in enumerate(plan.operators)}
    return Costs(RandomTable(seed, len(place)), place, row)


def random_work(plan, seed, *, unit="operator"):
    """The work of a plan with such costs."""
    return work_of(plan, program(plan, unit=unit), random_costs(plan, seed))


def work(time_s, edges, orders, *, moved_s=0.0, slots=2):
    """Work of one stage: seconds by task and processor, edges, and the plan's orders."""
    count = len(time_s[0])
    rows = tuple(tuple(0.0 if p == q else moved_s for q in range(count)) for p in range(count))
    makers = sorted({u for u, _ in edges})
    return Work(
        processors=tuple("pqrs"[:count]),
        tasks=tuple(ascii_lowercase[: len(time_s)]),
        time_s=tuple(map(tuple, time_s)),
        tensors=tuple(Tensor(u, rows) for u in makers),
        reads=tuple(tuple(makers.index(u) for u, w in edges if w == v) for v in range(len(time_s))),
        room=tuple((u, v, slots) for u, v in edges),
        orders=tuple(Order(tuple(order), (p,)) for p, order in enumerate(orders)),
        lag=(0,) * len(time_s),
        first=frozenset(v for v in range(len(time_s)) if v not in {w for _, w in edges}),
    )


def halves(layers, time_s):
    """Operators in a row, each in two halves that read both halves of the one before.

    The first half of each is the first processor's.
    """
    edges = [
        (2 * at + u, 2 * at + 2 + v) for at in range(layers - 1) for u in (0, 1) for v in (0, 1)
    ]
    tasks = range(2 * layers)
    return work(((time_s,) * 2,) * len(tasks), edges, [[*tasks[::2]], [*tasks[1::2]]])
