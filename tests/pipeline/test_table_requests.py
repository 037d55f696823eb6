"""What cost tables are asked for where all would be too much, or where time is short."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import inf

import pytest

from parapipe.graph.partition import partition
from parapipe.mapping.paths import supporting
from parapipe.pipeline import explorer, promising, table_requests
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.explore import explore
from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.solve import solve_here
from parapipe.pipeline.table_requests import OtherTables, all_requests, on_one_processor
from tests.cases.pipeline_cases import identical_costs, random_costs
from tests.pipeline.test_anytime import Work
from tests.pipeline.test_live_boundaries import cut_everywhere, tangled

OPTIONS = MapOptions(mapper="coarse", time_limit_s=10, resolution=0.0, jobs=1)


def faster(costs, share):
    """The same costs with operators that take a share of their time."""
    found = copy(costs)
    times = [[each * share for each in row] for row in costs.times]
    object.__setattr__(found, "times", times)
    object.__setattr__(found, "energies", costs.energies)
    object.__setattr__(found, "entries", ((),) * len(times))  # only counted
    return found


def two_tables(seed, kinds):
    graph = tangled(5, seed)
    costs = identical_costs(graph, kinds, seed)
    return graph, cut_everywhere(graph), [costs, faster(costs, 0.5)]


@pytest.mark.parametrize("kinds", [(0, 1, 2), (0, 1, 1)])
@pytest.mark.parametrize("seed", range(6))
def test_where_they_are_too_many_others_are_asked_for_paths_alone_and_bounds_hold(
    seed, kinds, monkeypatch
):
    graph, parts, tables = two_tables(seed, kinds)
    whole = explore(graph, parts, tables[0], OPTIONS, others=tables[1:])
    monkeypatch.setattr(promising, "MOST_REQUESTS", 0)
    monkeypatch.setattr(table_requests, "requests", None)  # they are never built
    few = explore(graph, parts, tables[0], OPTIONS, others=tables[1:])
    assert whole.unfinished is None
    assert any("operating points" in each for each in few.unfinished.reasons)
    for figure in ("latency_s", "period_s", "energy_j"):
        least = [min(getattr(each.evaluated, figure) for each in found.found)
                 for found in (whole, few)]  # fmt: skip
        assert getattr(few.unfinished, figure) <= least[0] * (1 + 1e-6)
        assert least[0] <= least[1] * (1 + 1e-6)
    alone = explore(graph, parts, tables[0], OPTIONS)
    fastest = min(few.found, key=lambda each: each.evaluated.latency_s)
    assert fastest.table == 1
    assert fastest.evaluated.latency_s < min(each.evaluated.latency_s for each in alone.found)


@pytest.mark.parametrize("most", range(5))
def test_no_table_is_asked_for_anything_after_the_deadline(most):
    graph = tangled(5, 0)
    tables = [random_costs(graph, 3, seed) for seed in range(4)]
    others = OtherTables(graph, partition(graph), tables, [()] * 4)
    asked = list(others.requests(Deadline(most + 0.5, clock=Work())))
    every = list(others.requests(Deadline(inf)))
    assert all(every)
    assert asked == every[:most] + [()] * (4 - most)


@pytest.mark.parametrize("seed", range(6))
def test_a_first_front_asks_for_lists_on_one_processor_alone(seed, monkeypatch):
    graph = tangled(5, seed)
    costs, asked = random_costs(graph, 3, seed), []

    def listed(questions, *given):
        questions = list(questions)
        found = solve_here(questions, *given)
        asked.extend(found)
        return found

    monkeypatch.setattr(explorer, "solve_here", listed)
    options = replace(OPTIONS, budget_s=1e-6)
    found = explore(graph, partition(graph), costs, options)
    assert found.found
    processors = [{p for own in supporting(each.problem) for p in own} for each in asked]
    assert all(len(each) == 1 for each in processors)
    every = all_requests(graph, partition(graph), costs)
    assert len(processors) <= len(on_one_processor(every))
