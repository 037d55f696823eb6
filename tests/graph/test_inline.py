"""Functions of a model's own: replaced by what they stand for, unless that would never end."""

import pytest
from onnx import helper

from parapipe.errors import ModelError
from parapipe.graph.order import MOST_OPERATORS
from tests.cases.small_models import imported, types_of, value

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]


def calling(*bodies):
    """Return a model that calls f0; each body is the list of operators in a chain of a function."""
    functions = [
        helper.make_function("own", f"f{number}", ["in"], ["out"], chain(body, "in", "out"), OPSETS)
        for number, body in enumerate(bodies)
    ]
    graph = helper.make_graph(
        chain(["f0"], "x", "y"), "g", [value("x", [1, 4])], [value("y", [1, 4])]
    )
    return helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=8)


def chain(operators, source, target):
    names = [source, *(f"t{number}" for number in range(len(operators) - 1)), target]
    return [
        helper.make_node(each, [names[at]], [names[at + 1]], domain="own" if each[0] == "f" else "")
        for at, each in enumerate(operators)
    ]


def doubled(levels, *, first=0):
    """Functions of which each calls the next one twice: 2 ** levels operators."""
    return [*([f"f{first + level + 1}"] * 2 for level in range(levels)), ["Relu"]]


def test_functions_are_replaced_by_their_operators():
    graph = imported(calling(["f1", "Relu"], ["Exp", "Neg"]))
    assert types_of(graph) == ["Exp", "Neg", "Relu"]


def test_nested_functions_come_to_all_their_operators():
    assert len(imported(calling(*doubled(6))).operators) == 64


def test_functions_that_explode_are_refused_before_they_do():
    with pytest.raises(ModelError, match=f"come to more than {MOST_OPERATORS} operators"):
        imported(calling(*doubled(60)))


def test_operators_in_branches_count_as_well():
    inner = helper.make_graph(
        [helper.make_node("f1", ["in"], ["b"], domain="own")], "t", [], [value("b", None)]
    )
    model = calling(["Relu"], *doubled(40, first=1))
    model.functions[0].node[0].CopyFrom(
        helper.make_node("If", ["in"], ["out"], then_branch=inner, else_branch=inner)
    )
    with pytest.raises(ModelError, match="come to more than"):
        imported(model)


def test_a_function_that_calls_itself_is_refused():
    with pytest.raises(ModelError, match="'f0' calls itself"):
        imported(calling(["f1"], ["f0"]))
