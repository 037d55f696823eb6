"""What cost tables are asked for where all would be too much, or where time is short."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import inf

import pytest

from parapipe.graph.partition import partition
from parapipe.problems.solve import solve_here
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.stages import finest_cuts, stage_incumbents
from parapipe.search.stages.finest_cuts import all_requests
from parapipe.search.stages.problem_order import NOT_BUILT, OtherTables, on_one_processor
from parapipe.solvers.paths import supporting
from tests.cases.pipeline_cases import identical_costs, random_costs
from tests.search.test_anytime import Work
from tests.search.test_live_boundaries import cut_everywhere, tangled

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
    monkeypatch.setattr(finest_cuts, "requests", None)  # they are never built
    few = explore(graph, parts, tables[0], OPTIONS, others=tables[1:], most_requests=0)
    assert whole.unfinished is None
    assert any("operating points" in each for each in few.unfinished.reasons)
    for figure in ("latency_s", "period_s", "energy_j"):
        least = [min(getattr(each.evaluated, figure) for each in found.found)
                 for found in (whole, few)]  # fmt: skip
        assert getattr(few.unfinished, figure) <= least[0] * (1 + 1e-6)
        assert least[0] <= least[1] * (1 + 1e-6)
    alone = explore(graph, parts, tables[0], OPTIONS, most_requests=0)
    fastest = min(few.found, key=lambda each: each.evaluated.latency_s)
    assert fastest.table == 1
    assert fastest.evaluated.latency_s < min(each.evaluated.latency_s for each in alone.found)


def test_no_table_is_asked_for_anything_that_is_not_there_by_the_deadline():
    graph = tangled(5, 0)
    tables = [random_costs(graph, 3, seed) for seed in range(4)]
    others = OtherTables(graph, partition(graph), tables, [()] * 4)
    work = Work()
    every = list(others.requests(Deadline(inf, clock=work)))
    assert all(every)
    built = []
    for most in range(0, work.done + 1, 5):
        asked = list(others.requests(Deadline(most + 0.5, clock=Work())))
        built.append(sum(map(bool, asked)))
        assert asked == every[: built[-1]] + [()] * (4 - built[-1])
    assert built == sorted(built)
    assert set(built) == set(range(5))


@pytest.mark.parametrize("most", [0, 5, 20])
def test_all_requests_are_not_built_past_the_deadline(most):
    graph = tangled(5, 0)
    costs, work = random_costs(graph, 3, 0), Work()
    with pytest.raises(OverError):
        all_requests(graph, partition(graph), costs, Deadline(most + 0.5, clock=work))
    assert work.done == most + 2  # with the looks at its beginning and after its end


def explored_in(budget_s, seed):
    graph = tangled(5, seed)
    costs, options = random_costs(graph, 3, seed), replace(OPTIONS, budget_s=budget_s)
    return explore(graph, cut_everywhere(graph), costs, options)


@pytest.mark.parametrize("seed", range(3))
def test_a_front_from_before_all_requests_are_built_says_so_and_its_bounds_hold(seed):
    whole, early = explored_in(None, seed), explored_in(1e-6, seed)
    assert whole.unfinished is None
    assert NOT_BUILT in early.unfinished.reasons
    for figure in ("latency_s", "period_s"):
        least = min(getattr(each.evaluated, figure) for each in whole.found)
        assert 0 < getattr(early.unfinished, figure) <= least * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_one_that_all_requests_give_which_are_built_where_there_are_no_others(
    seed, monkeypatch
):
    some = explored_in(1e-6, seed)
    monkeypatch.setattr(stage_incumbents, "requests_of_pipelines", lambda _: ())
    every = explored_in(1e-6, seed)
    assert NOT_BUILT not in every.unfinished.reasons
    figures = [[(e.evaluated.latency_s, e.evaluated.period_s) for e in found.found]
               for found in (some, every)]  # fmt: skip
    assert figures[0] == figures[1]
    assert len(figures[0]) > 1


@pytest.mark.parametrize("seed", range(6))
def test_a_first_front_asks_for_lists_on_one_processor_alone(seed, monkeypatch):
    graph = tangled(5, seed)
    costs, asked = random_costs(graph, 3, seed), []

    def listed(questions, *given):
        questions = list(questions)
        found = solve_here(questions, *given)
        asked.extend(found)
        return found

    monkeypatch.setattr(stage_incumbents, "solve_here", listed)
    options = replace(OPTIONS, budget_s=1e-6)
    found = explore(graph, partition(graph), costs, options)
    assert found.found
    processors = [{p for own in supporting(each.problem) for p in own} for each in asked]
    assert all(len(each) == 1 for each in processors)
    every = all_requests(graph, partition(graph), costs)
    assert len(processors) <= len(on_one_processor(every))
