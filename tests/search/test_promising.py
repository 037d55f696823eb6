"""Problems in the order of promise: bounds hold for all configurations; good ones reach them."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import reduce
from math import inf
from operator import or_

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import MergedUnit, Partition, Subgraph, Unit, partition
from parapipe.problems.identical_processors import identical_processors, replica_sets
from parapipe.problems.method import Method, answer_of
from parapipe.processes.deadline import Deadline
from parapipe.processes.memory_limit import MemoryLimit
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.stages import relaxed as relaxed_module
from parapipe.search.stages.finest_cuts import MOST_REQUESTS, finest_partition
from parapipe.search.stages.problem_order import Periods, PromisingRequests
from parapipe.search.stages.relaxed import Relaxed
from parapipe.search.stages.relaxed_step import most_cells
from tests.cases.pipeline_cases import identical_costs, random_costs
from tests.search.test_configurations_from_costs import chain, every_chain_configuration
from tests.search.test_live_boundaries import cut_everywhere, every_configuration, tangled

METHOD = Method("auto", 10.0, 0)
KINDS = [(0, 1, 2), (0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0)]


def looked_ahead(graph, parts, costs, replicas=None):
    """Go through all rounds."""
    relaxed = Relaxed(graph, parts, costs, identical_processors(graph, costs))
    found = PromisingRequests(relaxed, Periods(relaxed, replicas or {}))
    found.solve(lambda questions: {q: answer_of(q, METHOD) for q in questions}, Deadline())
    return found


def test_the_cases_have_groups_of_identical_processors():
    graph = chain(4)
    groups = [identical_processors(graph, identical_costs(graph, kinds, 0)) for kinds in KINDS]
    assert groups == [(), ((1, 2, 3),), ((0, 1), (2, 3)), ((0, 1, 2),)]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_of_a_chain_both_bounds_are_the_best_that_brute_force_finds(seed, kinds):
    graph = chain(4)
    costs = identical_costs(graph, kinds, seed)
    found = looked_ahead(graph, partition(graph), costs)
    every = list(every_chain_configuration(graph, costs))
    assert found.latency_s == pytest.approx(min(latency_s for latency_s, _, _ in every))
    assert found.period_s == pytest.approx(min(period_s for _, period_s, _ in every))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_with_processors_that_take_turns_the_bound_of_the_period_is_the_best_too(seed, kinds):
    graph = chain(4)
    costs = identical_costs(graph, kinds, seed)
    replicas = replica_sets(identical_processors(graph, costs))
    found = looked_ahead(graph, partition(graph), costs, replicas)
    every = list(every_chain_configuration(graph, costs, kinds))
    assert found.latency_s == pytest.approx(min(latency_s for latency_s, _, _ in every))
    assert found.period_s == pytest.approx(min(period_s for _, period_s, _ in every))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_with_several_live_tensors_too(seed, kinds):
    graph = tangled(4, seed)
    costs = identical_costs(graph, kinds, seed)
    found = looked_ahead(graph, cut_everywhere(graph), costs)
    every = list(every_configuration(graph, costs))
    assert found.latency_s == pytest.approx(min(latency_s for latency_s, _, _ in every))
    assert found.period_s == pytest.approx(min(period_s for _, period_s, _ in every))


def with_few_able(costs, kinds, seed):
    """Let some operators run on some kinds of processor only: the last ones are left out most."""
    rng, last = random.Random(seed), max(kinds)
    for v, row in enumerate(costs.times):
        able = {rng.randint(0, last), *(k for k in range(last) if rng.random() < 0.3)}
        able -= {last} if able != {last} and v != seed % len(costs.times) else set()
        row[:] = [t if kind in able else inf for t, kind in zip(row, kinds, strict=True)]
    return costs


@pytest.mark.parametrize("most", [MOST_REQUESTS, 0])
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_with_operators_that_some_processors_cannot_run_too(seed, kinds, most):
    graph = chain(4) if seed % 2 else tangled(4, seed)
    costs = with_few_able(identical_costs(graph, kinds, seed), kinds, seed)
    merged = MergedUnit(0, 2, Unit((0, 1), (0, 1)))  # often there is no way to run it on several
    parts = replace(cut_everywhere(graph), merged_units=(merged,))
    every = [c for c in every_configuration(graph, costs, kinds) if c[0] < inf]
    options = MapOptions(mapper="auto", time_limit_s=10, resolution=0.0, jobs=1, budget_s=600.0)
    explored = explore(graph, parts, costs, options, most_requests=most)
    rows = [(row.evaluated.latency_s, row.evaluated.period_s) for row in explored.found]
    for figure in (0, 1):
        least = min(configuration[figure] for configuration in every)
        assert min(row[figure] for row in rows) == pytest.approx(least)
    relaxed = Relaxed(graph, parts, costs, identical_processors(graph, costs))
    for ask in relaxed.cells_of_pipelines():
        assert all(row[ask.column] < inf for row in relaxed.request(ask).problem.time_s)


@pytest.mark.parametrize("resolution", [0.0, 10.0])
@pytest.mark.parametrize("answers", range(0, 60, 3))
def test_wherever_time_ends_the_bounds_hold(answers, resolution):
    graph = chain(4)
    costs = identical_costs(graph, (0, 1, 1, 1), 7)
    relaxed = Relaxed(graph, partition(graph), costs, identical_processors(graph, costs))
    found, deadline = PromisingRequests(relaxed, Periods(relaxed), resolution), Deadline()
    given = {}

    def some(questions):
        for question in questions:
            if len(given) == answers:
                deadline.interrupted = True
            elif question not in given:
                given[question] = answer_of(question, METHOD)
        return {question: given[question] for question in questions if question in given}

    found.solve(some, deadline)
    every = list(every_chain_configuration(graph, costs))
    assert 0 < found.latency_s <= min(latency_s for latency_s, _, _ in every) * (1 + 1e-9)
    assert 0 < found.period_s <= min(period_s for _, period_s, _ in every) * (1 + 1e-9)
    assert found.requests


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_stages_keep_to_a_limit_from_the_least_period_on_and_below_it_there_are_none(seed, kinds):
    graph = tangled(4, seed)  # a single operator takes what its bound says
    parts, costs = cut_everywhere(graph), identical_costs(graph, kinds, seed)
    periods = Periods(Relaxed(graph, parts, costs, identical_processors(graph, costs)))
    least_s = min(period_s for _, period_s, _ in every_configuration(graph, costs))
    assert periods.within(least_s * (1 - 1e-6), Deadline()) is None
    for share in (1 + 1e-6, 1.2, 10.0):
        stages, longest_s = periods.within(least_s * share, Deadline())
        assert least_s * (1 - 1e-9) <= longest_s <= least_s * share
        stretches = [stretch for stretch, _ in stages]
        assert [each.begin for each in stretches] == [0, *(each.end for each in stretches[:-1])]
        assert stretches[-1].end == 4
        used = [each.processors for each in stretches]
        assert sum(used) == reduce(or_, used)  # none is used twice
        assert [ask.unit for _, asked in stages for ask in asked] == [0, 1, 2, 3]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_promising_problems_alone_give_the_best_that_brute_force_finds(seed, kinds):
    graph = chain(4)
    costs = identical_costs(graph, kinds, seed)
    options = MapOptions(
        mapper="auto", time_limit_s=10, objectives="latency-throughput", resolution=0.0, jobs=1
    )
    explored = explore(graph, partition(graph), costs, options, most_requests=0)
    rows = [(each.evaluated.latency_s, each.evaluated.period_s) for each in explored.found]
    every = list(every_chain_configuration(graph, costs, kinds))
    for figure in (0, 1):
        assert min(row[figure] for row in rows) == pytest.approx(min(c[figure] for c in every))
    assert explored.unfinished.latency_s == pytest.approx(min(c[0] for c in every))
    assert explored.unfinished.period_s == pytest.approx(min(c[1] for c in every))


def mapped(model, **given):
    return parapipe.map(
        model,
        "amlogic-a311d",
        objectives="latency-throughput",
        cache=False,
        jobs=1,
        interleave="none",
        **given,
    )


def test_a_front_of_promising_problems_alone_says_so_and_comes_near_to_the_whole_one():
    graph = parapipe.load_model("zoo:squeezenet")
    costs = build_cost_table(graph, parapipe.load_platform("amlogic-a311d"))
    parts = finest_partition(graph, [costs])
    options = MapOptions(objectives="latency-throughput", jobs=1)
    whole, few = (
        explore(graph, parts, costs, options, most_requests=most) for most in (MOST_REQUESTS, 0)
    )
    assert whole.unfinished is None
    undone = few.unfinished
    assert "too many subgraphs" in undone.reasons[0]
    for figure in ("latency_s", "period_s"):
        least_s, found_s = (
            min(getattr(row.evaluated, figure) for row in each.found) for each in (whole, few)
        )
        assert getattr(undone, figure) <= least_s * (1 + 1e-6)
        assert least_s * (1 - 1e-6) <= found_s <= least_s * 1.02


def test_a_budget_that_is_not_used_up_changes_nothing():
    fronts = [mapped("zoo:squeezenet", **given) for given in ({}, {"budget_s": 600.0})]
    assert fronts[1].document.unfinished is None
    rows = [[(r.latency_s, r.period_s, r.energy_j, r.stages) for r in front] for front in fronts]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("seed", range(4))
def test_with_several_cost_tables_all_problems_are_looked_at(seed):
    graph = chain(3)
    tables = [random_costs(graph, 3, seed + 100 * i) for i in range(2)]
    object.__setattr__(tables[1], "transfers", tables[0].transfers)
    options = MapOptions(mapper="coarse", time_limit_s=10, resolution=0.0, jobs=1)
    found = explore(graph, partition(graph), tables[0], options, others=tables[1:])
    assert found.unfinished is None


@pytest.mark.parametrize("seed", range(4))
def test_a_first_front_is_there_before_the_bounds_are_close(seed):
    graph, known = tangled(5, seed), []
    parts, costs = cut_everywhere(graph), random_costs(graph, 3, seed)
    options = MapOptions(mapper="coarse", time_limit_s=10, resolution=0.0, jobs=1)
    found = explore(graph, parts, costs, options, progress=known.append, most_requests=0)
    solving = [told for told in known if told.phase == "mapping"]
    assert solving[-1].best_latency_s > 0
    least_s = min(each.evaluated.latency_s for each in found.found)
    assert least_s <= solving[-1].best_latency_s * (1 + 1e-9)


@pytest.mark.parametrize("kinds", [(0, 1, 2), (0, 1, 1, 1)])
@pytest.mark.parametrize("seed", range(8))
def test_where_places_are_left_out_there_is_a_front_and_its_bounds_hold(seed, kinds, monkeypatch):
    monkeypatch.setattr(relaxed_module, "MOST_CHOICES", 2)
    memory = MemoryLimit(1.0, used=lambda: 0.0)  # there is room for no place, and none is taken
    graph = tangled(5 if len(kinds) == 3 else 4, seed)
    costs, parts = identical_costs(graph, kinds, seed), cut_everywhere(graph)
    if seed % 2:
        costs = with_few_able(costs, kinds, seed)
    options = MapOptions(mapper="auto", time_limit_s=10, resolution=0.0, jobs=1)
    explored = explore(
        graph, parts, costs, options, most_requests=0, deadline=Deadline(memory=memory)
    )
    live = max(map(len, parts.boundaries))
    relaxed = Relaxed(graph, parts, costs, (), limited=True, most_cells=most_cells(memory))
    assert max(map(len, relaxed.places)) <= len(kinds) ** 2
    assert relaxed.left_out or live < 3 or seed % 2
    undone = explored.unfinished
    assert any("seldom change" in each for each in undone.reasons) == relaxed.left_out
    assert any("for the limit of memory" in each for each in undone.reasons) == relaxed.left_out
    every = [c for c in every_configuration(graph, costs, kinds) if c[0] < inf]
    for figure, bound_s in ((0, undone.latency_s), (1, undone.period_s)):
        least_s = min(configuration[figure] for configuration in every)
        assert 0 < bound_s <= least_s * (1 + 1e-9)
        rows = [(row.evaluated.latency_s, row.evaluated.period_s) for row in explored.found]
        assert min(row[figure] for row in rows) >= least_s * (1 - 1e-9)


@pytest.mark.parametrize("exits", [2, 4, 5])
def test_bounds_of_very_many_places_take_a_limited_number_of_cells(exits):
    """Each of many operators is read once more, at the end: all are live up to there."""
    graph = tangled(3 * exits, 0)
    operators = tuple(
        replace(each, inputs=("x",) if v < exits else tuple(f"t{u}" for u in range(v)))
        for v, each in enumerate(graph.operators)
    )
    graph = replace(graph, operators=operators)
    units = (Unit(tuple(range(exits)), (tuple((v,) for v in range(exits)),)),)
    units += tuple(Unit((v,), (v,)) for v in range(exits, 3 * exits))
    live = [sorted(f"t{v}" for v in range(n)) for n in range(exits, 3 * exits)]
    parts = Partition((Subgraph(units, 1, 1),), ((), *map(tuple, live), ()))
    most = 1 << 18
    relaxed = Relaxed(graph, parts, random_costs(graph, 6, 0), (), limited=True, most_cells=most)
    cells = [step.time_s.size for some in relaxed.steps for step in some]
    assert max(cells) <= max(most / relaxed.units, 36 * 64 * (6 + 6**2))
    assert cells[0] <= 64 * (6 + relaxed_module.MOST_CHOICES)
    assert relaxed.left_out
    assert relaxed.least_latency(relaxed.sets)[0] < inf


@pytest.mark.parametrize("units", [5, 100])
def test_stages_of_one_processor_each_ask_for_few_problems(units):
    graph = chain(units)
    relaxed = Relaxed(graph, partition(graph), random_costs(graph, 4, 0), ())
    asked = relaxed.cells_of_pipelines()
    # 4 processors from 4 places where a stage may begin, from 1 at first, and 4 in between
    begins = min(units, 12)
    assert len(asked) == 4 + 16 * (begins - 1) + 4 * (units - begins)
    assert all(ask.processors.bit_count() == 1 for ask in asked)
