"""Operators that a compiler runs at one go are one operator."""

from __future__ import annotations

from onnx import ModelProto, helper

from parapipe.graph.joined import join_groups
from parapipe.graph.onnx_import import import_checked
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from tests.cases.compiler_models import conv, model, weights


def imported(proto: ModelProto) -> OperatorGraph:
    source = ModelSource("small", "")
    return import_checked(proto, source=source, granularity="fused", dims=None, shapes=None)


def silu(*, outputs=("y",)) -> OperatorGraph:
    """Conv, Sigmoid and Mul, then a Relu; `outputs` leave the graph."""
    nodes = [
        conv("x", "c"),
        helper.make_node("Sigmoid", ["c"], ["s"], "sigmoid"),
        helper.make_node("Mul", ["c", "s"], ["m"], "mul"),
        helper.make_node("MaxPool", ["m"], ["y"], "pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ]
    values = [(name, 1, (1, 8, 16, 16)) for name in outputs]
    return imported(model(nodes, outputs=values, constants=[weights("w", 8, 8, 3, 3)]))


def test_a_group_becomes_one_operator_with_parts() -> None:
    graph = join_groups(silu(), [(0, 1, 2)])
    assert [operator.type for operator in graph.operators] == ["Conv", "MaxPool"]
    joined = graph.operators[0]
    assert joined.id == "m"
    assert joined.members == ("conv", "sigmoid", "mul")
    assert [part.type for part in joined.parts] == ["Conv", "Sigmoid", "Mul"]
    assert graph.reads(joined) == ("x",)


def test_a_group_is_left_alone_if_others_read_within_it() -> None:
    graph = silu(outputs=("y", "s"))
    assert join_groups(graph, [(0, 1, 2)]) is graph
    graph = silu()
    assert join_groups(graph, [(0, 1)]) is graph  # Mul reads the Conv as well
    assert join_groups(graph, [(0,)]) is graph


def test_an_operator_is_in_the_first_group_that_can_be_joined() -> None:
    graph = join_groups(silu(), [(0, 1), (1, 2), (0, 1, 2), (2, 3)])
    assert [operator.id for operator in graph.operators] == ["c", "m", "y"]


def test_what_another_operator_makes_may_join_in_the_middle() -> None:
    nodes = [
        conv("x", "c"),
        helper.make_node("MaxPool", ["x"], ["p"], "pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "p"], ["y"], "add"),
    ]
    graph = imported(model(nodes, constants=[weights("w", 8, 8, 3, 3)]))
    joined = join_groups(graph, [(0, 2)])
    assert [operator.id for operator in joined.operators] == ["p", "y"]
    assert joined.reads(joined.operators[1]) == ("x", "p")
