"""Searches: which options ask for them, and in which order they run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest

from parapipe.mappings.configuration import Configuration
from parapipe.search.configurations_from_costs import explore
from parapipe.search.contract import Moment
from parapipe.search.options import MapOptions
from parapipe.search.registry import requested_searches
from parapipe.search.stages.stage_search import StageSearch
from tests.cases.one_search import OneSearch
from tests.cases.pipeline_cases import identical_costs
from tests.search.test_live_boundaries import cut_everywhere, tangled

STAGES = MapOptions(mapper="coarse", interleave="none", resolution=0.0, jobs=1, cache=False)
BY_OPTIONS = [
    ({}, []),
    ({"interleave": "auto"}, ["interleaved"]),
    ({"split": "auto", "interleave": "auto"}, ["split", "interleaved"]),
    ({"max_memory_bytes": 1e6}, ["less-memory"]),
    ({"max_segments": 8}, ["few-segments"]),
    ({"max_segments": {"npu": 8}, "max_memory_bytes": 1e6}, ["few-segments", "less-memory"]),
    ({"objectives": "latency-throughput-memory"}, ["less-memory"]),
    ({"max_memory_bytes": 1e6, "recompute": True}, ["less-memory", "recomputed"]),
    ({"recompute": True}, []),
    ({"robust": 0.9}, ["drawn-costs"]),
    ({"rates": {"a": 10.0, "b": 20.0}}, ["several"]),
    ({"rates": {}}, []),
]


@pytest.mark.parametrize(("options", "names"), BY_OPTIONS)
def test_options_ask_for_searches(options, names):
    requested = [each.name for each in requested_searches(replace(STAGES, **options))]
    assert requested == ["stages", *names]


def test_searches_are_listed_as_they_run():
    options = replace(STAGES, split="auto", interleave="auto", max_memory_bytes=1e6, recompute=True)
    found = requested_searches(options)
    names = [each.name for each in found]
    assert names == ["stages", "split", "interleaved", "less-memory", "recomputed"]
    moments = [[*Moment].index(each.moment) for each in found]
    assert moments == sorted(moments)


def test_a_map_of_stages_imports_no_other_search():
    others = [
        *("split_search.search", "search.interleaved", "memory_search.selection"),
        *("memory_search.recompute", "uncertainty.scenarios", "several_models.search"),
    ]
    assert all(find_spec(f"parapipe.{name}") for name in others)
    script = f"""
import sys
from tests.search.test_search_registry import STAGES, explored
from parapipe.search.registry import requested_searches
explored(requested_searches(STAGES))
print(*(name for name in {others} if f"parapipe.{{name}}" in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def explored(searches, **more):
    graph = tangled(4, 0)
    costs = identical_costs(graph, (0, 1, 2), 0)
    return explore(graph, cut_everywhere(graph), costs, replace(STAGES, **more), searches=searches)


def test_each_search_knows_what_those_before_it_found_and_the_front_is_of_all():
    asked = []

    def search(name, moment):
        def run(problem, incumbents, deadline):
            assert not deadline.over
            asked.append((name, len(incumbents)))
            assert problem.schedules()
            yield from better

        return OneSearch(name, moment, run)

    slow = explored([StageSearch()]).found[0]
    fast = replace(slow.evaluated, latency_s=slow.evaluated.latency_s / 2)
    better = [replace(slow, evaluated=fast, names=(), pareto=False)]
    found = explored(
        [
            search("later", Moment.LATER),
            StageSearch(),
            search("first", Moment.STAGES),
            search("second", Moment.STAGES),
        ]
    ).found
    assert [name for name, _ in asked] == ["first", "second", "later"]
    before = asked[0][1]
    assert [count for _, count in asked] == [before, before + 1, before + 2]
    assert all(isinstance(each, Configuration) for each in found)
    assert min(each.evaluated.latency_s for each in found) == fast.latency_s


def test_a_search_says_what_it_left_out_and_why_it_found_nothing():
    def run(problem, _incumbents, _deadline):
        problem.lacking["interleaved"] = "there is no use for it"
        problem.left_out("half of it was left out")
        return iter(())

    found = explored([StageSearch(), OneSearch("own", Moment.LATER, run)])
    assert found.absent["interleaved"] == "there is no use for it"
    assert found.unfinished.reasons == ("half of it was left out",)
