"""Attention and feed-forward blocks as exporters write them, for tokens `[1, tokens, width]`.

Source: Vaswani et al., "Attention Is All You Need", 2017, section 3. Heads are split off and joined
again by Reshape and Transpose around plain products.
"""

from __future__ import annotations

from math import sqrt

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.tokens import (
    gelu,
    layer_norm,
    linear,
    product,
    reshape,
    transpose,
    with_scalar,
)

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
