"""Batch-norm, scales and biases that vanish into the operator before them."""

import numpy as np
import pytest

from tests.cases.small_models import floats, graph_of, types_of

NORM = {name: floats(8) for name in ("s", "b", "m", "v")}
WEIGHTS = {"w": floats(8, 3, 3, 3), **NORM}
IMAGE = "float[1,3,8,8]"


def test_batch_norm_vanishes_into_its_convolution():
    text = f"""g ({IMAGE} x) => (float[1,8,6,6] y) {{
        a = Conv(x, w) n = BatchNormalization(a, s, b, m, v) y = Relu(n)
    }}"""
    graph = graph_of(text, **WEIGHTS)
    assert types_of(graph) == ["Conv", "Relu"]
    conv = graph.operators[0]
    assert (conv.id, conv.outputs, conv.members) == ("n", ("n",), ("a", "n"))
    assert [folded.type for folded in conv.folded] == ["BatchNormalization"]
    assert conv.folded[0].inputs == ("a", "s", "b", "m", "v")
    assert set(graph.tensors) == {"x", "a", "n", "y"}
    assert set(graph.constants) == set(WEIGHTS)
    assert conv.work.macs == 8 * 6 * 6 * 27
    assert conv.folded[0].work.macs == 0


@pytest.mark.parametrize(
    ("product", "arrays"),
    [
        ("ConvTranspose(x, w)", {"w": floats(3, 8, 3, 3)}),
        ("Conv(x, w, bias)", {"w": floats(8, 3, 3, 3), "bias": floats(8)}),
        ("Conv<group = 3>(x, w)", {"w": floats(3, 1, 3, 3)}),
    ],
)
def test_batch_norm_vanishes_into_every_kind_of_convolution(product, arrays):
    channels = 3 if "group" in product else 8
    norm = {name: floats(channels) for name in NORM}
    text = f"""g ({IMAGE} x) => (float[?] y) {{
        a = {product} y = BatchNormalization(a, s, b, m, v)
    }}"""
    assert len(graph_of(text, **arrays, **norm).operators) == 1


def test_batch_norm_vanishes_into_a_gemm():
    text = """g (float[2,3] x) => (float[2,8] y) {
        a = Gemm(x, w) y = BatchNormalization(a, s, b, m, v)
    }"""
    assert types_of(graph_of(text, w=floats(3, 8), **NORM)) == ["Gemm"]


def test_a_residual_scale_after_batch_norm_vanishes_as_well():
    text = f"""g ({IMAGE} x) => (float[1,8,6,6] y) {{
        a = Conv(x, w) n = BatchNormalization(a, s, b, m, v) y = Mul(k, n)
    }}"""
    graph = graph_of(text, k=np.float32(0.17), **WEIGHTS)
    (conv,) = graph.operators
    assert (conv.id, conv.members) == ("y", ("a", "n", "y"))
    assert [folded.type for folded in conv.folded] == ["BatchNormalization", "Mul"]


@pytest.mark.parametrize("shape", [(), (1,), (8, 1, 1), (1, 8, 1, 1), (1, 1, 1)])
@pytest.mark.parametrize("operator", ["Mul", "Add"])
def test_a_constant_per_channel_vanishes(operator, shape):
    text = f"g ({IMAGE} x) => (float[1,8,6,6] y) {{ a = Conv(x, w) y = {operator}(a, k) }}"
    assert types_of(graph_of(text, w=WEIGHTS["w"], k=np.ones(shape, np.float32))) == ["Conv"]


@pytest.mark.parametrize("shape", [(6,), (6, 6), (8, 6, 6), (2, 1, 1, 1)])
def test_a_constant_that_differs_within_a_channel_stays(shape):
    text = f"g ({IMAGE} x) => (float[?,8,6,6] y) {{ a = Conv(x, w) y = Mul(a, k) }}"
    assert types_of(graph_of(text, w=WEIGHTS["w"], k=np.ones(shape, np.float32))) == ["Conv", "Mul"]


def test_batch_norm_stays_where_another_operator_reads_the_convolution():
    text = f"""g ({IMAGE} x) => (float[1,8,6,6] y) {{
        a = Conv(x, w) n = BatchNormalization(a, s, b, m, v) y = Add(a, n)
    }}"""
    assert types_of(graph_of(text, **WEIGHTS)) == ["Conv", "BatchNormalization", "Add"]


def test_batch_norm_stays_where_the_convolution_is_a_graph_output():
    text = f"""g ({IMAGE} x) => (float[1,8,6,6] a, float[1,8,6,6] y) {{
        a = Conv(x, w) y = BatchNormalization(a, s, b, m, v)
    }}"""
    assert types_of(graph_of(text, **WEIGHTS)) == ["Conv", "BatchNormalization"]


def test_batch_norm_stays_after_weights_that_are_computed():
    text = f"""g ({IMAGE} x, float[8,3,3,3] w) => (float[1,8,6,6] y) {{
        a = Conv(x, w) y = BatchNormalization(a, s, b, m, v)
    }}"""
    assert types_of(graph_of(text, **NORM)) == ["Conv", "BatchNormalization"]


def test_batch_norm_in_training_stays():
    text = f"""g ({IMAGE} x) => (float[1,8,6,6] y) {{
        a = Conv(x, w) y, i, j = BatchNormalization<training_mode = 1>(a, s, b, m, v)
    }}"""
    assert types_of(graph_of(text, **WEIGHTS)) == ["Conv", "BatchNormalization"]


def test_a_sum_of_two_activations_is_no_bias():
    text = (
        f"g ({IMAGE} x, float[1,8,1,1] k) => (float[1,8,6,6] y) {{ a = Conv(x, w) y = Add(a, k) }}"
    )
    assert types_of(graph_of(text, w=WEIGHTS["w"])) == ["Conv", "Add"]
