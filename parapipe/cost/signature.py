"""The signature under which a time of an operator is found, and the amounts of what it does.

Two operators with equal signatures do the same work on tensors of the same shape, so that one's
measured time holds for the other, whatever model it stands in. Paddings are left out: they change
the time little, and the data we have do not say them.

A product is done by unfolding its input into columns (im2col), multiplying matrices and folding the
result; ARM Compute Library and ONNX Runtime do it so. Besides multiply-accumulates and bytes, its
time goes with the columns written, with the outputs, and, where a processor has more SIMD lanes
than the product has outputs, with the number of terms that each output adds up one after another.
Constants that no cache holds are fetched once for every few outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from parapipe.graph.operator_graph import Operator, OperatorGraph

VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
"""Types that say a tensor's shape anew; in a profile all of them are Reshape."""

_SAME_WORK = {
    **dict.fromkeys(VIEWS, "Reshape"),
    "Relu6": "Clip",
    "GlobalAveragePool": "AveragePool",
    "GlobalMaxPool": "MaxPool",
}
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_POOLS = frozenset({"AveragePool", "MaxPool", "LpPool"})
_TELLING = {"Cast": "to", "Resize": "mode", "Transpose": "perm"}
_AXIS_DEFAULT = {"Concat": 1, "Softmax": -1, "LogSoftmax": -1}


@dataclass(frozen=True, slots=True)
class Signature:
    """What an operator does, in the words that a profile's columns use.

    Parameters
    ----------
    type
        ONNX type; Relu6 is Clip, a global pool is a pool as large as its input, every view is
        Reshape, and a product of one row with a constant is Gemm.
    kernel, strides
        Extents such as `3x3`; empty for types without a window. A stride that is taken no step
        of (where the output has extent 1) is written as 1.
    attributes
        Others that the time depends on and that differ from the default, such as `group=32`.
    inputs
        Shapes of the activations read, separated by spaces; for Concat one `?` for each, since
        only their number and the output matter.
    output
        Shape of the first output.
    dtype
        Data type it computes in: that of the first activation with floating point among those it
        reads and writes (Gather picks floats by integers), or else of the first. A quantised
        operator says it itself.
    """

    type: str
    kernel: str
    strides: str
    attributes: str
    inputs: str
    output: str
    dtype: str

    @property
    def window_reads(self) -> int:
        """Elements that the window reads over all outputs; 0 for a type without a window."""
        return prod(map(int, f"{self.kernel}x{self.output}".split("x"))) if self.kernel else 0

    def __str__(self) -> str:
        words = (self.type, self.kernel, self.strides and f"/{self.strides}", self.attributes)
        return f"{' '.join(w for w in words if w)}: {self.inputs} -> {self.output} {self.dtype}"


def shape_text(shape: Sequence[int]) -> str:
    """Return the shape as a signature has it: `64x56x56`, without a batch of 1 and trailing 1×1."""
    extents = tuple(shape)
    if len(extents) > 1 and extents[0] == 1:
        extents = extents[1:]
        while len(extents) > 1 and extents[-1] == 1:
            extents = extents[:-1]
    return extents_text(extents) or "1"


def extents_text(extents: Iterable[int]) -> str:
    """Return extents joined by x."""
    return "x".join(str(extent) for extent in extents)


def signature_of(operator: Operator, graph: OperatorGraph) -> Signature:
    """Return the signature of a single operator (a part, a quantised one, or one not fused).

    Raises
    ------
    ValueError
        If the operator is a fused one, which has no signature: its parts have.
    """
    if operator.singles != (operator,):
        raise ValueError(f"operator '{operator.name}' is fused: take the signature of its parts")
    read = [graph.tensors[name].shape for name in operator.inputs if name in graph.tensors]
    output = graph.tensors.get(operator.outputs[0])
    written = output.shape if output else (*read, ())[0]
    read = read or [written]  # a folded operator's input is gone; it had the shape of its output
    kind = _type_of(operator, graph, read)
    kernel, strides = _window_of(operator, graph, kind, read[0], written)
    return Signature(
        type=kind,
        kernel=kernel,
        strides=strides,
        attributes=_attributes_text(operator, kind, written),
        inputs=_inputs_text(kind, read),
        output=shape_text(written),
        dtype=type_computed_in(operator, graph),
    )


def type_computed_in(operator: Operator, graph: OperatorGraph) -> str:
    """Return the type of a single operator's signature."""
    if operator.computes_in:
        return operator.computes_in
    names = (*operator.inputs, *operator.outputs)
    types = [graph.tensors[name].dtype for name in names if name in graph.tensors]
    # A folded operator's tensors may all be gone, its constants are not.
    types = types or [graph.constants[n].dtype for n in names if n in graph.constants]
    # A list of tensors is handled in the type of its elements.
    types = [dtype.rpartition("(")[2].rstrip(")") for dtype in types]
    return next((dtype for dtype in types if "float" in dtype), types[0])


def _type_of(operator: Operator, graph: OperatorGraph, read: list[tuple[int, ...]]) -> str:
    if operator.domain not in ("", "ai.onnx"):
        return operator.type
    if operator.type == "MatMul" and operator.inputs[1] in graph.constants:
        # The input may be an unflattened tensor, all of which makes up the row.
        one_row = graph.constants[operator.inputs[1]].shape[:1] == (prod(read[0]),)
        return "Gemm" if one_row else "MatMul"
    return _SAME_WORK.get(operator.type, operator.type)


def _inputs_text(kind: str, read: list[tuple[int, ...]]) -> str:
    if kind == "Concat":
        return " ".join("?" * len(read))
    if kind == "Gemm" and read[0][:1] in ((), (1,)):
        return " ".join([str(prod(read[0])), *map(shape_text, read[1:])])
    return " ".join(map(shape_text, read))


def _window_of(
    operator: Operator,
    graph: OperatorGraph,
    kind: str,
    read: tuple[int, ...],
    written: tuple[int, ...],
) -> tuple[str, str]:
    if kind not in _CONVOLUTIONS | _POOLS:
        return "", ""
    kernel = _integers(operator, "kernel_shape")
    if operator.type.startswith("Global"):
        kernel = read[2:]
    elif not kernel and len(operator.inputs) > 1:
        weights = operator.inputs[1]
        tensor = graph.constants.get(weights) or graph.tensors[weights]
        kernel = tensor.shape[2:]
    strides = _integers(operator, "strides") or (1,) * len(kernel)
    # An output of one element along an axis takes no step there.
    steps = (1 if extent == 1 else s for s, extent in zip(strides, written[2:], strict=False))
    return extents_text(kernel), extents_text(steps)


def _integers(operator: Operator, name: str) -> tuple[int, ...]:
    value = operator.attributes.get(name)
    return tuple(int(x) for x in value) if isinstance(value, tuple) else ()


def _attributes_text(operator: Operator, kind: str, written: tuple[int, ...]) -> str:
    words: list[str] = []
    dilations = _integers(operator, "dilations")
    if any(d != 1 for d in dilations):
        words.append(f"dilations={extents_text(dilations)}")
    group = operator.attributes.get("group", 1)
    if kind in _CONVOLUTIONS and group != 1:
        words.append(f"group={group}")
    name = _TELLING.get(kind, "")
    if (value := operator.attributes.get(name)) is not None:
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words.append(f"{name}={text}")
    return " ".join([*words, *_axis_words(operator, kind, written)])


def _axis_words(operator: Operator, kind: str, written: tuple[int, ...]) -> list[str]:
    """Return the axis in the words of the data, if it is not the usual one."""
    default = _AXIS_DEFAULT.get(kind)
    axis = operator.attributes.get("axis", default)
    one_dimension = sum(extent != 1 for extent in written) <= 1
    if default is None or not isinstance(axis, int) or one_dimension:
        return []
    axis %= len(written)
    return [] if axis == default % len(written) else [f"axis={axis}"]


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
