"""Networks that repeat a block: equal mapping problems are solved once, answers are reused."""

from dataclasses import replace

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.partition import partition
from parapipe.platform.load import load_platform
from parapipe.problems.method import Method, Question
from parapipe.problems.problems import requests
from parapipe.problems.solve import Solver, solve
from parapipe.solvers.verify import verify
from parapipe.zoo.inception import inception_resnet_v2
from parapipe.zoo.transformer import gpt
from tests.search.test_solve import Here


def asked(model):
    """Return every request for a model on the A311D."""
    graph = import_proto(model, source=ModelSource("net", ""))
    costs = build_cost_table(graph, load_platform("amlogic-a311d"))
    return list(requests(graph, partition(graph), costs))


@pytest.fixture(scope="module")
def six_layers():
    return asked(gpt(6, weightless=True))


def test_forty_blocks_of_three_kinds_need_a_quarter_of_the_problems_solved() -> None:
    problems = [request.problem for request in asked(inception_resnet_v2(weightless=True))]
    assert len(set(problems)) < len(problems) / 4


def test_a_decoder_of_six_layers_asks_for_the_problems_of_one_of_three(six_layers) -> None:
    three = asked(gpt(3, weightless=True))
    assert (len(three), len(six_layers)) == (222, 420)
    assert {each.problem for each in three} == {each.problem for each in six_layers}
    assert len({each.problem for each in three}) == 90


def test_the_answer_to_an_equal_problem_holds_for_each_layer_that_asks_it(six_layers) -> None:
    here = Here()
    method = Method("heft_cpop", 60.0, 1, deterministic=False)
    questions = [Question(each.problem) for each in six_layers]
    answers = solve(questions, Solver(method, executor=here)).answers
    solved = [args[0] for _, args, _ in here.calls]
    assert len(solved) == len(set(solved)) == 66  # of 90, 24 leave no choice
    layers = {}
    for each in six_layers:
        schedule = answers[Question(each.problem)].schedules[0]
        verify(each.problem, schedule)
        assert len(each.operators) == len(schedule.processor)
        layers.setdefault(each.problem, set()).add(each.operators)
    assert max(map(len, layers.values())) == 6


def test_a_problem_with_another_time_is_another_one(six_layers) -> None:
    problem = six_layers[0].problem
    (first, *others), *rows = problem.time_s
    longer = replace(problem, time_s=((first * 2, *others), *rows))
    assert Question(longer) != Question(problem)
