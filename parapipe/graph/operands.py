"""What the rules of work see of an operator: its attributes, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from parapipe.graph.operator_graph import (
    AttributeReader,
    AttributeValue,
    Constant,
    NamedTensors,
    Tensor,
)

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operands(AttributeReader):
    """An operator's attributes and what it reads and writes, by position; None where omitted."""

    attributes: Mapping[str, AttributeValue]
    inputs: tuple[Tensor | Constant | None, ...]
    outputs: tuple[Tensor, ...]

    def input(self, position: int) -> Tensor | Constant | None:
        """Return an input; None where it is omitted."""
        return self.inputs[position] if position < len(self.inputs) else None

    def shape(self, position: int) -> Shape:
        """Return the shape of an input; empty where it is omitted or a scalar."""
        operand = self.input(position)
        return operand.shape if operand else ()

    def output(self, position: int = 0) -> Shape:
        """Return the shape of an output; empty where it is omitted or a scalar."""
        return self.outputs[position].shape if position < len(self.outputs) else ()

    def read_bytes(self, position: int, part: int, whole: int) -> int:
        """Return the bytes of `part` of `whole` equal shares of an input, rounded up."""
        operand = self.input(position)
        size_bytes = operand.size_bytes if operand else 0
        return size_bytes if part >= whole else -(-size_bytes * max(part, 0) // whole)


# None: of a type that is known, but in a form whose MACs are not.
Macs: TypeAlias = Callable[[Operands], int | None]


def operands_of(
    attributes: Mapping[str, AttributeValue],
    inputs: Iterable[str],
    outputs: Iterable[str],
    tensors: NamedTensors,
) -> Operands:
    """Return what an operator reads and writes, given all tensors and constants by name."""
    written = (tensors[name] for name in outputs if name)
    return Operands(
        attributes,
        tuple(tensors.get(name) if name else None for name in inputs),
        tuple(tensor for tensor in written if isinstance(tensor, Tensor)),
    )


def matrix_of(shape: Shape, *, batch: bool, last: bool) -> Shape:
    """Return the shape that FusedMatMul multiplies, of at least two axes unless it has only one.

    Parameters
    ----------
    batch
        Whether the first axis goes behind the other batch axes (`transBatchA`, `transBatchB`).
    last
        Whether the last two axes are swapped after that (`transA`, `transB`).
    """
    if len(shape) < 2:
        return shape
    if batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if last else shape


@dataclass(frozen=True, slots=True)
class Count:
    """What an operator multiplies, and what it moves less than all of what it reads and writes.

    Parameters
    ----------
    macs
        Multiply-accumulates.
    read
        Bytes by position of input; what is left out is read whole.
    written
        Bytes of all results together; None for all of each.
    assumption
        What it rests on beside the model, as a sentence without its end; empty if nothing.
    """

    macs: int
    read: Mapping[int, int] = field(default_factory=dict)
    written: int | None = None
    assumption: str = ""


# Raises IndexError, ValueError or ZeroDivisionError for operands of a form that it does not know.
Rule: TypeAlias = Callable[[Operands], Count]
