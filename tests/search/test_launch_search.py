"""Fronts of processors that capture graphs, beside all mappings of tiny networks."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import onnx
import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.evaluate import settle
from parapipe.mappings.launches import launch_times_s
from parapipe.plan.verify import verify_plan
from parapipe.search.loaded_costs import ExpectedLoad, is_additive
from tests.cases.co_runs import with_law
from tests.cases.every_co_run import every_mapping, exact_front, tiny_case
from tests.cases.hand_built import GraphBuilder, platform, processor
from tests.cases.random_fronts import random_model, random_platform
from tests.search.test_co_run_search import STAGES, TURNS, check_bounds, found_by, worse_by

LAUNCHES_S = (None, 1e-3, 2e-3, 3e-3)
THREE = platform(*(processor(name, cores=[p]) for p, name in enumerate("abc")))


def capturing_case(seed, operators, names, *, law=False):
    """Return a tiny network and costs, where starting a graph takes as long as an operator may."""
    graph, costs = tiny_case(seed, operators, names)
    rng = random.Random(seed)
    launches_s = tuple(rng.choice(LAUNCHES_S) for _ in names[1:])
    costs = costs if law else with_law(costs, None)
    return graph, replace(costs, graph_launch_s=(1e-3, *launches_s))


def chain(length):
    builder, last = GraphBuilder(x=(1, 4, 8, 8)), "x"
    for _ in range(length):
        last = builder.conv(last, 4)
    return builder.graph()


def check_front(graph, costs, searches=STAGES):
    found = found_by(graph, costs, searches)
    exact = exact_front(graph, costs)
    if searches is TURNS:
        exact += exact_front(graph, costs, interleaved=True)
    assert worse_by(found, exact) < 1e-8
    check_bounds(found, exact)
    for each in found:
        mapping, evaluated = settle(each.mapping, graph, costs)
        assert mapping == each.mapping
        assert evaluated == each.evaluated
        expected_s = sum(launch_times_s(mapping, graph, costs).values())
        assert (evaluated.launch_s or 0.0) == pytest.approx(expected_s)


def test_a_front_is_that_of_all_mappings():
    check_front(*capturing_case(2, 4, "abc"))


def test_where_processors_slow_each_other_down_too():
    check_front(*capturing_case(3, 3, "ab", law=True))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_four_operators_on_three_processors(seed):
    check_front(*capturing_case(seed, 4, "abc"))
    check_front(*capturing_case(seed, 3, "ab"), TURNS)
    check_front(*capturing_case(seed, 3, "ab", law=True))


def test_expected_launches_of_a_chain_are_those_that_it_has():
    graph, costs = chain(4), capturing_case(1, 4, "abc")[1]
    costs = replace(costs, transfers=build_cost_table(graph, THREE, profiles=()).transfers)
    expected = ExpectedLoad.of(costs, None, (0, 1, 2)).table()
    assert is_additive(expected)
    assert not is_additive(costs)
    every = [*every_mapping(graph, costs)]
    assert len(every) > 100
    for mapping in every:
        loaded = mapping_of(graph, None, expected, assignment_of(mapping))
        for stage, other in zip(mapping.stages, loaded.stages, strict=True):
            assert other.time_s == pytest.approx(stage.time_s)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_random_fronts_are_plans_that_keep_all_rules(seed, tmp_path):
    rng = random.Random(seed)
    model, file = tmp_path / "m.onnx", tmp_path / "p.yaml"
    onnx.save(random_model(rng, 6), model)
    board = json.loads(random_platform(rng))
    for each in board["processors"]:
        each["launch"]["graph_s"] = 3e-4
    file.write_text(json.dumps(board), encoding="utf-8")
    front = parapipe.map(model, file, interleave="auto", split="auto", draws=20, jobs=1)
    for each in front:
        plan = each.plan()
        verify_plan(plan)
        assert any(p.graph_launch_s == 3e-4 for p in plan.processors)
