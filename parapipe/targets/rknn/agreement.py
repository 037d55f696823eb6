"""How far compiled segments agree with the float model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Agreement:
    """A tensor as the compiled plan makes it, against the float model's.

    Parameters
    ----------
    tensor
        Its name.
    segment, processor
        What makes it.
    cosine
        Cosine of the angle between both: 1 if they are equal but for a factor.
    of_inputs
        The least cosine of what the segment reads; 1 where it reads the model's inputs only.
    is_output
        Whether it is an output of the model.
    """

    tensor: str
    segment: str
    processor: str
    cosine: float
    of_inputs: float
    is_output: bool

    @property
    def loss(self) -> float:
        """What the segment adds to the difference."""
        return self.of_inputs - self.cosine


def cosine(exact: Any, other: Any) -> float:  # noqa: ANN401 - arrays
    """Return the cosine of the angle between two arrays of a shape; 1 if both are zero.

    Elements that are infinite or no numbers in both do not count; if they are so in one only, the
    cosine is 0.
    """
    one = np.asarray(exact, np.float64).reshape(-1)
    two = np.asarray(other, np.float64).reshape(-1)
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(two)):
        return 0.0
    one, two = one[finite], two[finite]
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(two))
    if not all(lengths):
        return float(lengths[0] == lengths[1])
    return float(np.dot(one / lengths[0], two / lengths[1]))


def agreement_lines(agreements: Sequence[Agreement]) -> Iterator[str]:
    """Yield what people want to know of them: each output, the worst border, the worst segment."""
    outputs = ", ".join(f"'{a.tensor}' {_text(a.cosine)}" for a in agreements if a.is_output)
    yield f"accuracy    simulated against the float model, cosine: {outputs}"
    borders = [each for each in agreements if not each.is_output]
    if borders:
        least = min(borders, key=lambda each: each.cosine)
        yield f"            least at a border: '{least.tensor}' {_text(least.cosine)}"
    worst = max(agreements, key=lambda each: each.loss)
    if _text(worst.of_inputs) == _text(worst.cosine):
        yield "            no segment loses any of it"
        return
    yield (
        f"            {worst.segment} loses most: from {_text(worst.of_inputs)} to "
        f"{_text(worst.cosine)}"
    )


def _text(value: float) -> str:
    return f"{value:.5f}"
