from __future__ import annotations

import pytest

from parapipe.api.load import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.problems.problems import whole_problem


@pytest.mark.parametrize("name", ["googlenet", "squeezenet"])
def test_every_tensor_that_is_read_goes_from_its_maker_to_its_readers(name) -> None:
    graph = load_model(f"zoo:{name}")
    platform = load_platform("amlogic-a311d")
    costs = build_cost_table(graph, platform)
    problem = whole_problem(graph, costs)
    assert problem.operators == len(graph.operators)
    assert problem.time_s[3] == tuple(costs.time_s(3, p) for p in range(3))
    edges = {(flow.producer, v) for flow in problem.flows for v in flow.consumers}
    assert edges == {(u, v) for v in range(problem.operators) for u in graph.predecessors(v)}
    # synchronisation is part of each transfer
    moved = {t for flow in problem.flows for row in flow.transfer_s for t in row if t}
    assert min(moved) > min(link.overhead_s for link in platform.link_of.values()) > 0
