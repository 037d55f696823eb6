"""Names of axes, and ranges that share an axis out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from parapipe.graph.parts.part import Range

_BY_RANK: Mapping[int, Mapping[str, int]] = {
    2: {"batch": 0, "channels": 1},
    3: {"batch": 0, "tokens": 1, "channels": 2},
    4: {"batch": 0, "channels": 1, "heads": 1, "rows": 2, "tokens": 2, "columns": 3},
    5: {"batch": 0, "channels": 1, "rows": 3, "columns": 4},
}
_OF_SIGNALS: Mapping[str, int] = {"batch": 0, "channels": 1, "columns": 2}
_ON_SIGNALS = frozenset(
    {"Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"}
    | {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"}
    | {"BatchNormalization", "InstanceNormalization", "LRN"}
)

NAMES = tuple(dict.fromkeys(name for names in _BY_RANK.values() for name in names))
"""All names that axes have."""


def axis_names(operator_type: str, rank: int) -> Mapping[str, int]:
    """Return the axes of an operator's result by name.

    A result of three axes is a batch of tokens with channels; that of a convolution, a pool or a
    normalisation by channel is a batch of channels with columns.
    """
    if rank == len(_OF_SIGNALS) and operator_type in _ON_SIGNALS:
        return _OF_SIGNALS
    return _BY_RANK.get(rank, {"batch": 0})


def shared_out(axis: int, extent: int, step: int, shares: Sequence[float]) -> tuple[Range, ...]:
    """Return ranges that cover an axis once, about as large as the shares say.

    Each boundary is the multiple of `step` that is nearest to where the shares would have it, as
    long as each part gets something. If there is too little for all, the smallest shares get
    nothing.

    Parameters
    ----------
    shares
        Positive numbers, of any sum.
    """
    units = -(-extent // step)
    largest = sorted(range(len(shares)), key=lambda at: -shares[at])[:units]
    kept = [Fraction(shares[at]) for at in sorted(largest)]
    whole, reached, begin = sum(kept), Fraction(0), 0
    found = []
    for number, share in enumerate(kept, start=1):
        reached += share
        nearest = int(reached / whole * extent / step + Fraction(1, 2))
        end = min(max(nearest, begin + 1), units - (len(kept) - number))
        found.append(Range(axis, begin * step, min(extent, end * step)))
        begin = end
    return tuple(found)
