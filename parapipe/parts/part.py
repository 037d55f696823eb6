"""A part of one operator: a range of its output along an axis, and what it reads for it.

Cutting is exact: a part computes what the whole operator would have put there, and no element of
its inputs is listed that it does not need, except where a kernel needs a first row to start from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from parapipe.graph.operator_graph import AttributeReader, AttributeValue, NamedTensors, Operator

Shape: TypeAlias = tuple[int, ...]


class NotCuttableError(Exception):
    """An operator stays whole; the text says why, as the end of a sentence."""


class RangeError(NotCuttableError):
    """There is no part for a range; there may be for others."""


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Elements `begin` to `end`, without `end`, along an axis."""

    axis: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.end - self.begin


Ranges: TypeAlias = tuple[Range, ...]
"""What of a tensor is read: ranges of different axes; all of it along every other axis."""


@dataclass(frozen=True, slots=True)
class Part:
    """How one operator computes a range of its output.

    Parameters
    ----------
    reads
        What it reads of the inputs, by position; None for one that it does not read at all.
    attributes
        Those that are not the whole operator's; None for one that must go. A constant input that
        was an attribute in an earlier opset (`pads`, `shape`, `starts`, ...) goes by that name.
    computed
        What it computes of the output, where that is more than was asked for.
    """

    reads: tuple[Ranges | None, ...]
    attributes: Mapping[str, AttributeValue | None] = field(default_factory=dict)
    computed: Range | None = None

    def of(self, position: int) -> Ranges | None:
        """Return what is read of an input; all of one behind those that are listed."""
        return self.reads[position] if position < len(self.reads) else ()


@dataclass(frozen=True, slots=True)
class Cut:
    """How an operator is cut along an axis of its output.

    Parameters
    ----------
    part
        Returns the part that makes the elements from the first number to the second; WholeError
        if there is none.
    step
        Parts begin and end at multiples of it.
    """

    part: Callable[[int, int], Part]
    step: int = 1


@dataclass(frozen=True, slots=True)
class Single(AttributeReader):
    """One operator as the rules see it.

    Parameters
    ----------
    inputs
        Shapes by position; None where an optional input is omitted.
    outputs
        Shapes of the outputs that it makes.
    opset
        Version of its domain's operators; 0 if it is not known.
    """

    type: str
    attributes: Mapping[str, AttributeValue]
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape, ...]
    opset: int = 0

    @property
    def output(self) -> Shape:
        """Shape of the first output."""
        return self.outputs[0]

    @property
    def rank(self) -> int:
        """Number of axes of the first output."""
        return len(self.output)

    def has(self, position: int) -> bool:
        """Whether an optional input is there."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def shape(self, position: int = 0) -> Shape:
        """Return the shape of an input; empty where it is omitted or a scalar."""
        return (self.inputs[position] or ()) if position < len(self.inputs) else ()

    def reads(self, ranges: Mapping[int, Ranges]) -> tuple[Ranges | None, ...]:
        """Return what is read of each input: ranges of some, all of the others."""
        return tuple(ranges.get(position, ()) for position in range(len(self.inputs)))


Rule: TypeAlias = Callable[[Single, int], Cut]
"""Returns how an operator is cut along an axis of its output; NotCuttableError if it cannot be."""


def single_of(operator: Operator, tensors: NamedTensors, opsets: Mapping[str, int]) -> Single:
    """Return an operator as the rules see it.

    Parameters
    ----------
    tensors
        All tensors and constants that it names.
    opsets
        Versions of the operators by domain.

    Raises
    ------
    WholeError
        If something that it reads or makes is no plain tensor.
    """
    names = [*operator.inputs, *operator.outputs]
    if any(name and (name not in tensors or "(" in tensors[name].dtype) for name in names):
        raise NotCuttableError("it reads or makes a sequence or an optional tensor")
    return Single(
        operator.type,
        operator.attributes,
        tuple(tensors[name].shape if name else None for name in operator.inputs),
        tuple(tensors[name].shape for name in operator.outputs if name),
        opsets.get(operator.domain, 0),
    )


def cut_shape(shape: Shape, ranges: Iterable[Range]) -> Shape:
    """Return the shape of what is read of a tensor."""
    sizes = {each.axis: each.size for each in ranges}
    return tuple(sizes.get(axis, size) for axis, size in enumerate(shape))


def broadcast(shape: Shape, rank: int, requested: Range) -> Ranges:
    """Return what a range of a result of `rank` axes reads of an operand that is broadcast."""
    axis = requested.axis - (rank - len(shape))
    if axis < 0 or shape[axis] == 1:
        return ()
    return (Range(axis, requested.begin, requested.end),)


def same_axis(*positions: int) -> Rule:
    """Return the rule of operators that read of some inputs what they make, of others everything.

    Parameters
    ----------
    positions
        Of the inputs that have the result's axes, or are broadcast to them; all if none is given.
    """

    def rule(single: Single, axis: int) -> Cut:
        def part(begin: int, end: int) -> Part:
            result = Range(axis, begin, end)
            cut = positions or range(len(single.inputs))
            return Part(
                single.reads({at: broadcast(single.shape(at), single.rank, result) for at in cut})
            )

        return Cut(part)

    return rule


def along(*moved: tuple[int, int], step: int = 1) -> Cut:
    """Return a cut whose parts read the same range of some inputs, each along an axis.

    Parameters
    ----------
    moved
        Positions of the inputs, and their axes.
    """

    def part(begin: int, end: int) -> Part:
        ranges = {position: (Range(axis, begin, end),) for position, axis in moved}
        return Part(tuple(ranges.get(at, ()) for at in range(max(ranges, default=-1) + 1)))

    return Cut(part, step)


def along_same(axis: int, wholly: Iterable[int], why: str) -> Cut:
    """Return a cut that reads of the first input what it makes, except along some axes.

    Raises
    ------
    WholeError
        If the axis is one of `wholly`, with the reason given.
    """
    if axis in set(wholly):
        raise NotCuttableError(why)
    return along((0, axis))


def except_own_axis(default: int, why: str) -> Rule:
    """Return the rule of what is cut like its input, but not along the axis that it names."""

    def rule(single: Single, axis: int) -> Cut:
        return along_same(axis, [single.integer("axis", default) % single.rank], why)

    return rule


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


def divide_axis(axis: int, extent: int, step: int, shares: Sequence[float]) -> tuple[Range, ...]:
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
    retained = [Fraction(shares[at]) for at in sorted(largest)]
    total, reached, begin = sum(retained), Fraction(0), 0
    ranges = []
    for number, share in enumerate(retained, start=1):
        reached += share
        nearest = int(reached / total * extent / step + Fraction(1, 2))
        end = min(max(nearest, begin + 1), units - (len(retained) - number))
        ranges.append(Range(axis, begin * step, min(extent, end * step)))
        begin = end
    return tuple(ranges)
