"""Drawn cost tables: a mapping takes in them what its draws say, worked out the other way."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from parapipe.cost.spread import PlatformSpread, Spread
from parapipe.graph.partition import partition
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.problems.identical_processors import identical_processors
from parapipe.processes.deadline import Deadline
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.uncertainty.causes import Draws
from parapipe.uncertainty.robust import quantiles, with_robust
from parapipe.uncertainty.samples import at_quantile, figures_in_draws
from parapipe.uncertainty.scenarios import (
    SampledCostsSearch,
    Scenario,
    ScenarioConfiguration,
    at_stated_costs,
    sampled_table,
    scenarios_of,
    search_scenario,
    search_scenarios,
)
from tests.cases.uncertain_mappings import priced, random_stages

SPREAD = PlatformSpread(0.4, (0.1, 0.2, 0.2), 0.15, ("a", "b", "b"), 0.1)  # b and c are identical
COUNT = 5
FASTER = [
    seed
    for seed in range(14)
    if identical_processors(*priced(seed, occupying=False)) == ((1, 2),)  # a is faster
]


def doubtful(costs, *, own=0.0):
    """Return costs with errors that all convolutions of a size share, and of their own."""

    def unsure(cost):
        parts = (replace(p, spread=Spread(own, 0.2, f"fit of {p.time_s}")) for p in cost.parts)
        return replace(cost, parts=tuple(parts))

    rows = tuple(tuple(unsure(cost) for cost in row) for row in costs.entries)
    return replace(costs, entries=rows, spread=SPREAD)


def shared_by_class(costs):
    """Return costs in which a fit's error is one for b and c, as their state is."""
    return replace(costs, processors=("a", "b", "b"))


@pytest.mark.parametrize("seed", FASTER)
def test_a_mapping_takes_in_a_drawn_table_what_its_draws_say(seed):
    graph, costs, mapping = random_stages(seed, occupying=False)
    costs = shared_by_class(doubtful(costs))
    names = [operator.id for operator in graph.operators]
    draws = Draws(COUNT, seed)
    stated = evaluate(mapping, graph, costs)
    expected = figures_in_draws(mapping, stated, costs, names, draws)
    for draw in range(COUNT + 1):
        table = sampled_table(graph, costs, draws, draw)
        again = mapping_of(graph, None, table, assignment_of(mapping))
        found = evaluate(again.with_replicas(mapping.replicated), graph, table)
        assert found.latency_s == pytest.approx(expected.latency_s[draw], rel=1e-9)
        assert found.period_s == pytest.approx(expected.period_s[draw], rel=1e-9)
        assert found.energy_j == pytest.approx(expected.energy_j[draw], rel=1e-9)


def test_single_operators_keep_what_they_are_stated_to_take_and_equal_ones_stay_equal():
    graph, costs = priced(3, occupying=False)
    plain = sampled_table(graph, doubtful(costs), Draws(COUNT, 0), 2)
    own = sampled_table(graph, doubtful(costs, own=0.5), Draws(COUNT, 0), 2)
    assert own.entries == plain.entries
    assert len({row[0].time_s for row in own.entries}) == len(
        {row[0].time_s for row in costs.entries}
    )


def test_identical_processors_stay_identical():
    graph, costs = priced(FASTER[0], occupying=False)
    apart = replace(doubtful(costs), spread=replace(SPREAD, states=("a", "b", "c")))
    assert identical_processors(graph, costs) == ((1, 2),)
    for draw in range(1, COUNT + 1):
        table = sampled_table(graph, apart, Draws(COUNT, 0), draw)
        assert identical_processors(graph, table) == ((1, 2),)


def test_costs_without_doubt_are_drawn_as_they_are():
    graph, costs = priced(2, occupying=True)
    table = sampled_table(graph, replace(costs, spread=None), Draws(COUNT, 0), 3)
    assert table.entries == costs.entries


def case():
    graph, costs = priced(4, occupying=False)
    return graph, partition(graph), doubtful(costs)


OPTIONS = MapOptions(jobs=2, cache=False, draws=20, robust=0.9, scenarios=3)
ALONE = replace(OPTIONS, jobs=1, interleave="none", robust=None, draws=0)


def test_searches_in_other_processes_find_what_they_find_in_this_one():
    graph, parts, costs = case()
    scenarios = scenarios_of(graph, [costs], 3, seed=0)
    found = search_scenarios(scenarios, graph, parts, OPTIONS, Deadline())
    assert list(found) == [0, 1, 2]
    assert found[1] == search_scenario(scenarios[1], graph, parts, ALONE)


def test_after_the_deadline_no_scenario_is_searched():
    graph, parts, costs = case()
    scenarios = scenarios_of(graph, [costs], 2, seed=0)
    assert search_scenarios(scenarios, graph, parts, OPTIONS, Deadline(seconds=0)) == {}


@pytest.mark.parametrize(("gone_s", "searched"), [(0.0, 3), (540.0, 0), (700.0, 0)])
def test_a_robust_front_is_searched_in_the_time_that_the_stated_costs_leave(gone_s, searched):
    graph, parts, costs = case()
    known = explore(graph, parts, costs, ALONE)
    options = replace(OPTIONS, budget_s=600.0)
    found, drawn, robust = with_robust(
        known, graph, parts, [costs], options,
        costs_of=lambda _: costs, searches=[SampledCostsSearch()], gone_s=gone_s,
    )  # fmt: skip
    assert robust.scenarios == searched
    assert len(drawn.latency_s) == len(found.found) >= len(known.found)


def test_what_the_stated_costs_find_too_is_not_found_twice():
    graph, parts, costs = case()
    known = explore(graph, parts, costs, ALONE).found
    stated = search_scenario(Scenario((costs,)), graph, parts, ALONE)
    assert len(stated) == len(known)
    assert list(at_stated_costs(stated, graph, [costs], known)) == []
    made = list(at_stated_costs([*stated, *stated], graph, [costs], ()))
    assert len(made) == len(known)
    for each, before in zip(made, known, strict=True):
        assert isinstance(each, Configuration)
        assert each.evaluated.latency_s <= before.evaluated.latency_s * (1 + 1e-9)


def test_processors_may_take_their_operators_in_any_interleaving_of_the_same_orders():
    graph, parts, costs = case()
    first = search_scenario(Scenario((costs,)), graph, parts, ALONE)
    wide = next(each for each in first if len({*each.assignment.processors}) > 1)
    stages = tuple(
        tuple(sorted(stage, key=lambda v: (wide.assignment.processors[v], stage.index(v))))
        for stage in wide.assignment.stages
    )
    other = replace(wide.assignment, stages=stages)
    same = ScenarioConfiguration(0, other, wide.replicated, wide.proven, wide.gap)
    assert len(list(at_stated_costs([wide, same], graph, [costs], ()))) == 1


@pytest.mark.parametrize(
    "seed", [14, *(pytest.param(each, marks=pytest.mark.nightly) for each in (2, 6))]
)
def test_of_a_tiny_network_the_best_at_the_quantile_is_that_of_all_assignments(seed):
    graph, costs = priced(seed, occupying=False)
    parts, costs = partition(graph), doubtful(costs, own=0.1)
    asked = replace(OPTIONS, draws=30, resolution=0.0, objectives="latency-throughput")
    known = explore(graph, parts, costs, replace(asked, interleave="none", robust=None))
    _, taken, _ = with_robust(
        known, graph, parts, [costs], asked,
        costs_of=lambda _: costs, searches=[SampledCostsSearch()],
    )  # fmt: skip
    names, draws = [operator.id for operator in graph.operators], Draws(30, 0)

    def kept_s(place):
        mapping = mapping_of(graph, None, costs, Assignment(place, (tuple(range(len(place))),)))
        made = evaluate(mapping, graph, costs)
        return at_quantile(figures_in_draws(mapping, made, costs, names, draws).latency_s[1:], 0.9)

    least_s = min(map(kept_s, product(range(3), repeat=len(graph.operators))))
    found_s = min(latency_s for latency_s, _, _ in quantiles(taken, 0.9))
    assert found_s == pytest.approx(least_s, rel=1e-9)
