"""How many weights are denormal: too small for the normal range, and slow on some processors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

# Unsigned type of the same size; bits of the exponent and of the fraction.
_BITS: Mapping[str, tuple[str, int, int]] = {
    "float16": ("<u2", 0x7C00, 0x03FF),
    "bfloat16": ("<u2", 0x7F80, 0x007F),
    "float32": ("<u4", 0x7F800000, 0x007FFFFF),
    "float64": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
}


def denormals_in(data: bytes, dtype: str) -> int:
    """Return how many of the numbers are denormal; 0 for types that know none.

    Parameters
    ----------
    data
        Whole numbers of this type, little-endian.
    """
    if dtype not in _BITS:
        return 0
    unsigned, exponent, fraction = _BITS[dtype]
    bits = np.frombuffer(data, unsigned)
    return int(np.count_nonzero(((bits & exponent) == 0) & ((bits & fraction) != 0)))
