"""What `manifest.json` says of the models in a folder of segments; published as JSON Schema."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from parapipe.files.record import Record
from parapipe.plan.records import Name, OneOrMore, PredictedTimes, Sha256, Shape
from parapipe.plan.schema import ModelFile, Processor, Transfer

SCHEMA: Final = "parapipe/segments/1"
FILE: Final = "manifest.json"


class Value(Record):
    """An input or output of a segment, of fixed shape."""

    name: Name
    """Its name in the model file and in all other segments."""
    dtype: Name
    """Type of an element, as ONNX calls it in lower case: "float32"."""
    shape: Shape
    """Dimensions, the outermost first."""
    size_bytes: int
    """Bytes of the dense tensor."""


class Input(Value):
    """An input of a segment."""

    source: Name | None = Field(None, alias="from")
    """Id of the segment that makes it; left out for a graph input."""


class Result(Record):
    """A graph output."""

    name: Name
    """Its name."""
    source: Name = Field(alias="from")
    """Id of the segment that makes it."""


class File(Record):
    """A file of the folder."""

    file: Name
    """Its path in the folder."""
    sha256: Sha256
    """Hexadecimal digest."""


class Compiled(Record):
    """What a compiler of an NPU's vendor has made of a segment."""

    compiler: Name
    """Name of the compiler, as `parapipe compilers list` has it."""
    version: Name
    """Its version."""
    target: Name
    """The chip, as the compiler calls it."""
    precision: Literal["float16", "int8"]
    """Type of its arithmetic."""
    on_cpu: tuple[Name, ...]
    """Nodes that the board's CPU runs inside the file, by their names in the segment's model."""
    weight_bytes: int | None = None
    """Memory of constants on the board; left out if the compiler does not tell."""
    internal_bytes: int | None = None
    """Memory of activations on the board; left out if the compiler does not tell."""


class Segment(File):
    """A run of operators that a processor executes at one go: an ONNX model, or one compiled."""

    id: Name
    """Unique, and the file's name without its ending; the number counts all segments in an order in
    which they can run one after the other."""
    weights: File | None = None
    """External data beside the model, where it would have more than 2 GB; else left out."""
    compiled: Compiled | None = None
    """What made the file; left out where it is an ONNX model."""
    processor: Name
    """Name of the processor that runs it."""
    replicas: OneOrMore[Name] | None = None
    """Further processors that take turns with it, as in the plan; left out if it works alone."""
    stage: int
    """Number of the stage."""
    lag: int
    """Periods between a frame's entry and this segment's turn: the stage's number, unless frames
    are interleaved within a stage."""
    order: int
    """Its place in the order of its processor, from 0."""
    inputs: tuple[Input, ...]
    """Inputs, in the order of the model."""
    outputs: OneOrMore[Value]
    """Outputs, in the order of the model."""
    operators: OneOrMore[Name]
    """Ids of the plan's operators that it holds, in the order of the plan."""
    start_s: float
    """Predicted start, from the start of the stage."""
    end_s: float
    """Predicted end, from the start of the stage."""
    time_s: float
    """Predicted time of its operators, added up."""


class Manifest(Record):
    """A plan's segments, each a model by itself, for compilers and runtimes elsewhere."""

    schema_version: Literal["parapipe/segments/1"] = Field(alias="schema")
    """Version of this format."""
    model: ModelFile
    """What the segments were cut from."""
    platform: Name
    """Name of the platform that it was planned for."""
    inputs: tuple[Value, ...]
    """Graph inputs that results depend on."""
    outputs: OneOrMore[Result]
    """Graph outputs; those that are constant are left out."""
    processors: OneOrMore[Processor]
    """The processors used."""
    segments: OneOrMore[Segment]
    """All segments, in an order in which they can run one after the other."""
    transfers: tuple[Transfer, ...]
    """What goes between processors, as the plan has it."""
    predicted: PredictedTimes
    """What to expect."""
