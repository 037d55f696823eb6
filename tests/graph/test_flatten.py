"""A Flatten before a fully connected layer."""

import numpy as np
import pytest

from tests.cases.small_models import floats, graph_of, types_of

WEIGHTS = floats(5, 48)
SHAPE = np.array([2, 48])


def flattened(view, product="Gemm<transB = 1>(f, w)", *, source="float[2,3,4,4]", w=WEIGHTS):
    shape = {"shape": SHAPE} if "shape" in view else {}
    return graph_of(
        f"g ({source} x) => (float[2,5] y) {{ f = {view} y = {product} }}", w=w, **shape
    )


@pytest.mark.parametrize("view", ["Flatten(x)", "Reshape(x, shape)", "Flatten<axis = -3>(x)"])
def test_a_view_with_one_row_per_frame_belongs_to_the_gemm(view):
    graph = flattened(view)
    (gemm,) = graph.operators
    assert (gemm.type, gemm.name, gemm.members) == ("Gemm", "y", ("f", "y"))
    assert gemm.inputs == ("x", "w")
    assert gemm.work.macs == 2 * 48 * 5
    assert "f" not in graph.tensors


def test_a_matmul_with_weights_takes_it_too():
    graph = flattened("Flatten(x)", "MatMul(f, w)", w=floats(48, 5))
    assert types_of(graph) == ["MatMul"]
    assert graph.operators[0].work.macs == 2 * 48 * 5


def test_a_squeeze_after_global_pooling_belongs_to_the_gemm():
    text = """g (float[2,48,4,4] x) => (float[2,5] y) {
        p = GlobalAveragePool(x) f = Squeeze(p, axes) y = Gemm<transB = 1>(f, w)
    }"""
    graph = graph_of(text, w=WEIGHTS, axes=np.array([2, 3]))
    assert types_of(graph) == ["GlobalAveragePool", "Gemm"]


def test_a_view_that_mixes_frames_stays():
    assert types_of(flattened("Reshape(x, shape)", source="float[4,3,2,4]")) == ["Reshape", "Gemm"]


def test_a_view_that_another_operator_reads_stays():
    text = """g (float[2,3,4,4] x) => (float[2,5] y, float[2,48] z) {
        f = Flatten(x) y = Gemm<transB = 1>(f, w) z = Relu(f)
    }"""
    assert types_of(graph_of(text, w=WEIGHTS)) == ["Flatten", "Gemm", "Relu"]


def test_a_view_that_is_a_graph_output_stays():
    text = """g (float[2,3,4,4] x) => (float[2,5] y, float[2,48] f) {
        f = Flatten(x) y = Gemm<transB = 1>(f, w)
    }"""
    assert types_of(graph_of(text, w=WEIGHTS)) == ["Flatten", "Gemm"]


def test_a_view_before_a_product_of_activations_stays():
    text = (
        "g (float[2,3,4,4] x, float[48,5] w) => (float[2,5] y) { f = Flatten(x) y = MatMul(f, w) }"
    )
    assert types_of(graph_of(text)) == ["Flatten", "MatMul"]


def test_a_view_that_is_transposed_stays():
    graph = flattened("Flatten(x)", "Gemm<transA = 1>(f, w)", w=floats(2, 5))
    assert types_of(graph) == ["Flatten", "Gemm"]


def test_a_view_before_any_other_operator_stays():
    assert types_of(flattened("Flatten(x)", "Relu(f)", w=floats(1))) == ["Flatten", "Relu"]
