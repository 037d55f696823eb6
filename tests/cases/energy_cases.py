"""Small problems with energies, and every pair of time and energy that their schedules take."""

from __future__ import annotations

import random
from itertools import permutations, product
from math import inf

from parapipe.solvers.problem import Flow, MappingProblem

MICRO = 1e-6
NANO = 1e-9


def random_case(seed, most_operators=5, most_processors=3):
    """Times are whole microseconds, energies whole nanojoules."""
    rng = random.Random(seed)
    operators, processors = rng.randint(1, most_operators), rng.randint(1, most_processors)

    def transfer():
        scale = rng.choice([0, 3, 9])
        return tuple(
            tuple(0.0 if p == q else rng.randint(0, scale) * MICRO for q in range(processors))
            for p in range(processors)
        )

    rows, energy_j = [], []
    for _ in range(operators):
        row = [rng.choice([*range(1, 20), inf]) for _ in range(processors)]
        row[rng.randrange(processors)] = rng.randint(1, 20)
        rows.append(tuple(us * MICRO for us in row))
        energy_j.append(tuple(rng.randint(1, 30) * NANO for _ in range(processors)))
    flows = []
    for u in range(operators - 1):
        readers = [v for v in range(u + 1, operators) if rng.random() < 0.4]
        if readers:
            flows.append(Flow(u, tuple(readers), transfer()))
    if rng.random() < 0.5:
        flows.append(Flow(None, (0,), transfer(), location=rng.randrange(processors)))
    problem = MappingProblem(tuple(rows), tuple(flows), tuple(range(operators)))
    return problem, tuple(energy_j)


def every_pair(problem, energy_j):
    """Times in microseconds and energies in nanojoules, over all placements and all orders.

    It shares no code with mappers and replay.
    """
    operators = range(problem.operators)
    edges = [(f.producer, v) for f in problem.flows for v in f.consumers if f.producer is not None]
    orders = [
        order
        for order in permutations(operators)
        if all(order.index(u) < order.index(v) for u, v in edges)
    ]
    choices = [[p for p, t in enumerate(row) if t < inf] for row in problem.time_s]
    pairs = set()
    for placed in product(*choices):
        energy_nj = sum(round(energy_j[v][placed[v]] / NANO) for v in operators)
        pairs |= {(_makespan_us(problem, placed, order), energy_nj) for order in orders}
    return pairs


def _makespan_us(problem, placed, order):
    free_s, end_s = [0.0] * problem.processors, {}
    for v in order:
        p, arrived_s = placed[v], 0.0
        for flow in problem.flows:
            if v in flow.consumers:
                source = flow.location if flow.producer is None else placed[flow.producer]
                made_s = 0.0 if flow.producer is None else end_s[flow.producer]
                arrived_s = max(arrived_s, made_s + flow.transfer_s[source][p])
        end_s[v] = free_s[p] = max(free_s[p], arrived_s) + problem.time_s[v][p]
    return round(max(end_s.values()) / MICRO)


def pareto(pairs):
    """Pairs that no other is at least as good as."""
    kept = []
    for time, energy in sorted(pairs):
        if not kept or energy < kept[-1][1]:
            kept.append((time, energy))
    return kept


def pairs_of(found):
    """Times in microseconds and energies in nanojoules of a set."""
    return [
        (round(point.makespan_s / MICRO), round(point.energy_j / NANO)) for point in found.schedules
    ]


def wide(seed, branches=9, processors=3):
    """A problem that takes a while to close: a source, many alike branches, a sink."""
    rng = random.Random(seed)
    count = 3 * branches + 2
    moved = tuple(
        tuple(0.0 if p == q else rng.randint(50, 500) * MICRO for q in range(processors))
        for p in range(processors)
    )
    inner = [(3 * b + 1, 3 * b + 2, 3 * b + 3) for b in range(branches)]
    rows, energy_j = [], []
    for _ in range(count):
        times = [rng.randint(500, 5000) for _ in range(processors)]
        rows.append(tuple(us * MICRO for us in times))
        energy_j.append(tuple(us * rng.uniform(0.3, 3) * 1e-6 for us in times))
    flows = [Flow(0, tuple(branch[0] for branch in inner), moved)]
    for first, second, third in inner:
        flows += [Flow(first, (second,), moved), Flow(second, (third,), moved)]
        flows.append(Flow(third, (count - 1,), moved))
    problem = MappingProblem(tuple(rows), tuple(flows), (0, tuple(inner), count - 1))
    return problem, tuple(energy_j)
