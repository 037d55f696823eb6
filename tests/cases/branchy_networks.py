"""Small networks with branches, and every configuration of theirs: all schedules, all cuts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations, product

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph, Tensor, Work
from parapipe.pareto import nondominated
from tests.cases.pipeline_cases import every_division


class PlainCosts(CostTable):
    """A cost table of whole milliseconds and millijoules."""

    __slots__ = ("energies", "times")

    def time_s(self, v, p):
        return self.times[v][p] / 1e3

    def energy_j(self, v, p):
        return self.energies[v][p] / 1e3


def network(blocks: str) -> OperatorGraph:
    """One letter a block: `o` an operator; `d` one that two others read, which a fourth joins."""
    made, last = [], "x"

    def add(*reads):
        name = f"t{len(made)}"
        made.append(Operator(name, name, "", "Conv", {}, reads, (name,), Work(1, 4, 4), ()))
        return name

    for block in blocks:
        last = add(last)
        if block == "d":
            last = add(add(last), add(last))
    tensors = {name: Tensor(name, (1,), "float32") for name in ["x", *(op.id for op in made)]}
    return OperatorGraph(
        ModelSource(blocks, ""), "fused", tuple(made), tensors, {}, ("x",), (last,)
    )


def random_costs(graph: OperatorGraph, processors: int, seed: int) -> PlainCosts:
    rng = random.Random(seed)
    moved = {
        name: tuple(
            tuple(0 if p == q else rng.randint(0, 3) for q in range(processors))
            for p in range(processors)
        )
        for name in graph.tensors
    }
    table = PlainCosts(
        processors=tuple(f"p{p}" for p in range(processors)),
        entries=(),
        transfers={n: tuple(tuple(t / 1e3 for t in r) for r in m) for n, m in moved.items()},
        input_times_s=(0.01,) * processors,
        output_times_s=(0.001,) * processors,
        static_power_w=tuple(rng.choice([0.0, 0.0, 0.5, 1.0]) for _ in range(processors)),
        idle_power_w=2.0,
    )
    count = len(graph.operators)
    speed = [rng.uniform(1, 3) for _ in range(processors)]  # what is fast takes more energy
    times = [[1 + round(rng.randint(1, 9) / s) for s in speed] for _ in range(count)]
    energies = [[round(rng.randint(1, 9) * s) for s in speed] for _ in range(count)]
    object.__setattr__(table, "times", times)
    object.__setattr__(table, "energies", energies)
    return table


def every_configuration(graph, partition, costs) -> list[tuple[float, float, float]]:
    """Latency, period (ms) and energy (mJ) of all configurations worth a look.

    Every placement and order of each unit's operators, in each way its inputs can lie; of those
    that use the same processors and leave tensors in the same places only the undominated, since
    nothing else of them is seen outside. Then every chain of units and every cut.
    """
    count = len(partition.units)

    def chains(unit, locations) -> Iterator[tuple]:
        if unit == count:
            yield ()
            return
        for way in _ways(graph, partition, costs, unit, locations):
            for rest in chains(unit + 1, way[1]):
                yield (way, *rest)

    found = set()
    for chain in chains(0, ()):
        for stages in every_division(chain):
            used = [frozenset().union(*(way[0] for way in stage)) for stage in stages]
            if sum(map(len, used)) == len(frozenset().union(*used)):
                times = [sum(way[2] for way in stage) for stage in stages]
                static_w = sum(costs.static_power_w[p] for p in frozenset().union(*used))
                energy = sum(way[3] for way in chain) + static_w * max(times)
                found.add((sum(times), max(times), energy))
    return nondominated(found, lambda values: values)


def _ways(graph, partition, costs, unit, locations):
    before, behind = partition.boundaries[unit : unit + 2]
    locations_of = dict(zip(before, locations, strict=True))
    operators = partition.units[unit].operators
    identical: dict = {}
    for placed in product(range(len(costs.processors)), repeat=len(operators)):
        where = dict(zip(operators, placed, strict=True))
        out = tuple(locations_of.get(n, where.get(graph.producer.get(n))) for n in behind)
        energy = sum(costs.energies[v][p] for v, p in where.items())
        times = [
            _time(graph, costs, order, where, locations_of) for order in permutations(operators)
        ]
        time = min(t for t in times if t is not None)
        identical.setdefault((frozenset(placed), out), set()).add((time, energy))
    return [
        (used, out, *pair)
        for (used, out), pairs in identical.items()
        for pair in nondominated(pairs, lambda pair: pair)
    ]


def _time(graph, costs, order, where, locations_of):
    """Milliseconds of a unit if its operators run in an order; None if they cannot."""
    free, end = [0] * len(costs.processors), {}
    for v in order:
        arrived = 0
        for name in graph.operators[v].inputs:
            producer = graph.producer.get(name)
            if producer in where and producer not in end:
                return None
            if producer is not None:
                source = where[producer] if producer in where else locations_of[name]
                moved = round(costs.transfers[name][source][where[v]] * 1e3)
                arrived = max(arrived, end.get(producer, 0) + moved)
        end[v] = free[where[v]] = max(free[where[v]], arrived) + costs.times[v][where[v]]
    return max(end.values())
