"""Simulated strategies on processors that capture graphs: each task is started as a whole."""

from __future__ import annotations

import pytest

from parapipe.mappings.evaluate import settle
from parapipe.plan.build import build_plan
from parapipe.simulate.priced_work import price_operators
from parapipe.simulate.strategies import price_plan
from parapipe.strategies.cut import operators_of
from parapipe.strategies.order_of_plan import Follow, ReadyPool
from parapipe.strategies.streams import Streams
from tests.mappings.test_launches import BOARD, GRAPH_S, chain, launched, placed


def planned(stages, length=4):
    graph = chain(length)
    _, captured = launched(graph)
    mapping, _ = settle(placed(graph, captured, stages), graph, captured)
    return captured, build_plan(graph, BOARD, captured, mapping)


def test_each_task_is_a_graph_whoever_runs_it():
    captured, plan = planned([[(0, 1), (1, 0), (2, 1), (3, 1)]])
    work = price_plan(plan, price_operators(plan, BOARD), ReadyPool).work
    cpu, gpu = map(work.processors.index, ("big", "gpu"))
    for v, times_s in enumerate(work.time_s):
        assert times_s[gpu] == pytest.approx(captured.time_s(v, 1) + GRAPH_S, abs=1e-12)
        assert times_s[cpu] == pytest.approx(captured.time_s(v, 0), abs=1e-12)


def test_a_cluster_is_one_graph():
    class Clusters(Streams):
        most = 10

    captured, plan = planned([[(0, 1), (1, 1), (2, 1), (3, 1)]])
    work = price_plan(plan, price_operators(plan, BOARD), Clusters).work
    gpu = work.processors.index("gpu")
    every_s = sum(captured.time_s(v, 1) for v in range(4))
    assert [row[gpu] for row in work.time_s] == [pytest.approx(every_s + GRAPH_S, abs=1e-12)]


def test_who_follows_the_plan_has_its_graphs():
    captured, plan = planned([[(0, 1), (1, 0), (2, 1), (3, 1)]])
    assert Follow.follows_plan
    work = price_plan(plan, price_operators(plan, BOARD), Follow).work
    gpu = work.processors.index("gpu")
    own_s = [row[gpu] for row in work.time_s]
    assert own_s[2] == pytest.approx(captured.time_s(2, 1) + GRAPH_S, abs=1e-12)
    assert own_s[3] == pytest.approx(captured.time_s(3, 1), abs=1e-12)


def test_what_clusters_are_cut_by_has_no_launch_in_it():
    # equal operators are as many clusters, though the first one starts the plan's graph
    captured, plan = planned([[(0, 1), (1, 1), (2, 1), (3, 1)]])
    times_s = [each.time_s for each in operators_of(plan)]
    assert times_s == pytest.approx([captured.time_s(v, 1) for v in range(4)], abs=1e-12)
