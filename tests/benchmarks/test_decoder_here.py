"""The decoder that is measured on this machine: its weights of 4 bits, and steps behind caches."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.decoder import BLOCK, DecoderSizes, decoder, quantized
from benchmarks.decoder_here import ANSWER, Case, of_slots, shape_sets, written
from parapipe.documents.request_schema import ComparedRow

SIZES = DecoderSizes(layers=1, width=64, heads=4, key_heads=2, inner=96, vocabulary=70, longest=96)


def dequantized(weight):
    packed, scales = quantized(weight)
    whole = np.stack([packed & 15, packed >> 4], -1).reshape(weight.shape[1], -1, BLOCK)
    return (
        ((whole.astype(np.float32) - 8) * scales.reshape(weight.shape[1], -1, 1))
        .reshape(weight.shape[1], -1)
        .T
    )


def test_weights_of_four_bits_are_within_half_a_step_or_at_the_end_of_the_range():
    weight = np.random.default_rng(0).standard_normal((64, 3)).astype(np.float32)
    steps = np.abs(weight.T.reshape(3, 2, BLOCK)).max(-1, keepdims=True) / 8
    error = np.abs(dequantized(weight) - weight).T.reshape(3, 2, BLOCK)
    assert (error <= steps * (1 + 1e-5)).all()
    assert (error <= steps / 2 * (1 + 1e-5)).mean() > 0.9


def test_onnx_runtime_multiplies_with_the_same_weights():
    weight = np.random.default_rng(1).standard_normal((64, 5)).astype(np.float32)
    packed, scales = quantized(weight)
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft",
                            K=64, N=5, bits=4, block_size=BLOCK)  # fmt: skip
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 64))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 5))],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    x = np.random.default_rng(2).standard_normal((2, 64)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, x @ dequantized(weight), rtol=1e-4, atol=1e-4)


def test_a_cache_with_room_gives_the_tokens_of_one_that_grows(tmp_path):
    onnx.save(decoder(SIZES), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    prompt = [3, 1, 40, 22]
    grown, times_s = written(session, prompt, None)
    kept, _ = written(session, prompt, len(prompt) + ANSWER)
    assert grown == kept
    assert len(grown) == ANSWER
    assert times_s == sorted(times_s)


def test_newest_slots_are_kept_behind_empty_ones():
    cache = np.arange(1, 4, dtype=np.float32).reshape(1, 1, 3, 1)
    assert of_slots(cache, 2).ravel().tolist() == [2, 3]
    assert of_slots(cache, 5).ravel().tolist() == [0, 0, 1, 2, 3]


def test_the_cache_of_a_step_has_room_for_prompt_and_answer():
    assert shape_sets(64)["decode"] == {"sequence": 1, "past": 128, "total": 129}


def test_a_case_compares_with_the_median_of_its_rounds(tmp_path):
    class Run:
        def __init__(self, observed):
            row = ComparedRow(predicted=2.0, observed=observed, error=2 / observed - 1)
            self.first_token_s = self.tokens_per_second = row

    case = Case("int4", 64, "whole", "s01", tmp_path, [Run(1.0), Run(4.0), Run(2.5)])
    assert case.figures("first_token_s") == (2.0, 2.5)
    assert case.off == pytest.approx((-0.2, -0.2))
