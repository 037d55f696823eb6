"""All mappings in stages of a tiny network, evaluated one by one: an oracle for searches."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product
from math import inf

from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import assemble, hand_overs_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate, settle
from parapipe.mappings.mapping import Placement
from tests.cases.co_runs import random_table, timed_costs, with_law
from tests.cases.hand_built import GraphBuilder, platform, processor


def tiny_case(seed, operators, names="abc"):
    """Return a network of a few operators, and costs on some processors with a random table.

    Operators take whole milliseconds, and hand-overs no time.
    """
    rng, builder = random.Random(seed), GraphBuilder(x=(1, 4, 8, 8))
    made = ["x"]
    for _ in range(operators - 1):
        made.append(builder.conv(rng.choice(made[-2:]), 4))
    last = builder.add("Add", list(dict.fromkeys(made[-2:])), (1, 4, 8, 8))
    unread = [n for n in made[1:] if n not in made[-2:] and not any(
        n in each.inputs for each in builder.operators)]  # fmt: skip
    graph = builder.graph(*unread, last)
    chip = platform(*(processor(name, cores=[p]) for p, name in enumerate(names)))
    costs = build_cost_table(graph, chip, profiles=())
    times = [[rng.randint(1, 9) * 1e-3 for _ in names] for _ in graph.operators]
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


def every_interleaved(graph, costs):
    """Yield all mappings made for a period, each for the least that its orders and lags allow."""
    count = len(graph.operators)
    assert not any(any(map(any, matrix)) for matrix in costs.transfers.values())
    edges = [(u, v) for v in range(count) for u in graph.predecessors(v)]
    for places in product(range(len(costs.processors)), repeat=count):
        time = [round(costs.time_s(v, p) * 1e3) * STEPS for v, p in enumerate(places)]
        orders = [
            permutations(v for v in range(count) if places[v] == p) for p in sorted({*places})
        ]
        for each in product(*orders):
            for lags in product(range(count), repeat=count):
                if min(lags) or any(lags[u] > lags[v] for u, v in edges):
                    continue
                if timed := _least_period(time, edges, each, lags):
                    period, start = timed
                    yield _repeating(graph, costs, [*zip(places, lags, start, strict=True)], period)


STEPS = 12  # of a millisecond: least periods are sums of them, shared by up to four frames


def _least_period(time, edges, orders, lags):
    """Return the least period, in steps, and starts within it; None if there is none."""
    low, high = 0, sum(time) + 1  # the one is too short, the other is enough for all that can be
    found = _starts(time, edges, orders, lags, high)
    while found and high - low > 1:
        middle = (low + high) // 2
        if some := _starts(time, edges, orders, lags, middle):
            high, found = middle, some
        else:
            low = middle
    return (high, found) if found else None


def _starts(time, edges, orders, lags, period):
    """Return the earliest starts within a period in which all fits; None if nothing does."""
    arcs = [(u, v, time[u] + (lags[u] - lags[v]) * period) for u, v in edges]
    for order in orders:
        arcs += [(u, v, time[u]) for u, v in pairwise(order)]
        arcs.append((order[-1], order[0], time[order[-1]] - period))
    start = [0] * len(time)
    for _ in range(len(time) + 1):
        changed = False
        for u, v, gap in arcs:
            if start[u] + gap > start[v]:
                start[v], changed = start[u] + gap, True
        if not changed:
            return start if max(start) < period else None
    return None


def _repeating(graph, costs, placed, period):
    second = 1e3 * STEPS
    placements = {
        v: Placement(v, p, at / second, at / second + costs.time_s(v, p), lag)
        for v, (p, lag, at) in enumerate(placed)
    }
    return assemble(placements, hand_overs_of(placements, graph, costs, {}), period / second)


def exact_front(graph, costs, *, interleaved=False):
    """Return the latencies and periods of all mappings that no other one beats, by brute force.

    Those that are no better even without the law, which only slows down, are not evaluated with it.
    """
    points, free = set(), replace(costs, co_run=None)
    every = every_interleaved if interleaved else every_mapping
    for mapping in every(graph, costs):
        alone = evaluate(mapping, graph, free)
        if not any(a <= alone.latency_s and b <= alone.period_s for a, b in points):
            _, found = settle(mapping, graph, costs)
            points.add((found.latency_s, found.period_s))
    points = {(round(a, 11), round(b, 11)) for a, b in points}
    return sorted(
        one
        for one in points
        if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in points)
    )
