"""Results that an export has saved beside its segments, and how far a run is from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from .folder import EXPORT_AGAIN, Folder, RunError
from .ncnn_sessions import FLOAT16

SAMPLE: Final = "sample.npz"
EXPECTED: Final = "expected.npz"
LIMIT, LIMIT_IN_HALF = 1e-3, 5e-2
"""Largest difference that counts as the same, of an output's largest number; the second one where
a processor computes in float16."""


class Expected:
    """Compares the results of frames with those that are saved.

    Parameters
    ----------
    folder
        It holds both files.

    Raises
    ------
    RunError
        If one is missing.
    """

    def __init__(self, folder: Folder) -> None:
        self.sample = folder.path / SAMPLE
        lacking = [each for each in (SAMPLE, EXPECTED) if not (folder.path / each).is_file()]
        if lacking:
            raise RunError(
                f"{folder.path}: has no {' and no '.join(lacking)} to check with, which an export "
                "to ncnn writes"
            )
        try:
            with np.load(folder.path / EXPECTED, allow_pickle=False) as file:
                self._exact = {name: file[name] for name in file.files}
        except (OSError, ValueError) as error:
            raise RunError(f"{folder.path / EXPECTED}: cannot be read; {EXPORT_AGAIN}") from error
        half = any(each.options.get(FLOAT16) == "1" for each in folder.processors)
        self.limit = LIMIT_IN_HALF if half else LIMIT
        self.differences = dict.fromkeys(self._exact, 0.0)
        self._frame = 0

    def add(self, results: Mapping[str, Any]) -> None:
        """Compare the results of the next frame."""
        for name, exact in self._exact.items():
            wanted = exact[self._frame % len(exact)]
            scale = float(np.abs(wanted).max(initial=0)) or 1.0
            difference = float(np.abs(results[name] - wanted).max(initial=0)) / scale
            self.differences[name] = float(np.maximum(self.differences[name], difference))
        self._frame += 1

    def sentence(self) -> str:
        """Return how far results are from what they should be."""
        worst = max(self.differences, key=lambda name: self.differences[name])
        return (
            f"results differ from {EXPECTED} by {self.differences[worst]:.1e} of the largest "
            f"number at most, in '{worst}'"
        )

    def check(self) -> None:
        """Raise a RunError if they differ too much; numbers that are none do."""
        if not all(each <= self.limit for each in self.differences.values()):
            raise RunError(f"{self.sentence()}, where {self.limit:g} is allowed")
