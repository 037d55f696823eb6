"""A small decoder in the style of Llama: rotary positions, grouped queries, gated feed-forward.

Sources: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, section 2.2;
Ainslie et al., "GQA", 2023; Su et al., "RoFormer", 2021. Sizes are those of SmolLM2-135M (Allal et
al., "SmolLM2", 2025): with 30 layers it has its 134,515,008 weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
import onnx
from onnx import TensorProto

from parapipe.zoo.emitter import Emitter, Shape
from parapipe.zoo.transformer import product, reshape, transpose, with_scalar

_DEEPEST_WITH_WEIGHTS = 100  # with more a file of 2 GB would not hold them
_ROWS, _COLUMNS = (0, 2, 1, 3), (0, 1, 3, 2)
_EPSILON = 1e-5
_INNER, _VOCABULARY = 1536, 49152


@dataclass(frozen=True, slots=True)
class Sizes:
    """What decoders of this style differ in.

    Parameters
    ----------
    name
        Of the graph, by which its weights are made.
    width, vocabulary
        Elements of a token, words.
    heads, key_heads, head
        Heads of queries, those of keys and values, elements of each.
    theta
        Of the rotation's wave lengths.
    deepest
        Number of layers above which a model is weightless, since a file is to stay below 2 GB.
    feed_forward
        Adds what follows attention, to `[1, tokens, width]`, under a name.
    """

    name: str
    width: int
    vocabulary: int
    heads: int
    key_heads: int
    head: int
    theta: float
    deepest: int
    feed_forward: Callable[[Emitter, str, str], str]


def llama(
    layers: int, *, weightless: bool = False, tokens: int = 128, vocabulary: int = _VOCABULARY
) -> onnx.ModelProto:
    """Llama: a small decoder of any depth, which reads a prompt of 128 tokens.

    Source: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, section
    2.2, in the sizes of SmolLM2-135M (Allal et al., 2025), which has 30 layers.

    For one text, without a cache; with more than 100 layers it is always weightless.
    """
    return prompt(_sizes(vocabulary), layers, tokens, weightless=weightless)


def llama_step(
    layers: int, *, weightless: bool = False, past: int = 512, vocabulary: int = _VOCABULARY
) -> onnx.ModelProto:
    """Llama, one token behind a cache of 512: what writes text, step by step.

    Source: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, as of
    `llama`; names of the cache as ONNX Runtime GenAI has them.

    For one text; with more than 100 layers it is always weightless.
    """
    return step(_sizes(vocabulary), layers, past, weightless=weightless)


def _sizes(vocabulary: int) -> Sizes:
    return Sizes(
        name="llama",
        width=576,
        vocabulary=vocabulary,
        heads=9,
        key_heads=3,
        head=64,
        theta=100_000,
        deepest=_DEEPEST_WITH_WEIGHTS,
        feed_forward=_gated,
    )


def prompt(sizes: Sizes, layers: int, tokens: int, *, weightless: bool) -> onnx.ModelProto:
    """Return a decoder that reads so many tokens, without a cache."""
    net = _emitter(sizes, layers, {"input_ids": (1, tokens)}, weightless=weightless)
    later = np.triu(np.full((1, 1, tokens, tokens), -1e9, np.float32), 1)
    mask = net.constant("mask", later)
    logits, _ = _decoder(net, sizes, layers, np.arange(tokens), cached=False, mask=mask)
    return net.model([logits])


def step(sizes: Sizes, layers: int, past: int, *, weightless: bool) -> onnx.ModelProto:
    """Return the same decoder for one token behind a cache of so many; it has the same weights."""
    cache = dict.fromkeys(_cache_names(layers), (1, sizes.key_heads, past, sizes.head))
    net = _emitter(sizes, layers, {"input_ids": (1, 1), **cache}, weightless=weightless)
    logits, present = _decoder(net, sizes, layers, np.array([past]), cached=True)
    return net.model([logits, *present])


def _cache_names(layers: int) -> Iterator[str]:
    for number in range(layers):
        yield from (f"past_key_values.{number}.{what}" for what in ("key", "value"))


def _emitter(sizes: Sizes, layers: int, inputs: dict[str, Shape], *, weightless: bool) -> Emitter:
    return Emitter(
        sizes.name,
        inputs,
        element_types={"input_ids": TensorProto.INT64},
        weightless=weightless or layers > sizes.deepest,
    )


def _decoder(
    net: Emitter,
    sizes: Sizes,
    layers: int,
    positions: np.ndarray[tuple[int], np.dtype[np.int64]],
    *,
    cached: bool,
    mask: str = "",
) -> tuple[str, list[str]]:
    """Return the logits, and the caches behind the step."""
    waves = sizes.theta ** (-np.arange(0, sizes.head, 2) / sizes.head)
    angles = np.outer(positions, np.concatenate([waves, waves])).astype(np.float32)
    turns = tuple(net.constant(n, f(angles)) for n, f in (("cos", np.cos), ("sin", np.sin)))
    table = net.weights("words/table", (sizes.vocabulary, sizes.width), 0.05)
    x = net.operator("Gather", [table, "input_ids"], "words")
    present: list[str] = []
    for number in range(layers):
        name = f"decoder/{number}"
        past = [f"past_key_values.{number}.{what}" for what in ("key", "value")] if cached else []
        made, kept = _attention(
            net, sizes, _norm(net, x, f"{name}/norm1"), name, turns, past=past, mask=mask
        )
        present += kept
        x = net.add(x, made, f"{name}/add1")
        made = sizes.feed_forward(net, _norm(net, x, f"{name}/norm2"), f"{name}/ffn")
        x = net.add(x, made, f"{name}/add2")
    columns = transpose(net, table, "words/columns", (1, 0))
    return product(net, _norm(net, x, "norm"), columns, "logits"), present


def _norm(net: Emitter, x: str, name: str) -> str:
    """Give each row a mean square of one, then scale its elements, as exporters write it."""
    square = with_scalar(net, "Pow", x, f"{name}/square", 2)
    mean = net.operator("ReduceMean", [square], f"{name}/mean", axes=[-1], keepdims=1)
    root = net.operator("Sqrt", [with_scalar(net, "Add", mean, f"{name}/shift", _EPSILON)],
                        f"{name}/root")  # fmt: skip
    unit = net.operator("Div", [x, root], f"{name}/unit")
    scale = net.weights(f"{name}/scale", net.shape(x)[-1:], 0.05, middle=1)
    return net.operator("Mul", [unit, scale], name)


def linear(net: Emitter, x: str, name: str, features: int) -> str:
    """Multiply rows with weights; decoders of this style have no biases."""
    columns = net.shape(x)[-1]
    weight = net.weights(f"{name}/weight", (columns, features), sqrt(3 / columns))
    return product(net, x, weight, name)


def _attention(
    net: Emitter,
    sizes: Sizes,
    x: str,
    name: str,
    turns: tuple[str, ...],
    *,
    past: list[str],
    mask: str,
) -> tuple[str, list[str]]:
    """Let every token attend to those before it; return what it makes, and keys and values."""
    batch, tokens, width = net.shape(x)
    heads = {"query": sizes.heads, "key": sizes.key_heads, "value": sizes.key_heads}
    parts = {}
    for part, count in heads.items():
        y = linear(net, x, f"{name}/{part}", count * sizes.head)
        y = reshape(net, y, f"{name}/{part}/split", (batch, tokens, count, sizes.head))
        parts[part] = transpose(net, y, f"{name}/{part}/heads", _ROWS)
    query, key = (_rotate(net, parts[n], f"{name}/{n}/turned", turns) for n in ("query", "key"))
    kept = []
    both = {"key": key, "value": parts["value"]}
    for number, what in enumerate(both):
        if past:
            layer = past[number].split(".")[1]
            both[what] = net.concat([past[number], both[what]], f"present.{layer}.{what}", axis=2)
            kept.append(both[what])
        both[what] = _repeat(net, both[what], f"{name}/{what}/all", sizes.heads)
    keys = transpose(net, both["key"], f"{name}/key/columns", _COLUMNS)
    scores = product(net, query, keys, f"{name}/scores")
    scores = with_scalar(net, "Mul", scores, f"{name}/scaled", 1 / sqrt(sizes.head))
    if mask:
        scores = net.add(scores, mask, f"{name}/masked")
    mixed = product(net, net.softmax(scores, f"{name}/shares"), both["value"], f"{name}/mixed")
    joined = reshape(
        net, transpose(net, mixed, f"{name}/tokens", _ROWS), f"{name}/joined",
        (batch, tokens, width),
    )  # fmt: skip
    return linear(net, joined, f"{name}/output", width), kept


def _rotate(net: Emitter, x: str, name: str, turns: tuple[str, ...]) -> str:
    """Turn pairs of elements by the angles of their positions (RoFormer, equation 34)."""
    cos, sin = turns
    half = net.shape(x)[3] // 2
    first, second = net.split(x, f"{name}/halves", [half, half], axis=3)
    swapped = net.concat([net.operator("Neg", [second], f"{name}/minus"), first],
                         f"{name}/swapped", axis=3)  # fmt: skip
    along = net.operator("Mul", [x, cos], f"{name}/along")
    across = net.operator("Mul", [swapped, sin], f"{name}/across")
    return net.add(along, across, name)


def _repeat(net: Emitter, x: str, name: str, queries: int) -> str:
    """Give each group of queries its keys, or its values."""
    batch, heads, tokens, size = net.shape(x)
    group = queries // heads
    y = reshape(net, x, f"{name}/single", (batch, heads, 1, tokens, size))
    shape = net.integers(f"{name}/sizes", (batch, heads, group, tokens, size))
    y = net.operator("Expand", [y, shape], f"{name}/several")
    return reshape(net, y, name, (batch, queries, tokens, size))


def _gated(net: Emitter, x: str, name: str) -> str:
    """Widen each token twice, gate one by the other, and narrow it again (SwiGLU)."""
    gate, wide = (linear(net, x, f"{name}/{part}", _INNER) for part in ("gate", "wide"))
    gate = net.operator("Mul", [gate, net.operator("Sigmoid", [gate], f"{name}/open")],
                        f"{name}/silu")  # fmt: skip
    y = net.operator("Mul", [gate, wide], f"{name}/gated")
    return linear(net, y, f"{name}/narrow", net.shape(x)[-1])
