"""The plan of an exported folder for ARM Compute Library, and its forms.

Each is one function of ARM Compute Library. Attributes are complete: nothing is left to a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from parapipe.files.record import Record
from parapipe.plan.records import ByName, Name, OneOrMore, PredictedTimes
from parapipe.plan.schema import ModelFile, Route

Kind = Literal["integer", "number", "integers", "text"]


@dataclass(frozen=True, slots=True)
class Form:
    """What an operator of one type looks like.

    Parameters
    ----------
    inputs
        Least and greatest number of inputs.
    attributes
        Kind of each attribute, by name.
    """

    inputs: tuple[int, int] = (1, 1)
    attributes: Mapping[str, Kind] = field(default_factory=dict)


_WINDOW: Mapping[str, Kind] = {"strides": "integers", "pads": "integers"}
_POOL: Mapping[str, Kind] = {"kernel_shape": "integers", **_WINDOW, "ceil_mode": "integer"}
_PLAIN = Form()
_PAIR = Form((2, 2))
_MANY = 1 << 30

ACTIVATIONS: Mapping[str, Form] = {
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt"), _PLAIN),
    **dict.fromkeys(("LeakyRelu", "Elu"), Form(attributes={"alpha": "number"})),
    "Clip": Form(attributes={"min": "number", "max": "number"}),
}
"""Those that may also be applied to another operator's output."""

FORMS: Mapping[str, Form] = {
    "Conv": Form((2, 4), {**_WINDOW, "dilations": "integers", "group": "integer"}),
    "ConvTranspose": Form((2, 3), _WINDOW),
    "MaxPool": Form(attributes=_POOL),
    "AveragePool": Form(attributes={**_POOL, "count_include_pad": "integer"}),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _PLAIN),
    "Gemm": Form((2, 3), {"transB": "integer"}),
    **dict.fromkeys(("MatMul", "Add", "Sub", "Mul", "Div", "Max", "Min"), _PAIR),
    "Concat": Form((1, _MANY), {"axis": "integer"}),
    "BatchNormalization": Form((5, 5), {"epsilon": "number"}),
    "LRN": Form(
        attributes={"size": "integer", "alpha": "number", "beta": "number", "bias": "number"}
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _PLAIN),
    "PRelu": _PAIR,
    "ReduceMean": Form(attributes={"axes": "integers", "keepdims": "integer"}),
    "Reshape": _PLAIN,
    "Transpose": Form(attributes={"perm": "integers"}),
    "Pad": Form(attributes={"mode": "text", "pads": "integers", "value": "number"}),
    "Slice": Form(attributes={"starts": "integers", "ends": "integers", "steps": "integers"}),
    "Resize": Form(attributes={"mode": "text", "coordinates": "text"}),
    **ACTIVATIONS,
    **dict.fromkeys(("Exp", "Log", "Neg", "Erf", "Atan"), _PLAIN),
    "Gather": Form((2, 2), {"axis": "integer"}),
    "Where": Form((3, 3)),
    "Less": _PAIR,
    "GridSample": Form((2, 2), {"align_corners": "integer"}),
}
"""Every type that a folder may hold."""


def fits(kind: Kind, value: object) -> bool:
    """Whether a value is of a kind."""
    if kind == "text":
        return isinstance(value, str)
    if kind == "integers":
        return isinstance(value, tuple) and all(type(item) is int for item in value)
    return type(value) is int or (kind == "number" and type(value) is float)


SCHEMA: Final = "parapipe/armcl/1"
MOST_DIMENSIONS: Final = 4
ALIGNMENT_BYTES: Final = 64

Attribute = int | float | str | tuple[int, ...]


def _in_forms(kind: str) -> str:
    if kind not in FORMS:
        raise ValueError(f"is no operator of this format: '{kind}'")
    return kind


class WeightsFile(Record):
    """The file with all constants."""

    file: Name
    """Its name, in the same folder."""
    size_bytes: NonNegativeInt
    """Its size."""


class Tensor(Record):
    """An activation or a constant, dense, in ONNX's order."""

    shape: Annotated[tuple[PositiveInt, ...], Field(max_length=MOST_DIMENSIONS)]
    """Dimensions, the outermost first; no more than four."""
    dtype: Literal["float32"]
    """Type of an element."""
    offset: NonNegativeInt | None = None
    """Where a constant starts in the weights file, in bytes; left out for an activation."""


class Activation(Record):
    """What is applied to an operator's output."""

    type: Annotated[str, Field(json_schema_extra={"enum": list(ACTIVATIONS)})]
    """Type of the operator that it is by itself."""
    attributes: ByName[Attribute] = {}
    """Its attributes."""


class Operator(Record):
    """An operator that one function of the library runs."""

    id: Name
    """Name of its output, unique."""
    type: Annotated[str, AfterValidator(_in_forms), Field(json_schema_extra={"enum": list(FORMS)})]
    """What it does, in the words of ONNX."""
    inputs: OneOrMore[str]
    """Tensors by position."""
    outputs: Annotated[tuple[Name, ...], Field(min_length=1, max_length=1)]
    """Its one output."""
    attributes: ByName[Attribute] = {}
    """All that its type has, none left to a default."""
    activation: Activation | None = None
    """Applied to the output; left out if nothing is."""
    source: Name | None = None
    """Operator of the plan that it stands for, wholly or in part; left out if that is `id`."""
    includes: OneOrMore[Name] | None = None
    """Further operators of the plan that it stands for; left out if there are none."""

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        form = FORMS[self.type]
        if not form.inputs[0] <= len(self.inputs) <= form.inputs[1]:
            raise ValueError(f"'{self.id}' has {len(self.inputs)} inputs")
        _check_attributes(self.id, self.type, self.attributes)
        if self.activation is not None:
            if self.activation.type not in ACTIVATIONS:
                raise ValueError(f"'{self.id}' has an activation that is none")
            _check_attributes(self.id, self.activation.type, self.activation.attributes)
        return self


def _check_attributes(operator: str, kind: str, attributes: Mapping[str, Attribute]) -> None:
    form = FORMS[kind].attributes
    if set(form) != set(attributes):
        raise ValueError(f"'{operator}' should have the attributes {sorted(form)}")
    for name, value in attributes.items():
        if not fits(form[name], value):
            raise ValueError(f"'{operator}': {name} should be of the kind {form[name]}")


MOST_LAG = 1024
"""Periods between a frame's entry and an operator's turn, as the runner's reader allows."""


class Processor(Record):
    """A processor that runs something."""

    name: Name
    """Name, as in the plan."""
    backend: Literal["neon", "opencl", "onednn", "xnnpack", "plain", "stub"]
    """Functions that run its operators; "stub" in the runner's own tests."""
    cores: tuple[NonNegativeInt, ...]
    """Core numbers to pin its threads to; of "opencl", those of its host thread. Empty for any."""
    threads: PositiveInt
    """Threads that work on an operator; 1 for "opencl"."""
    frequency_hz: PositiveFloat | None = None
    """Clock that the plan was made for."""
    host: Name | None = None
    """For "opencl": the processor whose core enqueues its kernels."""


class StageProcessor(Record):
    """What one processor does in a stage."""

    name: Name
    """Name of the processor."""
    replicas: OneOrMore[Name] | None = None
    """Further processors, identical to this one, that take turns with it: of r in all, frame n is
    run by number n modulo r, this one being number 0. Left out where it works alone."""
    operators: OneOrMore[Name]
    """Ids, in the order in which the processor takes them."""
    lags: tuple[Annotated[NonNegativeInt, Field(le=MOST_LAG)], ...] | None = None
    """Frame lag of each: in round r it works on frame r - lag; left out if all are equal."""

    @model_validator(mode="after")
    def _check_lags(self) -> Self:
        if self.lags is not None and len(self.lags) != len(self.operators):
            raise ValueError(
                f"'{self.name}' has {len(self.lags)} lags for {len(self.operators)} operators"
            )
        return self


class Stage(Record):
    """Processors that work on the same frame, or on frames next to each other."""

    index: NonNegativeInt
    """Its number; the first stage is 0."""
    processors: OneOrMore[StageProcessor]
    """The processors that it has for itself."""


class Transfer(Route):
    """A tensor that goes from one processor to another; all readers there share it."""

    queue_depth: PositiveInt
    """Frames of this tensor that may be held at once."""


class ProfileRow(Record):
    """What a profile says of an operator of the plan, whichever processor runs it."""

    type: Name
    """As in a profile's column, and so on."""
    kernel: str
    """Extents of the window."""
    strides: str
    """Its steps."""
    attributes: str
    """Others that the time depends on."""
    inputs: str
    """Shapes of the activations read."""
    output: str
    """Shape of the first output."""
    dtype: Name
    """Data type it computes in."""
    operator_class: Name = Field(alias="class")
    """Class of operators that take time by the same rule."""
    macs: NonNegativeInt
    """Multiply-accumulates."""
    size_bytes: NonNegativeInt
    """Bytes read and written."""
    then: str
    """Types of the operators that follow it at one go, separated by spaces."""


class Memory(Record):
    """An arena: memory in which tensors lie at offsets."""

    name: Name
    """Name of the memory, as in the plan."""
    size_bytes: NonNegativeInt
    """Its size."""


class Place(Record):
    """Where a tensor lies in an arena."""

    tensor: Name
    """Name of the tensor."""
    processors: OneOrMore[Name]
    """Those that use it there: the one that makes it, or loads the graph input, then the others
    that read it."""
    memory: Name
    """Name of the memory."""
    offset_bytes: OneOrMore[NonNegativeInt]
    """Bytes from the start of the arena: frame n lies at the offset number n modulo their count."""


class Arena(Record):
    """Offsets of tensors in one arena for each memory, and the times that they hold for."""

    points: PositiveInt
    """Points in time in a period."""
    memories: OneOrMore[Memory]
    """Those of the plan."""
    places: tuple[Place, ...]
    """Of the tensors that may lie in them."""
    spans: ByName[tuple[NonNegativeInt, NonNegativeInt]]
    """By an operator's id: numbers of the points at which it starts and ends, of frame 0; those of
    the next frame are larger by `points`."""


class LibraryPlan(Record):
    """The whole of `plan.json`."""

    schema_version: Literal["parapipe/armcl/1"] = Field(alias="schema")
    """Version of this format."""
    model: ModelFile
    """What is run."""
    platform: Name
    """Name of the platform that it is run on."""
    weights: WeightsFile
    """The constants."""
    inputs: tuple[Name, ...]
    """Graph inputs; every processor loads those that it reads."""
    outputs: OneOrMore[Name]
    """Graph outputs."""
    tensors: ByName[Tensor]
    """Activations and constants by name; each is used."""
    operators: OneOrMore[Operator]
    """All operators in topological order."""
    processors: OneOrMore[Processor]
    """The processors used."""
    stages: OneOrMore[Stage]
    """The stages, first to last."""
    transfers: tuple[Transfer, ...]
    """One for each tensor and each processor that reads it and does not make it."""
    predicted: PredictedTimes | None = None
    """What to expect."""
    profile: ByName[ProfileRow] | None = None
    """Rows of a profile by operator of the plan; views have none."""
    arena: Arena | None = None
    """Offsets; left out if the plan has none."""
