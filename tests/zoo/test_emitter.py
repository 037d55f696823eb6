"""Emitting graphs operator by operator."""

from math import sqrt

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.zoo.emitter import Emitter, same_pads


def run(model, **inputs):
    onnx.checker.check_model(model, full_check=True)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)


@given(
    size=st.integers(6, 12),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    pads=st.tuples(*[st.integers(0, 1)] * 4),
)
def test_shapes_of_convolutions_and_pools_are_those_that_onnx_infers(size, kernel, stride, pads):
    net = Emitter("net", {"x": (1, 4, size, size + 1)})
    pads = tuple(min(pad, kernel - 1) for pad in pads)
    conv = net.conv("x", "conv", 6, kernel, stride=stride, pads=pads, group=2)
    pool = net.pool("AveragePool", "x", "pool", kernel, stride=stride, pads=pads)
    inferred = onnx.shape_inference.infer_shapes(net.model([conv, pool]), strict_mode=True)
    for output in inferred.graph.output:
        dims = tuple(dim.dim_value for dim in output.type.tensor_type.shape.dim)
        assert dims == net.shape(output.name)


def test_weights_fill_the_he_limits_evenly():
    net = Emitter("net", {"x": (1, 64, 8, 8)})
    net.conv("x", "conv", 100, 3)
    model = net.model(["conv"])
    weights, bias = (onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    limit = sqrt(6 / (64 * 9))
    assert np.abs(weights).max() <= limit
    assert weights.std() == pytest.approx(sqrt(2 / (64 * 9)), rel=0.01)
    assert weights.mean() == pytest.approx(0, abs=limit / 100)
    assert weights.dtype == bias.dtype == np.float32


def test_weights_depend_on_the_names_and_on_nothing_else():
    def weights(graph, layer, before=0):
        net = Emitter(graph, {"x": (1, 2, 4, 4)})
        x = "x"
        for number in range(before):
            x = net.conv(x, f"before{number}", 2, 1)
        net.conv(x, layer, 3, 3)
        found = {t.name: t.raw_data for t in net.model([layer]).graph.initializer}
        return found[f"{layer}/weight"]

    assert weights("a", "conv") == weights("a", "conv", before=2)
    assert weights("a", "conv") != weights("b", "conv")
    assert weights("a", "conv") != weights("a", "other")


def test_a_net_of_every_operator_computes_what_numpy_does():
    net = Emitter("net", {"x": (2, 3, 5, 5)})
    conv = net.relu(net.conv("x", "conv", 4, 3, pads=same_pads(3)), "relu")
    joined = net.concat([conv, "x"], "concat")
    pooled = net.pool("AveragePool", joined, "pool", 5)
    result = net.softmax(net.gemm(net.flatten(pooled, "flat"), "gemm", 6), "prob")
    model = net.model([result, joined, "gemm"])
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 5)).astype(np.float32)
    prob, both, scores = run(model, x=x)
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, weights["conv/weight"])
    wanted = np.maximum(wanted + weights["conv/bias"][:, None, None], 0)
    np.testing.assert_allclose(both, np.concatenate([wanted, x], axis=1), atol=1e-5)
    by_hand = both.mean((2, 3)) @ weights["gemm/weight"].T + weights["gemm/bias"]
    np.testing.assert_allclose(scores, by_hand, atol=1e-5)
    np.testing.assert_allclose(
        prob, np.exp(by_hand) / np.exp(by_hand).sum(1, keepdims=True), atol=1e-5
    )


def test_local_response_normalisation_divides_by_neighbouring_channels():
    net = Emitter("net", {"x": (1, 6, 1, 1)})
    model = net.model([net.lrn("x", "norm", size=3, alpha=0.3, beta=0.5)])
    x = np.arange(1, 7, dtype=np.float32).reshape(1, 6, 1, 1)
    (found,) = run(model, x=x)
    squares = np.pad(x.reshape(-1) ** 2, 1)
    sums = squares[:-2] + squares[1:-1] + squares[2:]
    np.testing.assert_allclose(
        found.reshape(-1), x.reshape(-1) / np.sqrt(1 + 0.1 * sums), rtol=1e-5
    )


def test_a_weightless_net_has_nodes_for_weights_and_runs():
    def net_of(weightless):
        net = Emitter("net", {"x": (1, 3, 9, 7)}, weightless=weightless)
        x = net.conv("x", "conv", 4, (1, 3), pads=same_pads((1, 3)))
        return net, net.model([net.relu(net.batch_norm(x, "norm"), "relu")])

    (full, with_weights), (light, without) = net_of(False), net_of(True)
    assert len(without.SerializeToString()) < len(with_weights.SerializeToString()) + 1200
    assert full.shape("relu") == light.shape("relu") == (1, 4, 9, 7)
    made = {node.name for node in without.graph.node if node.op_type == "ConstantOfShape"}
    assert made == {tensor.name for tensor in with_weights.graph.initializer}
    (found,) = run(without, x=np.ones((1, 3, 9, 7), np.float32))
    np.testing.assert_array_equal(found, np.zeros((1, 4, 9, 7)))


def test_batch_norm_scale_sum_and_limit_compute_what_numpy_does():
    net = Emitter("net", {"x": (1, 3, 4, 5)})
    norm = net.batch_norm("x", "norm")
    total = net.add(net.scale(norm, "scaled", 0.25), "x", "sum")
    model = net.model([norm, total, net.relu6(total, "limited")])
    x = 10 * np.random.default_rng(2).standard_normal((1, 3, 4, 5)).astype(np.float32)
    normed, summed, limited = run(model, x=x)
    parts = ("scale", "bias", "mean", "variance")
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    scale, bias, mean, variance = (tensors[f"norm/{p}"].reshape(1, 3, 1, 1) for p in parts)
    assert np.abs(variance - 1).max() <= 0.05
    wanted = (x - mean) / np.sqrt(variance + 1e-5) * scale + bias
    np.testing.assert_allclose(normed, wanted, atol=1e-4)
    np.testing.assert_allclose(summed, wanted / 4 + x, atol=1e-4)
    np.testing.assert_allclose(limited, np.clip(wanted / 4 + x, 0, 6), atol=1e-4)
