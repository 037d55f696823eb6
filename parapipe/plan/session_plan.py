"""A plan in terms of ONNX Runtime sessions: the `plan.json` of a folder exported for it.

Such a folder is complete: a model file for each segment, this document, and a script that runs
them with ONNX Runtime and NumPy alone. Each processor is a thread that takes its segments in the
order of their `position`, frame after frame; what a segment reads comes through channels.
`docs/export.md` says how to execute it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from parapipe.plan.record import Record
from parapipe.plan.schema import ByName, Name, OneOrMore, Sha256, Shape

SCHEMA: Final = "parapipe/onnxruntime/1"


def _plain(name: str) -> str:
    """Refuse what leaves the folder."""
    if "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise ValueError("should be the name of a file in the folder")
    return name


FileName = Annotated[Name, AfterValidator(_plain)]


class SessionModel(Record):
    """The model that the segments were cut from."""

    name: Name
    """Path as the user gave it, or `zoo:NAME`."""
    sha256: Sha256
    """Hexadecimal digest of the model file."""


class SessionProcessor(Record):
    """A processor: one thread that runs its segments one at a time."""

    name: Name
    """Name, as in the platform."""
    kind: Name
    """What it is: cpu, gpu, npu, dsp."""
    cores: tuple[NonNegativeInt, ...]
    """Cores to bind its threads to; empty where there are none to bind to."""
    threads: PositiveInt
    """Threads of each of its sessions, the one that calls `run` included."""
    provider: Name
    """ONNX Runtime's execution provider that runs its segments."""
    substitute: Name | None = None
    """Why `provider` stands in for the processor, where ONNX Runtime has none that runs on it."""
    frequency_hz: PositiveFloat
    """Clock that the predictions hold for."""


class SessionTensor(Record):
    """A tensor that enters the graph, leaves it, or goes from one segment to another."""

    dtype: Name
    """Type of an element, as NumPy and ONNX call it: "float32"."""
    shape: Shape
    """Dimensions, the outermost first."""
    size_bytes: NonNegativeInt
    """Bytes of the dense tensor."""


class SessionSegment(Record):
    """A run of operators that a processor executes at one go: one model file, one session."""

    id: Name
    """Unique, and the file's name without its ending: "03-big"; the number counts all segments."""
    file: FileName
    """The model, an ONNX file in the same folder. Its inputs and outputs are those below, under
    the same names and in the same order."""
    processor: Name
    """Name of the processor that runs it."""
    stage: NonNegativeInt
    """Number of the stage."""
    lag: NonNegativeInt
    """Periods between a frame's entry and this segment's turn: the stage's number, unless frames
    are interleaved within a stage."""
    position: NonNegativeInt
    """Its place in the order of its processor, from 0."""
    inputs: tuple[Name, ...]
    """Tensors to feed."""
    outputs: OneOrMore[Name]
    """Tensors that it makes, for other segments or as results."""
    operators: OneOrMore[Name]
    """Ids of the plan's operators that it holds, in the order of the plan."""
    start_s: NonNegativeFloat
    """Predicted start, from the start of the stage."""
    end_s: NonNegativeFloat
    """Predicted end, from the start of the stage."""
    time_s: NonNegativeFloat
    """Predicted time of its operators, added up."""


class Channel(Record):
    """A tensor on its way to one processor; all segments there that read it share it."""

    tensor: Name
    """Name of the tensor."""
    kind: Literal["input", "local", "within-stage", "stage"]
    """A graph input; from a segment of the same processor; to another processor of the same stage;
    to a later stage."""
    producer: Name | None
    """Segment that makes the tensor; null for a graph input."""
    processor: Name
    """Processor that reads it."""
    consumers: OneOrMore[Name]
    """Segments on that processor that read it, in their order."""
    queue_depth: PositiveInt
    """Frames of this tensor that may be held at once: from the start of the segment that makes it
    to the end of the last consumer."""
    time_s: NonNegativeFloat
    """Predicted time of the transfer; 0 for inputs and within a processor."""


class Result(Record):
    """A graph output."""

    tensor: Name
    """Name of the tensor."""
    segment: Name
    """Segment that makes it."""


class SessionPrediction(Record):
    """What the plan is expected to give."""

    latency_s: PositiveFloat
    """One frame through all stages, for frames admitted once per period."""
    period_s: PositiveFloat
    """Time between frames: the longest stage."""
    sustained_period_s: PositiveFloat
    """Time between frames when processors need not wait for the whole stage."""
    input_s: NonNegativeFloat
    """Time to load a frame; in none of the figures above."""
    output_s: NonNegativeFloat
    """Time to read the result; in none of the figures above."""


class WholeModel(Record):
    """The network in one file, with its nodes marked: for runtimes that place nodes themselves."""

    file: FileName
    """An ONNX file of IR version 11: each node has the processor in its metadata (`layer_ann`) and
    its number and stage as a device configuration. It shares the weights of the segments' files."""
    configuration: Name
    """Name of the device configuration."""
    layer_assignment: Name
    """Value of ONNX Runtime's session option `session.layer_assignment_settings`."""


class SessionPlan(Record):
    """A folder exported for ONNX Runtime."""

    schema_version: Literal["parapipe/onnxruntime/1"] = Field(alias="schema")
    """Version of this format."""
    model: SessionModel
    """What is run."""
    platform: Name
    """Name of the platform that it was planned for."""
    processors: OneOrMore[SessionProcessor]
    """The processors used."""
    inputs: tuple[Name, ...]
    """Graph inputs that results depend on."""
    outputs: OneOrMore[Result]
    """Graph outputs, in the model's order; those that are constant are left out."""
    tensors: ByName[SessionTensor]
    """Graph inputs, graph outputs and all tensors of channels, by name."""
    segments: OneOrMore[SessionSegment]
    """All segments in an order in which they can run one after the other."""
    channels: tuple[Channel, ...]
    """One for each tensor and processor that reads it in segments that do not make it."""
    predicted: SessionPrediction
    """What to expect."""
    whole: WholeModel
    """The same network as one file."""
    files: ByName[Sha256]
    """Digest of every other file of the folder but the script, by name."""
