"""Attention and feed-forward blocks of PETR and BEVFormer, with heads as an axis of the weights.

A projection makes one matrix per head at once (`qc,hcd->hqd`), and the projection behind attention
sums over heads (`hqd,hdc->qc`): what a framework writes with Reshape and Transpose around products,
in as many operators as Para-Pipe counts. As in Vaswani et al., "Attention Is All You Need", 2017,
section 3.2.2, projections have no bias.
"""

from __future__ import annotations

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.tokens import layer_norm, product, project

WIDTH = 256
HEADS = 8
HEAD = WIDTH // HEADS


def heads(net: Emitter, x: str, name: str) -> str:
    """Project rows `[q, c]` to `[h, q, d]`."""
    return project(net, "qc,hcd->hqd", x, name, (HEADS, WIDTH, HEAD))


def keys(net: Emitter, x: str, name: str) -> str:
    """Project rows `[k, c]` to `[h, d, k]`, transposed for the product with queries."""
    return project(net, "kc,hcd->hdk", x, name, (HEADS, WIDTH, HEAD))


def attend(net: Emitter, scores: str, values: str, name: str) -> str:
    """Weigh values `[h, k, d]` by scores `[h, q, k]` and join the heads to rows `[q, c]`."""
    shares = net.softmax(scores, f"{name}/shares")
    mixed = product(net, shares, values, f"{name}/mixed")
    return project(net, "hqd,hdc->qc", mixed, f"{name}/joined", (HEADS, HEAD, WIDTH))


def add_and_norm(net: Emitter, x: str, change: str, name: str) -> str:
    """Add what a block makes to its input, and normalise."""
    return layer_norm(net, net.add(x, change, f"{name}/add"), f"{name}/norm")


def feed_forward(net: Emitter, x: str, name: str, hidden: int) -> str:
    """Two fully connected layers on each row, added to it and normalised."""
    inner = net.relu(net.gemm(x, f"{name}/inner", hidden), f"{name}/relu")
    return add_and_norm(net, x, net.gemm(inner, f"{name}/outer", WIDTH), name)
