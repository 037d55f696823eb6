"""A decoder in the style of GPT-2 (small), of any depth, on 128 tokens.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3:
norms before the blocks and behind the last one, the output multiplied by the embedding's table.
With 12 layers it has GPT-2 small's 124 million weights.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.transformer import layer_norm, pre_norm_layer, product, transpose

_WIDTH = 768
_VOCABULARY = 50257
_DEEPEST_WITH_WEIGHTS = 48  # GPT-2's deepest; with more than 70 a file of 2 GB would not hold them


def build(
    layers: int,
    *,
    weightless: bool = False,
    tokens: int = 128,
    vocabulary: int = _VOCABULARY,
) -> onnx.ModelProto:
    """Build it for one text; with more than 48 layers it is always weightless."""
    net = Emitter(
        "gpt",
        {"input_ids": (1, tokens)},
        element_types={"input_ids": TensorProto.INT64},
        weightless=weightless or layers > _DEEPEST_WITH_WEIGHTS,
    )
    shape = (1, tokens, _WIDTH)
    table = net.weights("words/table", (vocabulary, _WIDTH), 0.05)
    x = net.operator("Gather", [table, "input_ids"], "words")
    x = net.add(x, net.weights("positions", shape, 0.05), "placed")
    later = np.triu(np.full((1, 1, tokens, tokens), -1e9, np.float32), 1)
    mask = net.constant("mask", later)
    for number in range(layers):
        x = pre_norm_layer(net, x, f"decoder/{number}", mask=mask)
    columns = transpose(net, table, "words/columns", (1, 0))
    return net.model([product(net, layer_norm(net, x, "norm"), columns, "logits")])
