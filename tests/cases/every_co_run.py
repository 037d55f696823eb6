"""All mappings in stages of a tiny network, evaluated one by one: an oracle for searches."""

from __future__ import annotations

import random
from itertools import combinations, product
from math import inf

from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate
from tests.cases.co_runs import random_table, timed_costs, with_law
from tests.cases.hand_built import GraphBuilder, platform, processor


def tiny_case(seed, operators):
    """Return a network of a few operators, and costs on three processors with a random table."""
    rng, builder = random.Random(seed), GraphBuilder(x=(1, 4, 8, 8))
    names = ["x"]
    for _ in range(operators - 1):
        names.append(builder.conv(rng.choice(names[-2:]), 4))
    last = builder.add("Add", list(dict.fromkeys(names[-2:])), (1, 4, 8, 8))
    unread = [n for n in names[1:] if n not in names[-2:] and not any(
        n in each.inputs for each in builder.operators)]  # fmt: skip
    graph = builder.graph(*unread, last)
    chip = platform(*(processor(name, cores=[p]) for p, name in enumerate("abc")))
    costs = build_cost_table(graph, chip, profiles=())
    times = [[rng.randint(1, 9) * 1e-3 for _ in "abc"] for _ in graph.operators]
    moved = [rng.randint(0, 9) * 1_000_000 for _ in graph.operators]
    costs = timed_costs(costs, times, moved)
    return graph, with_law(costs, random_table(rng, costs.processors, most=2.0))


def every_order(graph):
    """Yield all orders in which operators may run one after the other."""

    def extend(order, left):
        if not left:
            yield tuple(order)
        for v in sorted(left):
            if all(u in order for u in graph.predecessors(v)):
                yield from extend([*order, v], left - {v})

    yield from extend([], set(range(len(graph.operators))))


def every_mapping(graph, costs):
    """Yield all mappings in stages of contiguous parts of an order; equal ones once."""
    count, seen = len(graph.operators), set()
    for order in every_order(graph):
        for cuts in (c for k in range(3) for c in combinations(range(1, count), k)):
            ends = zip((0, *cuts), (*cuts, count), strict=True)
            stages = tuple(order[a:b] for a, b in ends)
            for places in product(range(len(costs.processors)), repeat=count):
                if any(costs.time_s(v, p) == inf for v, p in enumerate(places)):
                    continue
                used = [{places[v] for v in stage} for stage in stages]
                if sum(map(len, used)) != len(set().union(*used)):
                    continue
                key = tuple(
                    (p, s, tuple(v for v in stage if places[v] == p))
                    for s, stage in enumerate(stages)
                    for p in sorted(used[s])
                )
                if key not in seen:
                    seen.add(key)
                    yield mapping_of(graph, None, costs, Assignment(places, stages, ordered=True))


def exact_front(graph, costs):
    """Return the latencies and periods of all mappings that no other one beats, by brute force."""
    points = {
        (round(found.latency_s, 11), round(found.period_s, 11))
        for mapping in every_mapping(graph, costs)
        for found in [evaluate(mapping, graph, costs)]
    }
    return sorted(
        one
        for one in points
        if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in points)
    )
