"""Fronts under a limit of segments: as brute force has them, and as an export cuts them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from parapipe.errors import MappingError
from parapipe.graph.partition import partition
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.segments import count_segments
from parapipe.pareto import nondominated
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.registry import requested_searches
from parapipe.search.stages.candidates import join_stages
from parapipe.search.stages.finest_cuts import finest_partition
from parapipe.search.stages.unit_schedules import Choice, options_lookup, unit_options
from parapipe.segment_search import search as segment_search
from parapipe.segment_search.limited_stages import LimitedStages
from tests.cases.pipeline_cases import every_division, random_costs
from tests.cases.shuffled import operators_of

OPTIONS = {"interleave": "none", "resolution": 0.0, "energy_resolution": 0.0, "jobs": 1}


def random_case(seed, operators=5, processors=2):
    """A network whose operators read one or two of those before, and costs of it."""
    rng = random.Random(seed)
    reads = {"o0": ["x"]}
    for i in range(1, operators):
        before = [f"o{j}" for j in range(max(0, i - 3), i)]
        reads[f"o{i}"] = rng.sample(before, min(len(before), rng.randint(1, 2)))
    graph = operators_of(reads)
    return graph, random_costs(graph, processors, seed)


def explored(graph, costs, parts, most=None, **more):
    options = MapOptions(max_segments=most, **(OPTIONS | more))
    return explore(graph, parts, costs, options, searches=requested_searches(options))


def figures(evaluated):
    return evaluated.latency_s, evaluated.period_s, evaluated.energy_j


def as_good(one, other):
    return all(a <= b + 1e-8 for a, b in zip(one, other, strict=True))


def every_mapping(graph, costs, parts, schedules):
    """Every choice of schedules and cuts, each processor in one stage."""
    options = options_lookup(unit_options(schedules, costs))

    def chains(unit, locations):
        if unit == parts.cuts.last:
            yield ()
            return
        for option in options(unit, locations):
            for rest in chains(unit + option.units, option.locations):
                yield (option, *rest)

    for chain in chains(0, ()):
        for stages in every_division(chain):
            used = [{p for o in stage for p in o.choice.schedule.used} for stage in stages]
            if max(Counter(p for each in used for p in each).values()) == 1:
                yield join_stages([[o.choice for o in stage] for stage in stages], graph, costs)


@pytest.mark.parametrize("processors", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_front_is_that_of_all_stages_that_keep_the_limit(seed, processors):
    graph, costs = random_case(seed, 5 if processors == 2 else 4, processors)
    parts = finest_partition(graph, [costs])
    free = explored(graph, costs, parts)
    requests = free.asked[costs.processors]
    schedules = [Choice(each, free.schedules[each.problem]) for each in requests]
    every = [
        (count_segments(mapping, graph), figures(evaluate(mapping, graph, costs)))
        for mapping in every_mapping(graph, costs, parts, schedules)
    ]
    most_found = max(max(counts.values()) for counts, _ in every)
    for most in range(1, most_found + 1):
        kept = {made for counts, made in every if max(counts.values()) <= most}
        found = explored(graph, costs, parts, most).found
        for each in found:
            assert max(count_segments(each.mapping, graph).values()) <= most
        shown = [figures(each.evaluated) for each in found]
        for made in nondominated(sorted(kept), lambda made: made):
            assert any(as_good(one, made) for one in shown), most


@pytest.mark.parametrize("seed", range(4))
def test_a_limit_of_one_processor_leaves_others_free(seed):
    graph, costs = random_case(seed, 6, 2)
    parts = finest_partition(graph, [costs])
    free = [figures(each.evaluated) for each in explored(graph, costs, parts).found]
    all_limited = [figures(each.evaluated) for each in explored(graph, costs, parts, 1).found]
    found = explored(graph, costs, parts, {costs.processors[0]: 1}).found
    shown = [figures(each.evaluated) for each in found]
    assert all(count_segments(each.mapping, graph).get(0, 0) <= 1 for each in found)
    assert all(any(as_good(one, other) for one in shown) for other in all_limited)
    assert all(any(as_good(one, other) for one in free) for other in shown)


def test_what_nothing_exceeds_changes_nothing():
    graph, costs = random_case(3)
    parts = finest_partition(graph, [costs])
    free, loose = explored(graph, costs, parts), explored(graph, costs, parts, 100)
    assert [each.mapping for each in loose.found] == [each.mapping for each in free.found]
    assert loose.unfinished is None


def back_and_forth():
    """a and c run on the first processor alone, b and d on the second."""
    graph = operators_of({"a": ["x"], "b": ["a"], "c": ["b"], "d": ["c"]})
    costs = random_costs(graph, 2, 0)
    never = float("inf")
    object.__setattr__(costs, "times", [[1, never], [never, 1], [1, never], [never, 1]])
    return graph, costs


def test_two_segments_each_are_what_going_back_and_forth_takes():
    graph, costs = back_and_forth()
    found = explored(graph, costs, partition(graph), 2).found
    assert [count_segments(each.mapping, graph) for each in found] == [{0: 2, 1: 2}]


def test_where_nothing_keeps_the_limit_the_nearest_is_told():
    graph, costs = back_and_forth()
    told = r"on p0\+p1, has 2 on p0 instead of 1; 2 on p1 instead of 1; allow more with `max_seg"
    with pytest.raises(MappingError, match=told):
        explored(graph, costs, partition(graph), 1)


def test_kinds_that_exceed_it_are_absent_with_the_fewest_found():
    # side by side on both processors, each waits for the other: a │ b, c │ d
    graph = operators_of({"a": ["x"], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    costs = random_costs(graph, 2, 0)
    times = [[1, 3], [1, 9], [9, 1], [1, 3]]
    object.__setattr__(costs, "times", [[t / 1e3 for t in row] for row in times])
    still = dict.fromkeys(graph.tensors, ((0.0, 0.0), (0.0, 0.0)))
    object.__setattr__(costs, "transfers", still)
    free = explored(graph, costs, partition(graph), objectives="latency-throughput").found
    fastest = min(free, key=lambda each: each.evaluated.latency_s)
    # the first ends behind a, which c waits for, and begins anew with d, which waits for c
    assert count_segments(fastest.mapping, graph) == {0: 3, 1: 1}


def test_interleaved_frames_are_filtered_and_that_is_said():
    graph, costs = random_case(2, 6, 2)
    parts = finest_partition(graph, [costs])
    found = explored(graph, costs, parts, 1, interleave="auto")
    assert all(max(count_segments(e.mapping, graph).values()) == 1 for e in found.found)
    assert found.unfinished is not None
    assert any("frames that take turns" in reason for reason in found.unfinished.reasons)
    for each in found.found:
        assert found.unfinished.latency_s <= each.evaluated.latency_s + 1e-9
        assert found.unfinished.period_s <= each.evaluated.period_s + 1e-9


class EveryWay(LimitedStages):
    """Walks every way through a network, whatever is asked for."""

    def _ways(self, begin, locations, end, parts):
        return super()._ways(begin, locations, end, [range(1 << 8)] * len(parts))


@pytest.mark.parametrize("seed", range(2))
def test_what_no_stage_needs_is_left_out_without_loss(seed, monkeypatch):
    graph, costs = random_case(seed, operators=5, processors=3)
    parts = finest_partition(graph, [costs])
    asked = {"most": 1 + seed % 2, "max_stages": 2}

    def found():
        result = explored(graph, costs, parts, **asked)
        return [(each.mapping, figures(each.evaluated)) for each in result.found]

    few = found()
    monkeypatch.setattr(segment_search, "LimitedStages", EveryWay)
    assert few == found()
