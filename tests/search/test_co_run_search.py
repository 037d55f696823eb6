"""Fronts of processors that slow each other down, beside all mappings of tiny networks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parapipe.graph.partition import partition
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.modulo.verify import check as verify_modulo
from parapipe.problems.problems import whole_problem
from parapipe.search.configurations_from_costs import explore
from parapipe.search.interleaved import InterleavedSearch, modulo_schedule_of
from parapipe.search.loaded_costs import ExpectedLoad, expected_loads
from parapipe.search.local_changes import LocalChanges
from parapipe.search.neighbours import Neighbourhood
from parapipe.search.options import MapOptions
from parapipe.search.stages.stage_search import StageSearch
from tests.cases.co_runs import with_law
from tests.cases.every_co_run import every_interleaved, every_mapping, exact_front, tiny_case

OPTIONS = MapOptions(objectives="latency-throughput", interleave="none", cache=False)
STAGES = (StageSearch(),)
TURNS = (StageSearch(), InterleavedSearch())


def found_by(graph, costs, searches=STAGES):
    return explore(graph, partition(graph), costs, OPTIONS, searches=searches).found


def figures(found):
    return [(round(e.latency_s, 11), round(e.period_s, 11)) for e in (f.evaluated for f in found)]


@pytest.mark.parametrize("seed", [6, 8])
def test_a_front_is_that_of_all_mappings(seed):
    graph, costs = tiny_case(seed, 4)
    found = found_by(graph, costs)
    exact = exact_front(graph, costs)
    assert sorted({*figures(each for each in found if each.pareto)}) == exact
    # what is told of bounds is right
    for each in found:
        assert each.least.latency_s <= exact[0][0] * (1 + 1e-9)
        assert each.least.period_s <= exact[-1][1] * (1 + 1e-9)
        assert each.proven == (each.gap == 0)
        assert each.gap <= 1 - each.least.latency_s / each.evaluated.latency_s + 1e-9


def worse_by(found, exact):
    """Return by which share the farthest point of a front is better than all that was found."""
    shares = [
        min(max(a / latency_s, b / period_s) for a, b in figures(found)) - 1
        for latency_s, period_s in exact
    ]
    return max(shares)


def check_bounds(found, exact):
    """Check that no bound is above any point: so the gap that is told is no less than the real."""
    for each in found:
        assert each.least.latency_s <= min(exact)[0] * (1 + 1e-9)
        assert each.least.period_s <= min(b for _, b in exact) * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_with_frames_interleaved_too(seed):
    graph, costs = tiny_case(seed, 3, "ab")
    found = found_by(graph, costs, TURNS)
    exact = exact_front(graph, costs) + exact_front(graph, costs, interleaved=True)
    assert worse_by(found, exact) < 1e-8
    check_bounds(found, exact)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_six_operators(seed):
    # Parts of a network that nothing joins have several steady states, some of them better.
    graph, costs = tiny_case(seed, 6)
    found, exact = found_by(graph, costs), exact_front(graph, costs)
    assert worse_by(found, exact) < 1e-8
    check_bounds(found, exact)


@pytest.mark.nightly
@pytest.mark.parametrize(("operators", "names"), [(4, "ab"), (3, "abc")])
@pytest.mark.parametrize("seed", range(8))
def test_interleaved_frames_of_more_operators_or_processors(seed, operators, names):
    graph, costs = tiny_case(seed, operators, names)
    found = found_by(graph, costs, TURNS)
    exact = exact_front(graph, costs) + exact_front(graph, costs, interleaved=True)
    assert worse_by(found, exact) < 0.05  # 10 of 16 whole fronts; else one or two points lack
    check_bounds(found, exact)


def test_local_changes_find_schedules_of_more_throughput():
    graph, costs = tiny_case(0, 3, "abc")
    found = found_by(graph, costs, TURNS)
    # By brute force of all orders and lags; searches with times alone, and with those under
    # expected loads, come no nearer than 5 % to the second of the five points.
    assert any(
        each.evaluated.latency_s <= 0.0108989 and each.evaluated.period_s <= 0.0097133
        for each in found
    )


def test_changes_of_interleaved_frames_are_schedules_and_keep_to_the_least_period():
    graph, costs = tiny_case(1, 4, "ab")
    free = with_law(costs, None)
    changes = LocalChanges(graph, free, None, interleaves=True)
    first = next(each for each in every_interleaved(graph, free) if each.kind == "interleaved")
    near = [*changes.near(replace(first, period_s=2 * first.period_s))]
    assert {each.kind for each in near} >= {"interleaved", "pipe-only"}
    for each in near:
        if each.period_s is not None:
            verify_modulo(whole_problem(graph, free), modulo_schedule_of(each, graph))
    # the same orders at a shorter period, and at their least one
    assert min(each.period_s for each in near if each.period_s) < 2 * first.period_s
    again = {repr(each) for each in changes.near(replace(first, period_s=2 * first.period_s))}
    assert len(again) <= 1  # each is yielded once, but for the same orders


def test_what_is_told_without_the_law_is_what_the_same_mapping_takes_then():
    graph, costs = tiny_case(8, 4)
    for each in found_by(graph, costs):
        effect = each.evaluated.co_run
        assert effect.free_latency_s <= each.evaluated.latency_s
        assert effect.free_period_s <= each.evaluated.period_s


def test_a_law_that_slows_nothing_down_gives_the_same_figures():
    graph, costs = tiny_case(10, 3)
    law = costs.co_run
    none = type(law)((), law.draws)
    aware = set(figures(e for e in found_by(graph, with_law(costs, none)) if e.pareto))
    blind = figures(e for e in found_by(graph, with_law(costs, None)) if e.pareto)
    # local changes may find more, since they cut anywhere
    assert all(any(a <= c and b <= d for a, b in aware) for c, d in blind)


def test_loads_are_sets_of_processors_and_others_stay_empty():
    assert expected_loads(3) == [(0, 1, 2), (0, 1), (0, 2), (1, 2)]
    graph, costs = tiny_case(2, 4)
    loaded = ExpectedLoad.of(costs, costs.co_run, (0, 2)).table()
    for v in range(len(graph.operators)):
        assert loaded.time_s(v, 0) >= costs.time_s(v, 0)
        assert loaded.time_s(v, 1) == float("inf")
        assert loaded.time_s(v, 2) >= costs.time_s(v, 2)


def test_neighbours_are_mappings_and_all_can_be_reached():
    graph, costs = tiny_case(0, 3)
    free = with_law(costs, None)
    neighbourhood = Neighbourhood(graph, free)

    def key(mapping):
        return tuple(
            (stage.lag, p, tuple(at.operator for at in stage.placements if at.processor == p))
            for stage in mapping.stages
            for p in stage.processors
        )

    every = {key(mapping): mapping for mapping in every_mapping(graph, free)}
    first = next(iter(every.values()))
    reached, waiting = {key(first)}, [first]
    while waiting:
        for own in neighbourhood.of(assignment_of(waiting.pop())):
            mapping = mapping_of(graph, None, free, own)
            if key(mapping) not in reached:
                reached.add(key(mapping))
                waiting.append(mapping)
    assert len(reached & every.keys()) >= 0.95 * len(every)
