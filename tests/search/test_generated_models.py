"""Models of thousands of operators: what is done before the search for stages."""

from __future__ import annotations

from math import inf

import parapipe
from benchmarks.generated import FAMILIES, fan
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph, Tensor, Work
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse
from parapipe.problems.method import Method, Question
from parapipe.problems.problems import requests
from parapipe.problems.solve import Solver, solve
from parapipe.solvers.registry import mapper
from parapipe.solvers.verify import verify

KINDS = ("Relu", "Sigmoid", "Tanh")


def imported(model):
    return fuse(import_proto(model, source=ModelSource("generated", ""), granularity="onnx"))


def chain(operators):
    """Activations one behind the other."""
    made = tuple(
        Operator(f"t{v}", f"op{v}", "", KINDS[v % 3], {}, (f"t{v - 1}",), (f"t{v}",),
                 Work(0, 4096, 4096), (f"op{v}",))
        for v in range(operators)
    )  # fmt: skip
    tensors = {f"t{v}": Tensor(f"t{v}", (1, 1024), "float32") for v in range(-1, operators)}
    return OperatorGraph(
        ModelSource("chain", ""), "onnx", made, tensors, {}, ("t-1",), (f"t{operators - 1}",)
    )


def asked(graph):
    """All requests of a model on the A311D, and the number of its operators and units."""
    parts = partition(graph)
    costs = build_cost_table(graph, parapipe.load_platform("amlogic-a311d"))
    return list(requests(graph, parts, costs)), len(graph.operators), len(parts.units)


def test_a_chain_of_two_thousand_operators_needs_no_mapper() -> None:
    found, operators, units = asked(chain(2000))
    assert operators == units == 2000
    assert len(found) == 3 + 9 * 1999  # three places of each, from three places of its input
    questions = [Question(request.problem) for request in found]
    answers = solve(questions, Solver(Method("no mapper at all", 60.0, 0))).answers
    assert len(answers) < 100  # three operators, over and over
    for question, answer in answers.items():
        verify(question.problem, answer.schedules[0])
        assert answer.schedules[0].certificate.proven


def test_equal_blocks_share_their_problems() -> None:
    for family in ("inception-like", "transformer-like"):
        few, _, units = asked(imported(FAMILIES[family](100)))
        many, _, more_units = asked(imported(FAMILIES[family](400)))
        assert more_units > 2 * units
        built = [len({id(request.problem) for request in each}) for each in (few, many)]
        assert built[1] <= 1.1 * built[0]


def test_a_fan_of_a_thousand_branches_gets_a_schedule_near_its_bound() -> None:
    found, operators, units = asked(imported(fan(1000)))
    assert (operators, units) == (2002, 2)
    problem = next(
        request.problem
        for request in found
        if request.problem.operators > 1
        and all(time_s < inf for time_s in request.problem.time_s[0])
    )
    schedule = mapper("auto")(problem, time_limit_s=60, seed=0)
    assert schedule.used == {0, 1, 2}
    assert schedule.certificate.gap < 0.05
