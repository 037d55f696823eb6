"""Problems in the order of promise: bounds hold for all configurations; good ones reach them."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.graph.partition import partition
from parapipe.pipeline import promising
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.explore import explore
from parapipe.pipeline.method import Method
from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.periods import Periods
from parapipe.pipeline.promising import Promising
from parapipe.pipeline.question import answer_of
from parapipe.pipeline.relaxed import Relaxed
from tests.cases.pipeline_cases import random_costs
from tests.pipeline.test_explore import chain, every_chain_configuration
from tests.pipeline.test_live_boundaries import cut_everywhere, every_configuration, tangled

METHOD = Method("auto", 10.0, 0)


def looked_ahead(graph, parts, costs):
    """Go through all rounds."""
    relaxed = Relaxed(graph, parts, costs, ())
    found = Promising(relaxed, Periods(relaxed, parts))
    found.solve(lambda questions: {q: answer_of(q, METHOD) for q in questions}, Deadline())
    return found


@pytest.mark.parametrize("seed", range(12))
def test_of_a_chain_both_bounds_are_the_best_that_brute_force_finds(seed):
    graph = chain(4)
    costs = random_costs(graph, 3, seed)
    found = looked_ahead(graph, partition(graph), costs)
    every = list(every_chain_configuration(graph, costs))
    assert found.latency_s == pytest.approx(min(latency_s for latency_s, _, _ in every))
    assert found.period_s == pytest.approx(min(period_s for _, period_s, _ in every))


@pytest.mark.parametrize("seed", range(12))
def test_with_several_live_tensors_no_configuration_is_below_the_bounds(seed):
    graph = tangled(4, seed)
    costs = random_costs(graph, 3, seed)
    found = looked_ahead(graph, cut_everywhere(graph), costs)
    every = list(every_configuration(graph, costs))
    least_s = min(latency_s for latency_s, _, _ in every)
    assert 0 < found.period_s <= min(period_s for _, period_s, _ in every) * (1 + 1e-9)
    assert found.latency_s == pytest.approx(least_s)


def mapped(model, **given):
    return parapipe.map(
        model, "amlogic-a311d", objectives="latency-throughput", cache=False, jobs=1, **given
    )


def test_a_front_of_promising_problems_alone_says_so_and_comes_near_to_the_whole_one(monkeypatch):
    whole = mapped("zoo:squeezenet")
    monkeypatch.setattr(promising, "MOST_REQUESTS", 0)
    few = mapped("zoo:squeezenet")
    undone = few.document.unfinished
    assert "too many subgraphs" in undone.reasons[0]
    for figure in ("latency_s", "period_s"):
        least_s = min(getattr(row, figure) for row in whole)
        found_s = min(getattr(row, figure) for row in few)
        assert getattr(undone, figure) <= least_s * (1 + 1e-6)
        assert least_s * (1 - 1e-6) <= found_s <= least_s * 1.02


def test_a_budget_that_is_not_used_up_changes_nothing():
    fronts = [mapped("zoo:squeezenet", **given) for given in ({}, {"budget_s": 600.0})]
    assert fronts[1].document.unfinished is None
    rows = [[(r.latency_s, r.period_s, r.energy_j, r.stages) for r in front] for front in fronts]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("seed", range(4))
def test_with_several_cost_tables_all_problems_are_looked_at(seed, monkeypatch):
    monkeypatch.setattr(promising, "MOST_REQUESTS", 0)
    graph = chain(3)
    tables = [random_costs(graph, 3, seed + 100 * i) for i in range(2)]
    object.__setattr__(tables[1], "transfers", tables[0].transfers)
    options = MapOptions(mapper="coarse", time_limit_s=10, resolution=0.0, jobs=1)
    found = explore(graph, partition(graph), tables[0], options, others=tables[1:])
    assert found.unfinished is None
