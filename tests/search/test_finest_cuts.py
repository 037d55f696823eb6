"""Stages of small networks: cut at every ideal, whatever the order of nodes in the file."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

from parapipe.graph.partition import partition
from parapipe.pareto import nondominated
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.stages.finest_cuts import finest_partition
from tests.cases.branchy_networks import random_costs
from tests.cases.shuffled import operators_of, residual, scattered, shuffled

OPTIONS = MapOptions(interleave="none", resolution=0.0, energy_resolution=0.0, jobs=1)


def front_of(graph, costs, parts):
    """Latency, period and energy of the front."""
    return [
        (each.evaluated.latency_s, each.evaluated.period_s, each.evaluated.energy_j)
        for each in explore(graph, parts, costs, OPTIONS).found
        if each.pareto
    ]


def at_least_as_good(found, wanted):
    """Whether something is found that is no worse in any figure, up to rounding."""
    return any(all(a <= b + 1e-8 for a, b in zip(f, wanted, strict=True)) for f in found)


def costs_of(graph, times, moved=0.0):
    """Return costs with times in milliseconds, by operator and processor."""
    costs = random_costs(graph, len(times[0]), 0)
    matrix = tuple(
        tuple(moved * (p != q) for q in range(len(times[0]))) for p in range(len(times[0]))
    )
    object.__setattr__(costs, "times", times)
    object.__setattr__(costs, "transfers", dict.fromkeys(graph.tensors, matrix))
    return costs


def test_a_skip_connection_is_cut_inside_where_nothing_is_parallel():
    # a, b and c in a chain, and c reads a, too: c alone runs well on the second processor
    graph = operators_of({"a": ["x"], "b": ["a"], "c": ["b", "a"]})
    costs = costs_of(graph, [[1, 9], [1, 9], [9, 2]])
    parts = finest_partition(graph, [costs])
    assert min(period for _, period, _ in front_of(graph, costs, parts)) == pytest.approx(2e-3)
    between = front_of(graph, costs, partition(graph))
    assert min(period for _, period, _ in between) > 2e-3


@pytest.mark.parametrize("order", ["bcd", "cbd", "dbc"])
def test_heads_go_to_any_stage_whatever_their_order(order):
    # a and c suit the first processor, b and d the second
    graph = operators_of({"a": ["x"], **{name: ["a"] for name in order}})
    times = {"a": [1, 9], "b": [9, 2], "c": [2, 9], "d": [9, 1]}
    costs = costs_of(graph, [times[each.id] for each in graph.operators])
    found = front_of(graph, costs, finest_partition(graph, [costs]))
    assert min(period for _, period, _ in found) == pytest.approx(3e-3)


def stage_ms(graph, costs, operators, stage_processor, stage_of):
    """Least time of a stage on one processor: each tensor moves there once, when first read."""
    p = stage_processor[stage_of[operators[0]]]
    inside = set(operators)
    best = {frozenset(): 0.0}
    for _ in operators:
        longer = {}
        for done, time in best.items():
            here = {n for v in done for n in graph.reads(graph.operators[v])}
            for v in inside - done:
                if not {u for u in graph.predecessors(v) if u in inside} <= done:
                    continue
                moved = [
                    costs.transfers[n][stage_processor[stage_of[graph.producer[n]]]][p] * 1e3
                    for n in graph.reads(graph.operators[v])
                    if n in graph.producer and n not in here
                ]
                total = time + costs.times[v][p] + max(moved, default=0)
                key = done | {v}
                longer[key] = min(total, longer.get(key, total))
        best = longer
    return best[frozenset(inside)]


def live_behind(graph, before):
    return sum(
        maker in before and not before.issuperset(graph.consumers.get(name, ()))
        for name, maker in graph.producer.items()
    )


def every_pipeline(graph, costs):
    """Latency, period and energy of all pipelines of one processor for each stage."""
    count, processors = len(graph.operators), range(len(costs.processors))
    for stage_of in product(processors, repeat=count):
        stages = 1 + max(stage_of)
        if len({*stage_of}) < stages or any(
            stage_of[u] > stage_of[v] for v in range(count) for u in graph.predecessors(v)
        ):
            continue
        ends = ({v for v in range(count) if stage_of[v] <= s} for s in range(stages - 1))
        if any(live_behind(graph, before) > 3 for before in ends):
            continue
        members = [[v for v in range(count) if stage_of[v] == s] for s in range(stages)]
        for used in permutations(processors, stages):
            times = [stage_ms(graph, costs, each, used, stage_of) / 1e3 for each in members]
            dynamic_j = sum(costs.energies[v][used[stage_of[v]]] for v in range(count)) / 1e3
            static_w = sum(costs.static_power_w[p] for p in used)
            yield sum(times), max(times), dynamic_j + static_w * max(times)


def check_against_every_pipeline(seed, operators):
    rng, parts = random.Random(seed), None
    while parts is None or not parts.cuts.few:  # of too many ideals, there are only some
        graph = scattered(rng, operators)
        costs = random_costs(graph, 3, seed)
        parts = finest_partition(graph, [costs])
    found = front_of(graph, costs, parts)
    for wanted in nondominated(every_pipeline(graph, costs), lambda figures: figures):
        assert at_least_as_good(found, wanted)


@pytest.mark.parametrize("seed", range(6))
def test_no_division_into_stages_of_one_processor_each_beats_what_is_found(seed):
    check_against_every_pipeline(seed, 5)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 300))
def test_no_division_of_more_operators_beats_what_is_found(seed):
    check_against_every_pipeline(seed, 4 + seed % 4)


def check_orders(seed, operators):
    rng = random.Random(seed)
    graph = scattered(rng, operators)
    costs = random_costs(graph, 3, seed)
    found = front_of(graph, costs, finest_partition(graph, [costs]))
    other = shuffled(graph, rng)
    place = {each.id: v for v, each in enumerate(graph.operators)}
    moved = random_costs(other, 3, seed)
    for table in ("times", "energies"):
        rows = getattr(costs, table)
        object.__setattr__(moved, table, [rows[place[each.id]] for each in other.operators])
    again = front_of(other, moved, finest_partition(other, [moved]))
    for one, two in ((found, again), (again, found)):
        assert all(at_least_as_good(one, figures) for figures in two)
    # what is cut between units alone is no better
    coarse = front_of(graph, costs, partition(graph))
    assert all(at_least_as_good(found, figures) for figures in coarse)


@pytest.mark.parametrize("seed", range(6))
def test_the_front_is_the_same_for_every_order_of_nodes_and_no_worse_than_between_units(seed):
    check_orders(seed, 3 + seed % 4)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 200))
def test_the_front_of_more_operators_is_the_same_for_every_order_of_nodes(seed):
    check_orders(seed, 4 + seed % 6)


def check_large_residual_networks(seed):
    rng = random.Random(seed)
    graph = residual(rng, 30)
    times = [[rng.choice([1, 2, 20]) for _ in range(2)] for _ in graph.operators]
    costs = costs_of(graph, times, moved=0.5)
    found = front_of(graph, costs, finest_partition(graph, [costs]))
    other = shuffled(graph, rng)
    place = {each.id: v for v, each in enumerate(graph.operators)}
    moved = costs_of(other, [times[place[each.id]] for each in other.operators], moved=0.5)
    again = front_of(other, moved, finest_partition(other, [moved]))
    for one, two in ((found, again), (again, found)):
        assert all(at_least_as_good(one, figures) for figures in two)
    assert all(at_least_as_good(found, f) for f in front_of(graph, costs, partition(graph)))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_large_networks_are_no_worse_than_between_units_whatever_their_order(seed):
    check_large_residual_networks(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_large_networks_are_no_worse_than_between_units_whatever_their_order(seed):
    check_large_residual_networks(seed)


def test_a_large_network_is_cut_inside_a_skip_connection_around_most_of_its_work():
    # thirty small operators, then three with a skip connection, of which the last suits the other
    reads = {"s0": ["x"], **{f"s{v}": [f"s{v - 1}"] for v in range(1, 30)}}
    graph = operators_of({**reads, "b": ["s29"], "c": ["b"], "d": ["c", "s29"]})
    times = [*[[0.1, 1]] * 30, [10, 90], [10, 90], [90, 22]]
    costs = costs_of(graph, times)
    periods = [
        min(period for _, period, _ in front_of(graph, costs, parts))
        for parts in (partition(graph), finest_partition(graph, [costs]))
    ]
    assert periods[1] == pytest.approx(23e-3, rel=1e-9)
    assert periods[0] > periods[1]
