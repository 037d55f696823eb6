"""A decoder whose feed-forward blocks are mixtures of experts, of which each token runs a few.

Sources: Jiang et al., "Mixtral of Experts", 2024, section 2. Sizes are those of Granite 3.0
1B-A400M (Granite Team, IBM, "Granite 3.0 Language Models", 2024): with 24 layers it has its
1,334,628,352 weights, 32 experts in each layer of which 8 run. Its constant factors are left out.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import onnx

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.llama import Sizes, linear, prompt, step
from parapipe.zoo.transformer import reshape

_VOCABULARY = 49155
_EXPERTS, _CHOSEN, _INNER = 32, 8, 512
_DEEPEST_WITH_WEIGHTS = 8


def moe(
    layers: int,
    *,
    weightless: bool = False,
    tokens: int = 128,
    vocabulary: int = _VOCABULARY,
    experts: int = _EXPERTS,
) -> onnx.ModelProto:
    """Mixture of experts: a decoder of any depth, 8 of 32 experts a token, on a prompt of 128.

    Source: Jiang et al., "Mixtral of Experts", 2024, section 2, in the sizes of Granite 3.0
    1B-A400M (IBM, 2024), which has 24 layers. Experts are ONNX Runtime's operator MoE.

    For one text, without a cache; with more than 8 layers it is always weightless.
    """
    return prompt(_sizes(vocabulary, experts), layers, tokens, weightless=weightless)


def moe_step(
    layers: int,
    *,
    weightless: bool = False,
    past: int = 512,
    vocabulary: int = _VOCABULARY,
    experts: int = _EXPERTS,
) -> onnx.ModelProto:
    """Mixture of experts, one token behind a cache of 512, of which 8 of 32 experts are read.

    Source: Jiang et al., "Mixtral of Experts", 2024, as of `moe`.

    For one text; with more than 8 layers it is always weightless.
    """
    return step(_sizes(vocabulary, experts), layers, past, weightless=weightless)


def _sizes(vocabulary: int, experts: int) -> Sizes:
    return Sizes(
        name="moe",
        width=1024,
        vocabulary=vocabulary,
        heads=16,
        key_heads=8,
        head=64,
        theta=10_000,
        deepest=_DEEPEST_WITH_WEIGHTS,
        feed_forward=partial(_mixture, experts=experts),
    )


def _mixture(net: Emitter, x: str, name: str, *, experts: int) -> str:
    """Choose experts for each token, and add what they make of it, weighted by a softmax.

    The rows of an expert's first matrix are gates and values in turn (SwiGLU).
    """
    shape = net.shape(x)
    width = shape[-1]
    rows = reshape(net, x, f"{name}/rows", (shape[-2], width))
    scores = linear(net, rows, f"{name}/router", experts)
    wide = net.weights(f"{name}/wide/weight", (experts, 2 * _INNER, width), sqrt(3 / width))
    narrow = net.weights(f"{name}/narrow/weight", (experts, width, _INNER), sqrt(3 / _INNER))
    mixed = net.contributed(
        "MoE", [rows, scores, wide, "", narrow], f"{name}/experts", k=_CHOSEN,
        activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.0, activation_beta=0.0,
        normalize_routing_weights=1,
    )  # fmt: skip
    return reshape(net, mixed, f"{name}/tokens", shape)
