"""Cost tables of plain numbers, for tests of the search."""

from __future__ import annotations

import random
from itertools import product
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.platform.support import Refusal


class Costs(CostTable):
    """A cost table of plain numbers, for graphs of which only the times matter."""

    __slots__ = ("energies", "times")

    def time_s(self, v, p):
        return self.times[v][p]

    def energy_j(self, v, p):
        return self.energies[v][p]

    def unsupported(self, v, p):
        return None if self.times[v][p] < inf else Refusal(self.processors[p], "it cannot")


def random_costs(graph, processors, seed):
    rng = random.Random(seed)
    table = Costs(
        processors=tuple(f"p{p}" for p in range(processors)),
        entries=(),
        transfers={
            name: tuple(
                tuple(0.0 if p == q else rng.randint(0, 3) / 1e3 for q in range(processors))
                for p in range(processors)
            )
            for name in graph.tensors
        },
        input_times_s=(0.01,) * processors,
        output_times_s=(0.001,) * processors,
        static_power_w=tuple(rng.choice([0.0, 0.5, 1.0]) for _ in range(processors)),
        idle_power_w=2.0,
    )
    count = len(graph.operators)
    times = [[rng.randint(1, 9) / 1e3 for _ in range(processors)] for _ in range(count)]
    energies = [[rng.randint(1, 9) / 1e3 for _ in range(processors)] for _ in range(count)]
    object.__setattr__(table, "times", times)
    object.__setattr__(table, "energies", energies)
    return table


def turns_taken(used, kinds, free=None):
    """Yield how many processors of a kind may take turns on each stage, given what each uses."""
    if free is None:
        taken = set().union(*used)
        free = [kind for p, kind in enumerate(kinds) if p not in taken]
    if not used:
        yield ()
        return
    mine = {kinds[p] for p in used[0]} if len(used[0]) == 1 else set()
    most = sum(kind in mine for kind in free)
    for more in range(most + 1):
        left = list(free)
        for kind in list(mine) * more:
            left.remove(kind)
        yield from ((1 + more, *rest) for rest in turns_taken(used[1:], kinds, left))


def every_division(items):
    """Yield every way to divide items, in their order, into stages."""
    for cuts in product((False, True), repeat=len(items) - 1):
        stages = [[items[0]]]
        for cut, item in zip(cuts, items[1:], strict=True):
            if cut:
                stages.append([])
            stages[-1].append(item)
        yield stages


def identical_costs(graph, kinds, seed):
    """Costs of processors of which those of one kind are identical; `kinds` begins with 0."""
    rng = random.Random(seed)
    count = max(kinds) + 1
    table = random_costs(graph, count, seed)
    names = list(graph.tensors)
    moves = {
        name: [[rng.randint(0, 3) / 1e3 for _ in range(count)] for _ in range(count)]
        for name in names
    }
    everyone = range(len(kinds))
    made = Costs(
        processors=tuple(f"p{p}" for p in everyone),
        entries=(),
        transfers={
            name: tuple(
                tuple(0.0 if p == q else moves[name][kinds[p]][kinds[q]] for q in everyone)
                for p in everyone
            )
            for name in names
        },
        input_times_s=(0.01,) * len(kinds),
        output_times_s=(0.001,) * len(kinds),
        static_power_w=tuple(table.static_power_w[kind] for kind in kinds),
        idle_power_w=2.0,
    )
    for field in ("times", "energies"):
        rows = [[row[kind] for kind in kinds] for row in getattr(table, field)]
        object.__setattr__(made, field, rows)
    return made
