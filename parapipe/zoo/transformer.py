"""ViT, BERT and GPT, of attention and feed-forward blocks as exporters write them.

Source: Vaswani et al., "Attention Is All You Need", 2017, section 3. Heads are split off and joined
again by Reshape and Transpose around plain products.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import onnx
from onnx import TensorProto

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, Shape

_NORM_LIMIT = 0.05  # how far a norm's scales lie from 1 and its biases from 0


def project(net: Emitter, equation: str, x: str, name: str, shape: Shape) -> str:
    """Multiply a tensor with weights of a shape, scaled to keep its variance, by Einsum."""
    _, right, result = equation.replace("->", ",").split(",")
    summed = [length for axis, length in zip(right, shape, strict=True) if axis not in result]
    weight = net.weights(f"{name}/weight", shape, sqrt(3 / int(np.prod(summed))))
    return net.operator("Einsum", [x, weight], name, equation=equation)


def product(net: Emitter, x: str, y: str, name: str) -> str:
    """Multiply matrices, one for each index of the axes before the last two."""
    return net.operator("MatMul", [x, y], name)


def linear(net: Emitter, x: str, name: str, features: int) -> str:
    """Multiply rows with weights and add a bias, as two operators `name/product` and `name`."""
    columns = net.shape(x)[-1]
    weight = net.weights(f"{name}/weight", (columns, features), sqrt(3 / columns))
    bias = net.weights(f"{name}/bias", (features,), 0.05)
    rows = product(net, x, weight, f"{name}/product")
    return net.operator("Add", [rows, bias], name)


def layer_norm(net: Emitter, x: str, name: str) -> str:
    """Give each row zero mean and unit variance, then scale and shift its elements."""
    columns = net.shape(x)[-1:]
    scale = net.weights(f"{name}/scale", columns, _NORM_LIMIT, middle=1)
    bias = net.weights(f"{name}/bias", columns, _NORM_LIMIT)
    return net.operator("LayerNormalization", [x, scale, bias], name, axis=-1)


def gelu(net: Emitter, x: str, name: str) -> str:
    """Apply x·(1 + erf(x/√2))/2, in the five operators that exporters write before opset 20."""
    y = with_scalar(net, "Div", x, f"{name}/scaled", sqrt(2))
    y = net.operator("Erf", [y], f"{name}/erf")
    y = with_scalar(net, "Add", y, f"{name}/shifted", 1)
    y = net.operator("Mul", [x, y], f"{name}/product")
    return with_scalar(net, "Mul", y, name, 0.5)


def with_scalar(net: Emitter, operator_type: str, x: str, name: str, value: float) -> str:
    """Apply an operator to each element and a constant."""
    return net.operator(operator_type, [x, net.scalar(f"{name}/constant", value)], name)


def reshape(net: Emitter, x: str, name: str, shape: Shape) -> str:
    """Say a tensor's shape anew."""
    return net.operator("Reshape", [x, net.integers(f"{name}/shape", shape)], name)


def transpose(net: Emitter, x: str, name: str, order: Sequence[int]) -> str:
    """Reorder axes."""
    return net.operator("Transpose", [x], name, perm=list(order))


HEAD_WIDTH = 64
_ROWS = (0, 2, 1, 3)  # one matrix of tokens per head
_COLUMNS = (0, 2, 3, 1)  # the same, transposed


def attention(net: Emitter, x: str, name: str, *, mask: str = "") -> str:
    """Let every token attend to all others; `mask` is added to the scores."""
    batch, tokens, width = net.shape(x)
    split = (batch, tokens, width // HEAD_WIDTH, HEAD_WIDTH)
    query, key, value = (
        transpose(
            net,
            reshape(net, linear(net, x, f"{name}/{part}", width), f"{name}/{part}/split", split),
            f"{name}/{part}/heads",
            order,
        )
        for part, order in (("query", _ROWS), ("key", _COLUMNS), ("value", _ROWS))
    )
    scores = product(net, query, key, f"{name}/scores")
    scores = with_scalar(net, "Div", scores, f"{name}/scaled", sqrt(HEAD_WIDTH))
    if mask:
        scores = net.add(scores, mask, f"{name}/masked")
    mixed = product(net, net.softmax(scores, f"{name}/shares"), value, f"{name}/mixed")
    mixed = transpose(net, mixed, f"{name}/tokens", _ROWS)
    joined = reshape(net, mixed, f"{name}/joined", (batch, tokens, width))
    return linear(net, joined, f"{name}/output", width)


def feed_forward(net: Emitter, x: str, name: str) -> str:
    """Widen each token four times, apply GELU, and narrow it again."""
    width = net.shape(x)[-1]
    inner = gelu(net, linear(net, x, f"{name}/inner", 4 * width), f"{name}/gelu")
    return linear(net, inner, f"{name}/outer", width)


def pre_norm_layer(net: Emitter, x: str, name: str, *, mask: str = "") -> str:
    """Add attention, then a feed-forward block, each computed from normalised tokens."""
    change = attention(net, layer_norm(net, x, f"{name}/norm1"), f"{name}/attention", mask=mask)
    x = net.add(x, change, f"{name}/add1")
    change = feed_forward(net, layer_norm(net, x, f"{name}/norm2"), f"{name}/ffn")
    return net.add(x, change, f"{name}/add2")


def post_norm_layer(net: Emitter, x: str, name: str, *, mask: str = "") -> str:
    """Add attention, then a feed-forward block, and normalise the tokens behind each."""
    change = attention(net, x, f"{name}/attention", mask=mask)
    x = layer_norm(net, net.add(x, change, f"{name}/add1"), f"{name}/norm1")
    change = feed_forward(net, x, f"{name}/ffn")
    return layer_norm(net, net.add(x, change, f"{name}/add2"), f"{name}/norm2")


_WIDTH = 768
_PATCH = 16


def vit_b16(*, weightless: bool = False, size: int = 224, layers: int = 12) -> onnx.ModelProto:
    """ViT-B/16: an image as 196 patches and a class token, twelve layers of attention.

    Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, table 1, ViT-Base.

    For one image `[1, 3, size, size]` and 1000 classes.
    """
    net = Emitter("vit-b16", {"image": (1, 3, size, size)}, weightless=weightless)
    patches = (size // _PATCH) ** 2
    x = net.conv("image", "patches", _WIDTH, _PATCH, stride=_PATCH)
    x = reshape(net, x, "patches/rows", (1, _WIDTH, patches))
    x = transpose(net, x, "patches/tokens", (0, 2, 1))
    x = net.concat([net.weights("class_token", (1, 1, _WIDTH), 1), x], "tokens")
    x = net.add(x, net.weights("positions", net.shape(x), 1), "placed")
    for number in range(layers):
        x = pre_norm_layer(net, x, f"encoder/{number}")
    x = layer_norm(net, x, "norm")
    first = net.integers("class_token/index", 0)
    x = net.operator("Gather", [x, first], "class", axis=1)
    return net.model([net.gemm(x, "head", IMAGENET_CLASSES)])


_BERT_VOCABULARY = 30522
_SEGMENTS = 2


def bert_base(
    *,
    weightless: bool = False,
    tokens: int = 128,
    layers: int = 12,
    vocabulary: int = _BERT_VOCABULARY,
) -> onnx.ModelProto:
    """BERT-base, uncased: twelve layers on 128 tokens, and the pooler behind the first one.

    Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
    Understanding", 2019, section 3; inputs as in its release.

    For one text of `tokens` tokens, their segments, and which are no padding.
    """
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
    mask = _padding_mask(net)
    for number in range(layers):
        x = post_norm_layer(net, x, f"encoder/{number}", mask=mask)
    first = net.integers("pooler/index", 0)
    pooled = net.operator("Gather", [x, first], "pooler/first", axis=1)
    pooled = net.gemm(pooled, "pooler", _WIDTH)
    return net.model([x, net.operator("Tanh", [pooled], "pooled")])


def _padding_mask(net: Emitter) -> str:
    """Zero for a token, and next to minus infinity for padding, in front of heads and queries."""
    mask = net.operator("Cast", ["attention_mask"], "mask/cast", to=int(TensorProto.FLOAT))
    mask = with_scalar(net, "Sub", mask, "mask/less_one", 1)
    mask = with_scalar(net, "Mul", mask, "mask/scaled", 1e9)
    axes = net.integers("mask/axes", (1, 2))
    return net.operator("Unsqueeze", [mask, axes], "mask")


_GPT_VOCABULARY = 50257
_DEEPEST_WITH_WEIGHTS = 48  # GPT-2's deepest; with more than 70 a file of 2 GB would not hold them


def gpt(
    layers: int, *, weightless: bool = False, tokens: int = 128, vocabulary: int = _GPT_VOCABULARY
) -> onnx.ModelProto:
    """GPT: a decoder in the style of GPT-2 (small), of any depth, on 128 tokens.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section
    2.3: norms before the blocks and behind the last one, the output multiplied by the embedding's
    table. With 12 layers it has GPT-2 small's 124 million weights.

    For one text; with more than 48 layers it is always weightless.
    """
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
