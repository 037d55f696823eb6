"""Kernels of stated intensity: one that computes in its caches, one that moves memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parapipe.profiling.figures import model_of

EXTENT = 128  # of matrices whose product needs 192 KiB
KERNEL_BYTES = 64 << 20
"""Bytes that the memory-bound kernel moves: more than last caches of phones and boards hold."""

_COMPUTE, _MEMORY = Path("kernels/compute.onnx"), Path("kernels/memory.onnx")


def kernels_document(size_bytes: int = KERNEL_BYTES) -> dict[str, Any]:
    """Return the kernels as a measurement needs to know them, by their class."""
    return {
        "compute": {"file": _COMPUTE.as_posix(), "cells": {}, "moved_bytes": 3 * 4 * EXTENT**2},
        "memory": {"file": _MEMORY.as_posix(), "cells": {}, "moved_bytes": size_bytes},
    }


def kernel_models(size_bytes: int = KERNEL_BYTES) -> dict[Path, bytes]:
    """Return their models by path: a product of square matrices, and a negation of many numbers."""
    square, count = f"float[{EXTENT},{EXTENT}]", size_bytes // 8  # each is read and written
    texts = {
        _COMPUTE: f"({square} x, {square} w) => ({square} y) {{ y = MatMul(x, w) }}",
        _MEMORY: f"(float[{count}] x) => (float[{count}] y) {{ y = Neg(x) }}",
    }
    return {path: model_of(text).SerializeToString() for path, text in texts.items()}
