"""Attention and feed-forward blocks of PETR and BEVFormer, with heads as an axis of the weights.

A projection makes one matrix per head at once (`qc,hcd->hqd`), and the projection behind attention
sums over heads (`hqd,hdc->qc`): what a framework writes with Reshape and Transpose around products,
in as many operators as Para-Pipe counts. As in Vaswani et al., "Attention Is All You Need", 2017,
section 3.2.2, projections have no bias.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.transformer import layer_norm, product, project, with_scalar

WIDTH = 256
HEADS = 8
HEAD = WIDTH // HEADS


class Memory(NamedTuple):
    """Rows to attend to, where they are, and what is added to their scores (`mask`)."""

    rows: str
    places: str
    mask: str


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


def attention(
    net: Emitter,
    x: str,
    places: str,
    name: str,
    *,
    memory: Memory | None = None,
    scaled: bool = False,
) -> str:
    """Let rows attend to each other or to a memory; places are not part of the values.

    Parameters
    ----------
    scaled
        Whether an operator of its own divides the scores by the root of a head's width.
    """
    placed = net.add(x, places, f"{name}/placed")
    query = heads(net, placed, f"{name}/query")
    if memory:
        placed = net.add(memory.rows, memory.places, f"{name}/memory")
    key = keys(net, placed, f"{name}/key")
    value = heads(net, memory.rows if memory else x, f"{name}/value")
    scores = product(net, query, key, f"{name}/scores")
    if memory:
        scores = net.add(scores, memory.mask, f"{name}/masked")
    if scaled:
        scores = with_scalar(net, "Div", scores, f"{name}/scaled", sqrt(HEAD))
    return add_and_norm(net, x, attend(net, scores, value, name), name)


def add_and_norm(net: Emitter, x: str, change: str, name: str) -> str:
    """Add what a block makes to its input, and normalise."""
    return layer_norm(net, net.add(x, change, f"{name}/add"), f"{name}/norm")


def feed_forward(net: Emitter, x: str, name: str, hidden: int) -> str:
    """Two fully connected layers on each row, added to it and normalised."""
    inner = net.relu(net.gemm(x, f"{name}/inner", hidden), f"{name}/relu")
    return add_and_norm(net, x, net.gemm(inner, f"{name}/outer", WIDTH), name)
