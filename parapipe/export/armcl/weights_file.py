"""The weights file of an exported folder, written one constant at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parapipe.export.armcl.steps import Weight
from parapipe.plan.armcl_plan import ALIGNMENT_BYTES

NAME = "weights.bin"
_ITEM_BYTES = 4


def layout(weights: Mapping[str, Weight]) -> tuple[dict[str, int], int]:
    """Return where each constant starts, and the size of the file, in bytes."""
    offsets: dict[str, int] = {}
    end = 0
    for name, weight in weights.items():
        offsets[name] = -(-end // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        end = offsets[name] + prod(weight.shape) * _ITEM_BYTES
    return offsets, end


def write_weights(path: Path, weights: Mapping[str, Weight], offsets: Mapping[str, int]) -> None:
    """Write all constants as little-endian float32; only one is in memory at a time.

    Raises
    ------
    ModelError
        If a constant cannot be read or computed.
    OSError
        If the file cannot be written.
    """
    with path.open("xb") as file:
        for name, weight in weights.items():
            file.seek(offsets[name])
            _dense(weight).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def _dense(weight: Weight) -> NDArray[np.float32]:
    return np.ascontiguousarray(weight.load(), dtype="<f4").reshape(weight.shape)
