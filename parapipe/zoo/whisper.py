"""Whisper's encoder of sound, and its decoder of text for one token behind two caches.

Source: Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022, section
2.2 and table 1. Sizes are those of the smallest, Whisper-tiny: both together have its 37,184,640
weights, each once, since keys and values for the decoder's attention to sound are made at the end
of the encoder, as ONNX Runtime's exports have it.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.transformer import (
    feed_forward,
    gelu,
    layer_norm,
    linear,
    product,
    reshape,
    transpose,
    with_scalar,
)

_LAYERS, _WIDTH, _HEAD = 4, 384, 64
_BANDS, _FRAMES = 80, 3000  # of 30 s of sound
_VOCABULARY, _POSITIONS = 51865, 448
_LONGEST_WAVE = 10_000
_SOUNDS = _FRAMES // 2
_ROWS, _COLUMNS = (0, 2, 1, 3), (0, 1, 3, 2)


def whisper_encoder(*, weightless: bool = False, frames: int = _FRAMES) -> onnx.ModelProto:
    """Whisper-tiny's encoder: 30 s of sound to keys and values for each layer of its decoder.

    Source: Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022,
    section 2.2 and table 1.

    For one spectrogram `[1, 80, 3000]`.
    """
    net = Emitter("whisper", {"input_features": (1, _BANDS, frames)}, weightless=weightless)
    x = gelu(net, _conv(net, "input_features", "encoder/conv1", 1), "encoder/gelu1")
    x = gelu(net, _conv(net, x, "encoder/conv2", 2), "encoder/gelu2")
    x = transpose(net, x, "encoder/tokens", (0, 2, 1))
    x = net.add(x, net.constant("encoder/positions", _waves(net.shape(x)[1])), "encoder/placed")
    for number in range(_LAYERS):
        name = f"encoder/{number}"
        y = layer_norm(net, x, f"{name}/norm1")
        keys, values = _keys_and_values(net, y, f"{name}/attention")
        x = net.add(x, _attend(net, y, f"{name}/attention", keys, values), f"{name}/add1")
        y = feed_forward(net, layer_norm(net, x, f"{name}/norm2"), f"{name}/ffn")
        x = net.add(x, y, f"{name}/add2")
    x = layer_norm(net, x, "encoder/norm")
    outputs = []
    for number in range(_LAYERS):
        ends = [f"present.{number}.encoder.{what}" for what in ("key", "value")]
        outputs += _keys_and_values(net, x, f"decoder/{number}/sound", ends=ends)
    return net.model(outputs)


def whisper_decoder(
    *,
    weightless: bool = False,
    past: int = 223,
    sounds: int = _SOUNDS,
    vocabulary: int = _VOCABULARY,
) -> onnx.ModelProto:
    """Whisper-tiny's decoder, one token behind a cache of 223 and one of 30 s of sound.

    Source: Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022, as
    of `whisper_encoder`; names of the caches as Hugging Face's exports have them.

    For one text.
    """
    caches = {
        f"past_key_values.{number}.{of}.{what}": (1, _WIDTH // _HEAD, length, _HEAD)
        for number in range(_LAYERS)
        for of, length in (("decoder", past), ("encoder", sounds))
        for what in ("key", "value")
    }
    net = Emitter(
        "whisper",
        {"input_ids": (1, 1), **caches},
        element_types={"input_ids": TensorProto.INT64},
        weightless=weightless,
    )
    table = net.weights("words/table", (vocabulary, _WIDTH), 0.05)
    places = net.weights("decoder/positions/table", (_POSITIONS, _WIDTH), 0.05)
    x = net.operator("Gather", [table, "input_ids"], "words")
    place = net.operator("Gather", [places, net.integers("position", [past])], "decoder/position")
    x = net.operator("Add", [x, place], "decoder/placed")
    present: list[str] = []
    for number in range(_LAYERS):
        name = f"decoder/{number}"
        y = layer_norm(net, x, f"{name}/norm1")
        new = _keys_and_values(net, y, f"{name}/attention")
        keys, values = (
            net.concat([f"past_key_values.{number}.decoder.{what}", each],
                       f"present.{number}.decoder.{what}", axis=2)
            for what, each in zip(("key", "value"), new, strict=True)
        )  # fmt: skip
        present += [keys, values]
        x = net.add(x, _attend(net, y, f"{name}/attention", keys, values), f"{name}/add1")
        y = layer_norm(net, x, f"{name}/norm2")
        sound = [f"past_key_values.{number}.encoder.{what}" for what in ("key", "value")]
        x = net.add(x, _attend(net, y, f"{name}/sound", *sound), f"{name}/add2")
        y = feed_forward(net, layer_norm(net, x, f"{name}/norm3"), f"{name}/ffn")
        x = net.add(x, y, f"{name}/add3")
    columns = transpose(net, table, "words/columns", (1, 0))
    return net.model(
        [product(net, layer_norm(net, x, "decoder/norm"), columns, "logits"), *present]
    )


def _conv(net: Emitter, x: str, name: str, stride: int) -> str:
    """Convolve three neighbouring frames."""
    bands = net.shape(x)[1]
    weight = net.weights(f"{name}/weight", (_WIDTH, bands, 3), sqrt(6 / (3 * bands)))
    bias = net.weights(f"{name}/bias", (_WIDTH,), 0.05)
    return net.operator(
        "Conv", [x, weight, bias], name, kernel_shape=[3], strides=[stride], pads=[1, 1]
    )


def _waves(length: int) -> NDArray[np.float32]:
    """Return sines, then cosines, of positions; wave lengths grow from 2π to 20,000π."""
    half = _WIDTH // 2
    steps = np.arange(half) / (half - 1)
    angles = np.outer(np.arange(length), _LONGEST_WAVE**-steps)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)


def _keys_and_values(
    net: Emitter, x: str, name: str, *, ends: list[str] | None = None
) -> list[str]:
    """Return keys, which have no bias, and values of tokens, by heads, called as `ends` say."""
    key = net.weights(f"{name}/key/weight", (_WIDTH, _WIDTH), sqrt(3 / _WIDTH))
    rows = [product(net, x, key, f"{name}/key"), linear(net, x, f"{name}/value", _WIDTH)]
    return [
        _heads(net, each, each, end)
        for each, end in zip(rows, ends or [f"{each}/heads" for each in rows], strict=True)
    ]


def _heads(net: Emitter, x: str, name: str, end: str) -> str:
    batch, tokens, width = net.shape(x)
    shape = (batch, tokens, width // _HEAD, _HEAD)
    return transpose(net, reshape(net, x, f"{name}/split", shape), end, _ROWS)


def _attend(net: Emitter, x: str, name: str, keys: str, values: str) -> str:
    """Let tokens attend to keys `[1, heads, length, 64]`."""
    query = with_scalar(net, "Mul", linear(net, x, f"{name}/query", _WIDTH), f"{name}/scaled",
                        1 / sqrt(_HEAD))  # fmt: skip
    query = _heads(net, query, f"{name}/query", f"{name}/query/heads")
    scores = product(net, query, transpose(net, keys, f"{name}/columns", _COLUMNS),
                     f"{name}/scores")  # fmt: skip
    mixed = product(net, net.softmax(scores, f"{name}/shares"), values, f"{name}/mixed")
    joined = transpose(net, mixed, f"{name}/tokens", _ROWS)
    return linear(net, reshape(net, joined, f"{name}/joined", net.shape(x)), f"{name}/output",
                  _WIDTH)  # fmt: skip
