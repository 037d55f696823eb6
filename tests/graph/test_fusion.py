"""Activations joined to the operator before them."""

import numpy as np
import pytest

from parapipe.graph.rewrites import fuse
from tests.cases.small_models import floats, graph_of, types_of

IMAGE = "float[1,3,8,8]"
CONV = {"w": floats(3, 3, 1, 1)}
BOUNDS = {"low": np.float32(0), "high": np.float32(6)}


def fused(body, *, source=IMAGE, result=IMAGE, **arrays):
    return graph_of(f"g ({source} x) => ({result} y) {{ {body} }}", granularity="fused", **arrays)


@pytest.mark.parametrize(
    "activation",
    ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu"],
)
def test_an_activation_joins_its_convolution(activation):
    graph = fused(f"a = Conv(x, w) y = {activation}(a)", **CONV)
    (operator,) = graph.operators
    assert [part.type for part in operator.parts] == ["Conv", activation]
    assert (operator.id, operator.name, operator.type) == ("y", "a", "Conv")
    assert (operator.inputs, operator.outputs) == (("x", "w"), ("y",))
    assert operator.members == ("a", "y")
    assert "a" in graph.tensors
    assert graph.granularity == "fused"


def test_the_work_of_a_fused_operator_is_that_of_its_parts():
    (operator,) = fused("a = Conv(x, w) y = Relu(a)", **CONV).operators
    conv, relu = operator.parts
    assert operator.work.macs == conv.work.macs == 3 * 3 * 64
    assert operator.work.read_bytes == conv.work.read_bytes + relu.work.read_bytes
    assert operator.work.written_bytes == 2 * 3 * 64 * 4
    assert operator.singles == (conv, relu)


def test_a_clip_joins_with_its_bounds():
    (operator,) = fused("a = Conv(x, w) y = Clip(a, low, high)", **CONV, **BOUNDS).operators
    assert operator.inputs == ("x", "w", "low", "high")
    assert operator.parts[1].attributes == {"max": 6.0, "min": 0.0}


@pytest.mark.parametrize(
    ("before", "arrays"),
    [
        ("Gemm(x, w)", {"w": floats(8, 8)}),
        ("MatMul(x, w)", {"w": floats(8, 8)}),
        ("Add(x, x)", {}),
        ("Sum(x, k)", {"k": floats(8)}),
        ("BatchNormalization(x, s, s, s, s)", {"s": floats(8)}),
    ],
)
def test_an_activation_joins_what_runtimes_fuse_it_into(before, arrays):
    graph = fused(f"a = {before} y = Relu(a)", source="float[4,8]", result="float[4,8]", **arrays)
    assert len(graph.operators) == 1


@pytest.mark.parametrize(
    "before",
    ["ConvTranspose(x, w)", "Mul(x, x)", "MaxPool<kernel_shape = [1, 1]>(x)", "MatMul(x, x)"],
)
def test_an_activation_does_not_join_others(before):
    arrays = CONV if "w" in before else {}
    assert len(fused(f"a = {before} y = Relu(a)", **arrays).operators) == 2


def test_only_one_activation_joins():
    graph = fused("a = Conv(x, w) b = Relu(a) y = Sigmoid(b)", **CONV)
    assert [len(operator.parts) for operator in graph.operators] == [2, 0]


def test_no_activation_joins_where_another_operator_reads_the_tensor_between():
    graph = fused("a = Conv(x, w) b = Relu(a) y = Add(a, b)", **CONV)
    assert types_of(graph) == ["Conv", "Relu", "Add"]


def test_no_activation_joins_a_graph_output():
    text = f"g ({IMAGE} x) => ({IMAGE} a, {IMAGE} y) {{ a = Conv(x, w) y = Relu(a) }}"
    assert types_of(graph_of(text, granularity="fused", **CONV)) == ["Conv", "Relu"]


def test_a_matmul_with_weights_takes_its_bias_and_then_an_activation():
    weights = {"w": floats(8, 5), "b": floats(5)}
    graph = fused(
        "a = MatMul(x, w) c = Add(b, a) y = Relu(c)",
        source="float[2,3,8]",
        result="float[2,3,5]",
        **weights,
    )
    (operator,) = graph.operators
    assert [part.type for part in operator.parts] == ["MatMul", "Add", "Relu"]
    assert operator.inputs == ("x", "w", "b")


def test_a_constant_that_differs_by_row_is_no_bias():
    weights = {"w": floats(8, 5), "b": floats(3, 5)}
    graph = fused(
        "a = MatMul(x, w) y = Add(a, b)", source="float[2,3,8]", result="float[2,3,5]", **weights
    )
    assert types_of(graph) == ["MatMul", "Add"]


def test_what_was_folded_is_kept_in_the_part_and_in_the_whole():
    norm = {name: floats(3) for name in ("s", "b", "m", "v")}
    body = "a = Conv(x, w) n = BatchNormalization(a, s, b, m, v) y = Relu(n)"
    (operator,) = fused(body, **CONV, **norm).operators
    assert operator.members == ("a", "n", "y")
    assert operator.folded == operator.parts[0].folded
    assert [folded.type for folded in operator.folded] == ["BatchNormalization"]


def test_fusing_a_fused_graph_changes_nothing():
    graph = fused("a = Conv(x, w) y = Relu(a)", **CONV)
    assert fuse(graph) is graph


def test_fusing_keeps_the_onnx_nodes_and_the_macs():
    body = "a = Conv(x, w) b = Relu(a) c = Conv(b, w) d = Add(c, b) e = Clip(d) y = Exp(e)"
    single = graph_of(f"g ({IMAGE} x) => ({IMAGE} y) {{ {body} }}", **CONV)
    joined = fuse(single)
    parts = [part for operator in joined.operators for part in operator.singles]
    assert parts == list(single.operators)
    assert len(joined.operators) == 4
    assert joined.tensors == single.tensors
