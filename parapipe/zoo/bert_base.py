"""BERT-base, uncased: twelve layers on 128 tokens, and the pooler behind the first one.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", 2019, section 3; inputs as in its release.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.transformer import layer_norm, post_norm_layer, with_scalar

_WIDTH = 768
_VOCABULARY = 30522
_SEGMENTS = 2


def build(
    *,
    weightless: bool = False,
    tokens: int = 128,
    layers: int = 12,
    vocabulary: int = _VOCABULARY,
) -> onnx.ModelProto:
    """Build it for one text of `tokens` tokens, their segments, and which are no padding."""
    inputs = dict.fromkeys(("input_ids", "token_type_ids", "attention_mask"), (1, tokens))
    types = dict.fromkeys(inputs, int(TensorProto.INT64))
    net = Emitter("bert-base", inputs, element_types=types, weightless=weightless)
    shape = (1, tokens, _WIDTH)
    words, segments = (
        net.operator("Gather", [net.weights(f"{name}/table", (rows, _WIDTH), 1), ids], name)
        for name, rows, ids in (
            ("words", vocabulary, "input_ids"),
            ("segments", _SEGMENTS, "token_type_ids"),
        )
    )
    x = net.add(words, segments, "words_and_segments")
    x = net.add(x, net.weights("positions", shape, 1), "placed")
    x = layer_norm(net, x, "norm")
    mask = _mask(net)
    for number in range(layers):
        x = post_norm_layer(net, x, f"encoder/{number}", mask=mask)
    first = net.integers("pooler/index", 0)
    pooled = net.operator("Gather", [x, first], "pooler/first", axis=1)
    pooled = net.gemm(pooled, "pooler", _WIDTH)
    return net.model([x, net.operator("Tanh", [pooled], "pooled")])


def _mask(net: Emitter) -> str:
    """Zero for a token, and next to minus infinity for padding, in front of heads and queries."""
    mask = net.operator("Cast", ["attention_mask"], "mask/cast", to=int(TensorProto.FLOAT))
    mask = with_scalar(net, "Sub", mask, "mask/less_one", 1)
    mask = with_scalar(net, "Mul", mask, "mask/scaled", 1e9)
    axes = net.integers("mask/axes", (1, 2))
    return net.operator("Unsqueeze", [mask, axes], "mask")
