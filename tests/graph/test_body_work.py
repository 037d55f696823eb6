"""If, Loop and Scan with constant trips: what their bodies multiply and move, by hand."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from parapipe.graph.onnx_import import import_checked
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.work import operator_class
from tests.cases.small_models import floats

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
WEIGHTS = 4 * 6 * 7  # bytes of a matrix of 6 x 7


def value(name, *shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def imported(nodes, inputs, outputs, stored):
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    source = ModelSource("test.onnx", "")
    return import_checked(model, source=source, granularity="onnx")


def stored(**arrays):
    return [numpy_helper.from_array(np.asarray(each), name) for name, each in arrays.items()]


def loop(*, trips=5, goes_on=True):
    """A Loop whose body multiplies a state of 3 x 6 by weights of 6 x 7, then of 7 x 6."""
    next_cond = ["cond_in"] if goes_on is None else []
    nodes = [
        helper.make_node("MatMul", ["s", "a"], ["t"]),
        helper.make_node("MatMul", ["t", "b"], ["s_out"]),
        helper.make_node("Identity", ["more" if not next_cond else "cond_in"], ["cond_out"]),
    ]
    body = helper.make_graph(
        nodes, "body",
        [value("i", dtype=INT64), value("cond_in", dtype=BOOL), value("s", 3, 6)],
        [value("cond_out", dtype=BOOL), value("s_out", 3, 6)],
        stored(more=np.array(True)) if goes_on else [],
    )  # fmt: skip
    node = helper.make_node("Loop", ["m", "go", "x"], ["y"], body=body)
    rng_free = {"a": floats(6, 7), "b": floats(7, 6), "m": np.array(trips), "go": np.array(True)}
    return imported([node], [value("x", 3, 6)], [value("y", 3, 6)], stored(**rng_free))


@pytest.mark.parametrize("trips", [1, 5])
def test_a_loop_runs_its_body_as_often_as_it_says(trips):
    [operator] = loop(trips=trips).operators
    assert operator.work.macs == trips * 2 * 3 * 6 * 7
    reads = 4 * (3 * 6) + WEIGHTS + 4 * (3 * 7) + WEIGHTS
    assert operator.work.read_bytes == trips * reads
    assert operator.work.written_bytes == trips * 4 * (3 * 7 + 3 * 6)
    assert operator.work.modelled
    assert operator_class(operator, loop(trips=trips)) == "gemm"


def test_a_loop_that_may_stop_before_counts_all_trips_and_says_so():
    graph = loop(goes_on=None)
    [operator] = graph.operators
    assert operator.work.macs == 5 * 2 * 3 * 6 * 7
    assert "may stop before" in operator.work.assumption
    assert any("may stop before" in note for note in graph.notes)


@pytest.mark.parametrize(("axis", "shape"), [(0, (9, 2, 6)), (1, (2, 9, 6))])
def test_a_scan_runs_its_body_for_each_slice(axis, shape):
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["x_t", "a"], ["z"]),
            helper.make_node("Add", ["h", "z"], ["h_out"]),
            helper.make_node("Identity", ["h_out"], ["y_t"]),
        ],
        "body",
        [value("h", 2, 7), value("x_t", 2, 6)],
        [value("h_out", 2, 7), value("y_t", 2, 7)],
    )
    node = helper.make_node(
        "Scan", ["h0", "x"], ["hn", "y"], body=body, num_scan_inputs=1, scan_input_axes=[axis]
    )
    graph = imported(
        [node], [value("h0", 2, 7), value("x", *shape)], [value("hn", 2, 7), value("y", 9, 2, 7)],
        stored(a=floats(6, 7)),
    )  # fmt: skip
    [operator] = graph.operators
    assert operator.work.macs == 9 * 2 * 6 * 7
    product = 4 * 2 * 6 + WEIGHTS
    assert operator.work.read_bytes == 9 * (product + 2 * 4 * 2 * 7)
    assert operator.work.written_bytes == 9 * 2 * 4 * 2 * 7


def branch(name, weights):
    nodes = [helper.make_node("MatMul", ["x", weights], [f"y_{name}"])]
    return helper.make_graph(nodes, name, [], [value(f"y_{name}", 3, 8)])


def test_of_an_if_the_branch_with_more_work_counts():
    more = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "a"], ["t"]),
            helper.make_node("MatMul", ["t", "b"], ["y_more"]),
        ],
        "more", [], [value("y_more", 3, 8)],
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("less", "w"), else_branch=more)
    graph = imported(
        [node], [value("x", 3, 6), value("c", dtype=BOOL)], [value("y", 3, 8)],
        stored(a=floats(6, 7), b=floats(7, 8), w=floats(6, 8)),
    )  # fmt: skip
    [operator] = graph.operators
    assert operator.work.macs == 3 * 6 * 7 + 3 * 7 * 8
    assert "the one with more work" in operator.work.assumption


def test_of_equal_branches_nothing_is_assumed():
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("one", "w"), else_branch=branch("two", "v")
    )
    graph = imported(
        [node], [value("x", 3, 6), value("c", dtype=BOOL)], [value("y", 3, 8)],
        stored(v=floats(6, 8), w=floats(6, 8)),
    )  # fmt: skip
    [operator] = graph.operators
    assert (operator.work.macs, operator.work.assumption) == (3 * 6 * 8, "")


def test_a_loop_within_a_loop_runs_trips_times_trips():
    inner = helper.make_graph(
        [
            helper.make_node("MatMul", ["u", "a"], ["u_out"]),
            helper.make_node("Identity", ["on"], ["inner_cond"]),
        ],
        "inner",
        [value("j", dtype=INT64), value("c_j", dtype=BOOL), value("u", 3, 6)],
        [value("inner_cond", dtype=BOOL), value("u_out", 3, 6)],
    )
    outer = helper.make_graph(
        [
            helper.make_node("Loop", ["three", "on", "s"], ["s_out"], body=inner),
            helper.make_node("Identity", ["on"], ["cond_out"]),
        ],
        "outer",
        [value("i", dtype=INT64), value("c_i", dtype=BOOL), value("s", 3, 6)],
        [value("cond_out", dtype=BOOL), value("s_out", 3, 6)],
    )
    node = helper.make_node("Loop", ["four", "on", "x"], ["y"], body=outer)
    graph = imported(
        [node], [value("x", 3, 6)], [value("y", 3, 6)],
        stored(a=floats(6, 6), three=np.array(3), four=np.array(4), on=np.array(True)),
    )  # fmt: skip
    assert graph.operators[0].work.macs == 3 * 4 * 3 * 6 * 6
