"""What was folded into an operator's constants: a batch-norm, a scale, a bias per channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parapipe.export.armcl.steps import Floats, Steps, number
from parapipe.graph.infer import Array
from parapipe.plan.schema import Operator

_EPSILON = 1e-5  # ONNX's default

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Folded:
    """What is done to each channel after an operator: times a scale, plus a shift.

    Parameters
    ----------
    operators
        The operators that were folded, in order.
    channels
        How many channels the operator makes.
    """

    operators: tuple[Operator, ...]
    channels: int
    steps: Steps

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was folded."""
        return not self.operators

    def scaled(self, weights: Array, channels: slice, *, axis: int) -> Floats:
        """Return the weights of some channels, which lie along an axis, times their scales."""
        if self.is_nothing:
            return as_floats(weights)
        shape = tuple(-1 if at == axis else 1 for at in range(weights.ndim))
        scale, _ = self._scale_and_shift()
        return as_floats(as_floats(weights) * scale[channels].reshape(shape))

    def shifted(self, bias: Array | None, channels: slice) -> Floats:
        """Return the bias of some channels, times their scales, plus their shifts."""
        scale, shift = self._scale_and_shift()
        before = np.zeros(1, np.float32) if bias is None else as_floats(bias)
        return as_floats(before * scale[channels] + shift[channels])

    def _scale_and_shift(self) -> tuple[Doubles, Doubles]:
        scale, shift = np.ones(self.channels), np.zeros(self.channels)
        for operator in self.operators:
            factor, summand = self._one(operator)
            scale, shift = scale * factor, shift * factor + summand
        return scale, shift

    def _one(self, operator: Operator) -> tuple[Doubles, Doubles]:
        names = [constant.name for constant in operator.constants]
        if operator.type == "BatchNormalization":
            gamma, beta, mean, variance = (self._values(name) for name in operator.inputs[1:])
            factor = gamma / np.sqrt(variance + number(operator, "epsilon", _EPSILON))
            return factor, beta - mean * factor
        value = self._values(names[0])
        if operator.type == "Mul":
            return value, np.zeros(1)
        return np.ones(1), value

    def _values(self, name: str) -> Doubles:
        values: Doubles = self.steps.values(name).reshape(-1).astype(np.float64)
        return values


def bias_of(
    folded: Folded, name: str, called: str, rows: slice, count: int, *, factor: float = 1
) -> list[str]:
    """Return the name of the bias of some channels, times a factor; none if there is none.

    Parameters
    ----------
    name
        Constant of the plan that is the bias before; "" if there is none.
    called
        Name of the new constant.
    rows, count
        Which channels, and how many.
    """
    into, name = folded.steps, name if factor else ""
    if folded.is_nothing and not name:
        return []
    if folded.is_nothing and factor == 1 and into.shape(name) == (count,):
        return [into.weight(name)]

    def load() -> Floats:
        before = None
        if name:
            before = as_floats(into.values(name)).reshape(-1)[rows] * np.float32(factor)
        return np.broadcast_to(folded.shifted(before, rows), (count,))

    return [into.make(called, (count,), load)]


def as_floats(values: Array) -> Floats:
    """Return values as float32."""
    floats: Floats = values.astype(np.float32, copy=False)
    return floats
