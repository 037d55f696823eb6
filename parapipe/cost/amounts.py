"""How much of what an operator does: the amounts that a fitted time is a sum over.

A product is done by unfolding its input into columns (im2col), multiplying matrices and folding the
result; ARM Compute Library and ONNX Runtime do it so. Besides multiply-accumulates and bytes, its
time goes with the columns written, with the outputs, and, where a processor has more SIMD lanes
than the product has outputs, with the number of terms that each output adds up one after another.
Constants that no cache holds are fetched once for every few outputs.
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from parapipe.cost.signature import Signature

_GROUP = re.compile(r"(?:^| )group=(\d+)")
_CHANNELS_FIRST = ("Conv", "ConvTranspose")


class Amounts(NamedTuple):
    """Amounts of one operator; none falls when its multiply-accumulates or bytes rise.

    Parameters
    ----------
    operators
        One.
    steps
        Multiply-accumulates; for a pool, elements that its windows read.
    size_bytes
        Bytes read and written.
    columns
        Elements of the unfolded input of a product; 0 for other operators, as the next two.
    outputs
        Elements written by a product.
    depth
        Multiply-accumulates for one output.
    spilled
        Multiply-accumulates with constants beyond the first `CACHED`, which are fetched again.
    """

    operators: float
    steps: float
    size_bytes: float
    columns: float = 0.0
    outputs: float = 0.0
    depth: float = 0.0
    spilled: float = 0.0


BASIC = 3
"""How many of the amounts every operator has."""

CACHED = 2**17
"""Constants that stay near a processor, 512 KiB in single precision.

Found on the A311D's GPU, whose products slow down beyond it: blocks of networks left out are met to
within a median of 10 % with 2**15, 9 % with 2**16 and 2**17, and 14 % with 2**18.
"""


def amounts_of(signature: Signature, macs: float, size_bytes: float) -> Amounts:
    """Return the amounts of an operator that multiplies and moves so much."""
    if not macs:
        return Amounts(1, signature.window_reads, size_bytes)
    extents = [int(extent) for extent in signature.output.split("x")]
    outputs = prod(extents)
    channels = extents[0 if signature.type in _CHANNELS_FIRST else -1]
    group = _GROUP.search(signature.attributes)
    if group:
        channels = max(1, channels // int(group[1]))
    constants = macs / outputs * channels
    spilled = macs * max(0.0, 1 - CACHED / constants)
    return Amounts(1, macs, size_bytes, macs / channels, outputs, macs / outputs, spilled)
