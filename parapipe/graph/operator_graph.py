"""The operator graph: what an ONNX model computes, as operators and tensors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

Granularity = Literal["onnx", "fused"]
AttributeValue = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]

ITEM_BYTES: Mapping[str, float] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "int4": 0.5,
    "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "uint4": 0.5,
    "float4": 0.5, "int2": 0.25, "uint2": 0.25,
    "bool": 1, "float8": 1, "complex64": 8, "complex128": 16, "string": 16,
}  # fmt: skip
_WRAPPED = re.compile(r"(?:sequence|optional)\((.*)\)")


def size_in_bytes(shape: Iterable[int], dtype: str) -> int | None:
    """Return the bytes of a dense tensor; None if the type is not known.

    "sequence(float32)" and "optional(float32)" have the bytes of the tensors they hold.
    """
    wrapped = _WRAPPED.fullmatch(dtype)
    item_bytes = ITEM_BYTES.get(wrapped[1] if wrapped else dtype)
    # In quarters of bytes, for a file may claim sizes beyond the range of a double.
    return None if item_bytes is None else prod(shape) * int(4 * item_bytes) // 4


@dataclass(frozen=True, slots=True)
class Tensor:
    """An activation tensor: a graph input, an intermediate result or a graph output.

    A sequence of known length is one flat tensor of all its elements, of the dtype
    "sequence(float32)"; an optional one, which may be absent, is "optional(float32)".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return size_in_bytes(self.shape, self.dtype) or 0

    def part(self, shape: tuple[int, ...]) -> Tensor:
        """Return a part of it."""
        return replace(self, shape=shape)


@dataclass(frozen=True, slots=True)
class Constant:
    """A tensor known before the first frame: an initializer, or folded from initializers.

    Parameters
    ----------
    nodes
        Names of the ONNX nodes that compute it from initializers (and other constants), in
        order; empty for a plain initializer.
    external
        Whether the bytes stand in an external data file. They are never read on import.
    stored
        Data type of what a DequantizeLinear makes it of; empty where none does. Runtimes keep
        such weights as they are stored.
    scale_bytes
        Bytes of the scales and zero points that are stored beside them, where they are quantised
        in blocks; those of other constants are few, and do not count.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nodes: tuple[str, ...] = ()
    external: bool = False
    stored: str = ""
    scale_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor, as it is stored."""
        return (size_in_bytes(self.shape, self.stored or self.dtype) or 0) + self.scale_bytes

    def part(self, shape: tuple[int, ...]) -> Constant:
        """Return a part of it, with its share of the scales."""
        scale_bytes = -(-self.scale_bytes * prod(shape) // max(prod(self.shape), 1))
        return replace(self, shape=shape, scale_bytes=scale_bytes)


NamedTensors = Mapping[str, Tensor | Constant]


class AttributeReader:
    """Typed values of an operator's attributes."""

    __slots__ = ()
    attributes: Mapping[str, AttributeValue]

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return a list of integers."""
        value = self.attributes.get(name)
        items = value if isinstance(value, tuple) else default
        return tuple(item for item in items if isinstance(item, int))

    def text(self, name: str, default: str = "") -> str:
        """Return a string attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, str) else default


@dataclass(frozen=True, slots=True)
class Work:
    """What one run of an operator moves and multiplies.

    Parameters
    ----------
    macs
        Multiply-accumulates of convolutions and matrix products; 0 for all others.
    read_bytes
        Bytes of the activations and constants read once each.
    written_bytes
        Bytes of the outputs written once each; 0 for a view.
    modelled
        False if the operator type stands in no table, so that `macs` is unknown (given as 0).
    rule
        The user's rules file that gives the work; empty where parapipe's own tables do.
    runs_on
        Processors that the rules say run the operator, whatever the platform lists.
    assumption
        What the count rests on beside the model, as a sentence without its end; empty if nothing.
    """

    macs: int
    read_bytes: int
    written_bytes: int
    modelled: bool = True
    rule: str = ""
    runs_on: tuple[str, ...] = ()
    assumption: str = ""

    @classmethod
    def total(cls, parts: Sequence[Work]) -> Work:
        """Return the work of operators that are run one after the other."""
        return cls(
            sum(work.macs for work in parts),
            sum(work.read_bytes for work in parts),
            sum(work.written_bytes for work in parts),
            modelled=all(work.modelled for work in parts),
            rule=next((work.rule for work in parts if work.rule), ""),
            assumption="; ".join(dict.fromkeys(w.assumption for w in parts if w.assumption)),
        )


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of the graph at the chosen granularity.

    Parameters
    ----------
    id
        Name of its first output tensor, unique in the graph.
    name
        Name of the (first) ONNX node it stands for; for people.
    domain, type, attributes
        As in ONNX; the domain is "" for the standard one. For a fused operator, those of its
        first part; for a quantised one, those of the standard operator that it is.
    inputs
        Positional names of tensors and constants; "" where an optional input is omitted. Those of
        a quantised operator are integers; its scales and zero points stand in its parts.
    outputs
        Names of output tensors.
    work
        Of the operator alone; for a fused operator the sum over its parts, for a quantised one
        that of its kernel for integers.
    members
        Names of all ONNX nodes it stands for, in order (unnamed nodes by first output).
    parts
        For a fused operator, the single operators it runs at one go, first to last (Conv, Relu);
        for a quantised one, those that its kernel for integers stands for (DequantizeLinear, Conv,
        QuantizeLinear; or QLinearConv); empty otherwise.
    folded
        Operators that vanished into this one's constants (batch-norm, a scale); they cost
        nothing when deployed, and are kept because some boards were measured with them.
    opaque
        Whether it is control flow (If, Loop, Scan): one operator, with graphs of its own that stand
        in the model only.
    computes_in
        Data type that a quantised operator computes in, such as `uint8`; empty for all others,
        whose tensors say it.
    """

    id: str
    name: str
    domain: str
    type: str
    attributes: Mapping[str, AttributeValue]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    work: Work
    members: tuple[str, ...]
    parts: tuple[Operator, ...] = ()
    folded: tuple[Operator, ...] = ()
    opaque: bool = False
    computes_in: str = ""

    @property
    def singles(self) -> tuple[Operator, ...]:
        """The operators that are run one after the other: its parts, or itself.

        A quantised operator is one, since a single kernel stands for all its parts.
        """
        return self.parts if self.parts and not self.computes_in else (self,)


@dataclass(frozen=True, slots=True)
class Member:
    """One of several models in a graph; what is its own bears its name in front.

    Parameters
    ----------
    name
        Short, and unlike those of the others.
    frames
        How many frames of it the graph holds: each has operators and tensors of its own, and all
        share the initializers.
    """

    name: str
    source: ModelSource
    frames: int

    def prefix(self, frame: int) -> str:
        """Return what stands before the names of a frame, which count from 0."""
        return f"{self.name}/" if self.frames == 1 else f"{self.name}.{frame + 1}/"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model came from: enough to recognise it again.

    Parameters
    ----------
    name
        Path as given by the user, or `zoo:NAME`.
    sha256
        Hexadecimal digest of the model file.
    external
        Digest of each external data file, by its path relative to the model's folder.
    split
        Rules by which operators of it are split into parts; None if it is taken as it is.
    members
        If the graph is of several models, these, in the order of their operators; the name and the
        digest are then of all together.
    """

    name: str
    sha256: str
    external: Mapping[str, str] = field(default_factory=dict)
    split: tuple[str, ...] | None = None
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """An input that the step before has made.

    Parameters
    ----------
    input, output
        Names of the graph's input and output.
    kind
        "state": the same tensor, such as a cache. "token": chosen of the output outside of the
        model, such as the next word of the logits.
    """

    input: str
    output: str
    kind: Literal["state", "token"] = "state"


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """A model's operators in topological order, with every tensor's shape known.

    `tensors` holds activations only, also those inside fused operators; `constants` everything
    known before the first frame; `notes` a sentence for each thing that import assumed; `opsets`
    the version of the operators of each domain ("" is that of ONNX). `states` are the inputs that
    an earlier frame has made: of `sequences` that take turns, frame n reads what frame
    n - sequences has written.
    """

    source: ModelSource
    granularity: Granularity
    operators: tuple[Operator, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)
    opsets: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    states: tuple[State, ...] = ()
    sequences: int = 1
    producer: Mapping[str, int] = field(init=False, repr=False, compare=False)
    consumers: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        producer: dict[str, int] = {}
        consumers: dict[str, list[int]] = {}
        inputs = frozenset(self.inputs)
        for index, operator in enumerate(self.operators):
            for name in self.reads(operator):
                if name not in producer and name not in inputs:
                    raise ValueError(f"operator '{operator.name}' reads '{name}' before it is made")
                consumers.setdefault(name, []).append(index)
            for name in operator.outputs:
                if name and name in producer:
                    raise ValueError(f"tensor '{name}' is made twice")
                producer[name] = index
        object.__setattr__(self, "producer", producer)
        object.__setattr__(self, "consumers", {k: tuple(v) for k, v in consumers.items()})

    def reads(self, operator: Operator) -> tuple[str, ...]:
        """Activation tensors that the operator reads, each once, in order."""
        return tuple(dict.fromkeys(name for name in operator.inputs if name in self.tensors))

    @property
    def loaded(self) -> tuple[str, ...]:
        """Inputs that come from outside for every frame: no states."""
        kept = {each.input for each in self.states if each.kind == "state"}
        return tuple(name for name in self.inputs if name not in kept)

    @property
    def results(self) -> tuple[str, ...]:
        """Outputs that are read outside for every frame: no states; all, if there are no others."""
        kept = {each.output for each in self.states if each.kind == "state"}
        return tuple(name for name in self.outputs if name not in kept) or self.outputs

    def predecessors(self, index: int) -> tuple[int, ...]:
        """Operators whose outputs the operator reads, ascending."""
        reads = self.reads(self.operators[index])
        return tuple(sorted({self.producer[name] for name in reads if name in self.producer}))

    def successors(self, index: int) -> tuple[int, ...]:
        """Operators that read the operator's outputs, ascending."""
        outputs = self.operators[index].outputs
        return tuple(sorted({c for name in outputs for c in self.consumers.get(name, ())}))

    def sole_reader(self, name: str) -> int | None:
        """Operator that alone reads a tensor, which is no graph output; None if there is none."""
        readers = self.consumers.get(name, ())
        return readers[0] if len(readers) == 1 and name not in self.outputs else None


def canonical_order(graph: OperatorGraph, *, longest: bool = True) -> list[int]:
    """Return a topological order that is the same however a file lists and names its nodes.

    It is the post-order of a depth-first search from the outputs of the model against the edges. Of
    what an operator reads, that comes first which the longest path leads to, unless `longest` is
    false; of equals, that which it reads first. So branches stay together. Operators that no output
    needs come last, in the order of the file.
    """
    producers = ([graph.producer.get(name) for name in each.inputs] for each in graph.operators)
    reads = [list(dict.fromkeys(u for u in each if u is not None)) for each in producers]
    depth: list[int] = []
    for before in reads:
        depth.append(max((depth[u] + 1 for u in before), default=0))
    if longest:
        for before in reads:
            before.sort(key=lambda u: -depth[u])
    order: dict[int, None] = {}
    for v in (*(graph.producer[name] for name in graph.outputs), *range(len(reads))):
        _append_after(v, reads, order)
    return list(order)


def _append_after(v: int, reads: Sequence[Collection[int]], order: dict[int, None]) -> None:
    """Add an operator to an order, behind all that it waits for."""
    stack = [(v, iter(reads[v]))]
    while stack:
        w, left = stack[-1]
        following = next((u for u in left if u not in order), None)
        if following is not None:
            stack.append((following, iter(reads[following])))
        else:
            order[w] = None
            stack.pop()
