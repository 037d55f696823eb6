"""Fronts within a power budget, beside all mappings of tiny networks."""

import random
from dataclasses import replace

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.power_budget import may_exceed
from parapipe.platform.fields import named_value
from parapipe.search.configurations_from_costs import explore
from parapipe.search.interleaved import InterleavedSearch
from parapipe.search.options import MapOptions
from parapipe.search.stages.stage_search import StageSearch
from tests.cases.co_runs import random_table, timed_costs, with_law
from tests.cases.every_co_run import every_mapping
from tests.cases.hand_built import GraphBuilder, platform, processor

OPTIONS = MapOptions(objectives="latency-throughput", cache=False)
STAGES = (StageSearch(),)


def chain(operators):
    builder = GraphBuilder(x=(1, 4, 8, 8))
    name = "x"
    for _ in range(operators):
        name = builder.conv(name, 4)
    return builder.graph(name)


def powered(costs, power_w, static_w):
    """Return costs with other powers: a row of watts for each operator."""
    entries = []
    for row, own in zip(costs.entries, power_w, strict=True):
        made = []
        for cost, watts in zip(row, own, strict=True):
            part = replace(cost.parts[0], power=named_value("power", watts, "W"))
            made.append(replace(cost, parts=(part,)))
        entries.append(tuple(made))
    return replace(costs, entries=tuple(entries), static_power_w=tuple(static_w))


def case(seed, operators=5, names="abc"):
    """Return a chain and two cost tables: the second is slower, and takes less energy."""
    rng, graph = random.Random(seed), chain(operators)
    chip = platform(*(processor(name, cores=[p]) for p, name in enumerate(names)))
    costs = build_cost_table(graph, chip, profiles=())
    times = [[rng.randint(1, 9) * 1e-3 for _ in names] for _ in graph.operators]
    watts = [[rng.uniform(0.5, 4) for _ in names] for _ in graph.operators]
    static = [rng.uniform(0.1, 0.5) for _ in names]
    fast = powered(timed_costs(costs, times), watts, static)
    slow_times = [[1.5 * time_s for time_s in row] for row in times]
    slow_watts = [[watt / 3 for watt in row] for row in watts]
    slow = powered(timed_costs(costs, slow_times), slow_watts, [watt / 2 for watt in static])
    return graph, fast, slow


def limited(costs, budget_w):
    return replace(costs, power_budget_w=budget_w)


def front_of(points):
    points = {(round(a, 9), round(b, 9)) for a, b in points}
    return sorted(
        one
        for one in points
        if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in points)
    )


def every_point(graph, costs):
    for mapping in every_mapping(graph, costs):
        found = evaluate(mapping, graph, costs)
        if found.period_s < float("inf"):
            yield found.latency_s, found.period_s


def found_by(graph, costs, *others, searches=STAGES):
    found = explore(graph, partition(graph), costs, OPTIONS, others=others, searches=searches).found
    for each in found:
        if budget_w := costs.power_budget_w:
            own = each.evaluated
            assert own.energy_j / own.period_s <= budget_w * (1 + 1e-9)
    return found


def points(found):
    return [(each.evaluated.latency_s, each.evaluated.period_s) for each in found]


@pytest.mark.parametrize("budget_w", [1.2, 2.5, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_front_within_a_budget_is_that_of_all_mappings(seed, budget_w):
    graph, fast, _ = case(seed)
    costs = limited(fast, budget_w)
    assert front_of(points(found_by(graph, costs))) == front_of(every_point(graph, costs))


@pytest.mark.parametrize("seed", range(3))
def test_operating_points_are_chosen_by_the_budget(seed):
    graph, fast, slow = case(seed, 4)
    tables = limited(fast, 2.0), limited(slow, 2.0)
    found = found_by(graph, *tables)
    exact = front_of(point for each in tables for point in every_point(graph, each))
    assert front_of(points(found)) == exact
    assert any(each.table == 1 for each in found)  # without a budget, nothing is faster by it
    assert all(each.table == 0 for each in found_by(graph, fast, slow) if each.pareto)


def test_what_no_mapping_exceeds_changes_nothing():
    graph, fast, _ = case(1)
    assert may_exceed(limited(fast, 5.0))
    wide = limited(fast, 100.0)
    assert not may_exceed(wide)
    assert points(found_by(graph, wide)) == points(found_by(graph, fast))


def test_frames_that_are_interleaved_keep_to_the_budget():
    graph, fast, _ = case(2, 4, "ab")
    costs = limited(fast, 1.5)
    found = found_by(graph, costs, searches=(StageSearch(), InterleavedSearch()))
    shortest = min(each.evaluated.period_s for each in found)
    assert shortest <= min(period_s for _, period_s in every_point(graph, costs)) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_a_budget_and_a_law_of_co_runs_together(seed):
    graph, fast, _ = case(seed, 4)
    law = random_table(random.Random(seed), fast.processors, most=2.0)
    costs = with_law(limited(fast, 2.0), law)
    exact = front_of(every_point(graph, costs))
    found = front_of(points(found_by(graph, costs)))
    assert found == exact
