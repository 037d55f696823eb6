"""A decoder whose experts are operators each, as exporters write a loop over them.

Its layers are those of the zoo's `moe`: every token runs every expert, and a matrix of mostly zeros
says how much of each it takes.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np
import onnx

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.llama import Sizes, linear, step
from parapipe.zoo.transformer import product, reshape

_CHOSEN = 8
_INNER = 512


def separate_experts(
    layers: int, experts: int, *, past: int = 512, chained: bool = True
) -> onnx.ModelProto:
    """Return such a decoder for one token behind a cache, without weights.

    Parameters
    ----------
    chained
        Experts are added one after another, as in a loop; else all at once.
    """
    sizes = Sizes(
        name="experts",
        width=1024,
        vocabulary=1000,
        heads=16,
        key_heads=8,
        head=64,
        theta=10_000,
        deepest=0,
        feed_forward=partial(_experts, experts=experts, chained=chained),
    )
    return step(sizes, layers, past, weightless=True)


def _experts(net: Emitter, x: str, name: str, *, experts: int, chained: bool) -> str:
    shape = net.shape(x)
    rows = reshape(net, x, f"{name}/rows", (shape[-2], shape[-1]))
    shares = _shares(net, rows, name, experts)
    made = [
        net.operator("Mul", [_expert(net, rows, f"{name}/expert/{number}"), share],
                     f"{name}/expert/{number}/share")
        for number, share in enumerate(shares)
    ]  # fmt: skip
    total, *others = made
    if chained:
        for number, each in enumerate(others, start=1):
            total = net.add(total, each, f"{name}/sum/{number}")
    else:
        total = net.operator("Sum", made, f"{name}/sum")
    return reshape(net, total, f"{name}/tokens", shape)


def _shares(net: Emitter, rows: str, name: str, experts: int) -> list[str]:
    """Return how much of each expert tokens take: a softmax of the best scores, else 0."""
    scores = linear(net, rows, f"{name}/router", experts)
    best = [f"{name}/best/{what}" for what in ("scores", "experts")]
    count = net.integers(f"{name}/best/count", [min(_CHOSEN, experts)])
    net.operator("TopK", [scores, count], f"{name}/best", outputs=best)
    soft = net.operator("Softmax", [best[0]], f"{name}/soft", axis=-1)
    zeros = net.constant(f"{name}/zeros", np.zeros(net.shape(scores), np.float32))
    spread = net.operator("ScatterElements", [zeros, best[1], soft], f"{name}/spread", axis=1)
    return net.split(spread, f"{name}/shares", [1] * experts, axis=1)


def _expert(net: Emitter, rows: str, name: str) -> str:
    """Return what one expert makes of all tokens (SwiGLU)."""
    gate = linear(net, rows, f"{name}/gate", _INNER)
    gate = net.operator("Mul", [gate, net.operator("Sigmoid", [gate], f"{name}/gate/sigmoid")],
                        f"{name}/gate/silu")  # fmt: skip
    inner = net.operator("Mul", [gate, linear(net, rows, f"{name}/up", _INNER)], f"{name}/inner")
    weight = net.weights(f"{name}/down/weight", (_INNER, net.shape(rows)[1]), sqrt(3 / _INNER))
    return product(net, inner, weight, name)
