"""A plan in terms of ONNX Runtime sessions: the `plan.json` of a folder exported for it.

Such a folder is complete: a model file for each segment, this document, and a script that runs
them with ONNX Runtime and NumPy alone. Each processor is a thread that takes its segments in the
order of their `position`, frame after frame; what a segment reads comes through channels.
`docs/export.md` says how to execute it.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal

from .fields import ANY_TEXT, COUNT, DIGEST, FILE, HERTZ, SECONDS, TEXT, WHOLE

SCHEMA: Final = "parapipe/onnxruntime/1"

Name = Annotated[str, TEXT]
FileName = Annotated[str, FILE]
Digest = Annotated[str, DIGEST]
Value = Annotated[str, ANY_TEXT]
Whole = Annotated[int, WHOLE]
Count = Annotated[int, COUNT]
Seconds = Annotated[float, SECONDS]
Hertz = Annotated[float, HERTZ]


@dataclass(frozen=True, slots=True)
class Model:
    """The model that the segments were cut from."""

    name: Name
    """Path as the user gave it, or `zoo:NAME`."""
    sha256: Digest
    """Hexadecimal digest of the model file."""


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor: one thread that runs its segments one at a time."""

    name: Name
    """Name, as in the platform."""
    kind: Name
    """What it is: cpu, gpu, npu, dsp."""
    cores: tuple[Whole, ...]
    """Cores to bind its threads to; empty where there are none to bind to."""
    threads: Count
    """Threads of each of its sessions, the one that calls `run` included."""
    provider: Name
    """ONNX Runtime's execution provider that runs its segments; "rknnlite" where Rockchip's library
    of that name runs what its compiler has made of them; "ncnn" where ncnn runs them."""
    frequency_hz: Hertz
    """Clock that the predictions hold for."""
    options: Mapping[Name, Value] = field(default_factory=dict)
    """Options of the provider, by name; of "rknnlite", `core_mask`: "NPU_CORE_0"; of "ncnn",
    `vulkan`: number of the GPU, on the CPU without, and `float16`: "1" to compute in it."""
    threads_option: Name | None = None
    """Option of the provider that takes `threads`, where it has threads of its own."""
    substitute: Name | None = None
    """Why `provider` stands in for the processor, where ONNX Runtime has none that runs on it."""
    turns: tuple[Name, ...] = ()
    """Processors that take turns on frames, itself among them: of r, frame n is run by number n
    modulo r, and segments name the first of them. None where it works alone."""

    @property
    def first(self) -> str:
        """Name of the processor that its segments name."""
        return self.turns[0] if self.turns else self.name

    @property
    def turn(self) -> tuple[int, int]:
        """Its number among those that take turns, and how many these are."""
        return (self.turns.index(self.name), len(self.turns)) if self.turns else (0, 1)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that enters the graph, leaves it, or goes from one segment to another."""

    dtype: Name
    """Type of an element, as NumPy and ONNX call it: "float32"."""
    shape: tuple[Whole, ...]
    """Dimensions, the outermost first."""
    size_bytes: Whole
    """Bytes of the dense tensor."""

    def __str__(self) -> str:
        return type_text(self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of operators that a processor executes at one go: one file, one session."""

    id: Name
    """Unique, and the file's name without its ending: "03-big"; the number counts all segments."""
    file: FileName
    """The model, an ONNX file in the same folder, or what a compiler has made of it. Its inputs and
    outputs are those below, in the same order; in an ONNX file, they have the same names. Of ncnn
    it is the `.param`; the weights are in the `.bin` of the same name."""
    processor: Name
    """Name of the processor that runs it."""
    stage: Whole
    """Number of the stage."""
    lag: Whole
    """Periods between a frame's entry and this segment's turn: the stage's number, unless frames
    are interleaved within a stage."""
    position: Whole
    """Its place in the order of its processor, from 0."""
    inputs: tuple[Name, ...]
    """Tensors to feed."""
    outputs: tuple[Name, ...]
    """Tensors that it makes, for other segments or as results."""
    operators: tuple[Name, ...]
    """Ids of the plan's operators that it holds, in the order of the plan."""
    start_s: Seconds
    """Predicted start, from the start of the stage."""
    end_s: Seconds
    """Predicted end, from the start of the stage."""
    time_s: Seconds
    """Predicted time of its operators, added up."""
    on_cpu: tuple[Name, ...] = ()
    """Nodes that the board's CPU runs inside the file, as the compiler that made it says."""


@dataclass(frozen=True, slots=True)
class Channel:
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
    consumers: tuple[Name, ...]
    """Segments on that processor that read it, in their order."""
    queue_depth: Count
    """Frames of this tensor that may be held at once: from the start of the segment that makes it
    to the end of the last consumer."""
    time_s: Seconds
    """Predicted time of the transfer; 0 for inputs and within a processor."""


@dataclass(frozen=True, slots=True)
class View:
    """A tensor whose elements are a range of another one's, one behind the other in memory."""

    tensor: Name
    """The range. The segment that makes it writes it there, and one that reads it is given just
    that memory."""
    whole: Name
    """The tensor that it is a range of. If it comes from no segment and is no graph input, its
    memory is allocated as a whole, for each frame on its way, and its ranges are made by segments.
    """
    begin: Whole
    """The first element, counted in the order of rows."""
    end: Count
    """The one behind the last."""


@dataclass(frozen=True, slots=True)
class Arena:
    """Memory in which tensors lie at offsets that the plan has chosen."""

    name: Name
    """Name of the memory, as in the platform."""
    size_bytes: Whole
    """Its size."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies in an arena."""

    tensor: Name
    """One that segments make, that is made of ranges, or a graph input."""
    arena: Name
    """Name of the arena."""
    offset_bytes: tuple[Whole, ...]
    """Bytes from its start: frame n lies at the offset number n modulo their count."""
    over: Name | None = None
    """The tensor that its segment reads and writes it over."""
    within: Name | None = None
    """The tensor that it is a range of, in the same bytes: what joins or cuts them has nothing to
    do."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A tensor that goes from segment to segment and lies in no arena."""

    tensor: Name
    """Its name."""
    why: Name
    """The reason."""


@dataclass(frozen=True, slots=True)
class Result:
    """A graph output."""

    tensor: Name
    """Name of the tensor."""
    segment: Name | None
    """Segment that makes it; null for a graph input."""


@dataclass(frozen=True, slots=True)
class State:
    """A graph input that the step before has made."""

    input: Name
    """Name of the graph input."""
    output: Name
    """Name of the graph output."""
    kind: Literal["state", "token"]
    """state: the same tensor; of one that has grown, the oldest entries go. token: the index of the
    largest number along the last axis."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the plan is expected to give."""

    latency_s: Seconds
    """One frame through all stages, for frames admitted once per period."""
    period_s: Seconds
    """Time between frames: the longest stage."""
    sustained_period_s: Seconds
    """Time between frames when processors need not wait for the whole stage."""
    input_s: Seconds
    """Time to load a frame; in none of the figures above."""
    output_s: Seconds
    """Time to read the result; in none of the figures above."""


@dataclass(frozen=True, slots=True)
class WholeModel:
    """The network in one file, with its nodes marked: for runtimes that place nodes themselves."""

    file: FileName
    """An ONNX file of IR version 11: each node has the processor in its metadata (`layer_ann`) and
    its number and stage as a device configuration. It shares the weights of the segments' files."""
    configuration: Name
    """Name of the device configuration."""
    layer_assignment: Name
    """Value of ONNX Runtime's session option `session.layer_assignment_settings`."""


@dataclass(frozen=True, slots=True)
class Denormals:
    """Numbers of a weight that are denormal, smaller than the normal range."""

    tensor: Name
    """Name of the weight."""
    count: Count
    """How many they are."""
    of: Count
    """How many numbers it has."""


@dataclass(frozen=True)
class SessionPlan:
    """A folder exported for ONNX Runtime."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    schema: Literal["parapipe/onnxruntime/1"]
    """Version of this format."""
    model: Model
    """What is run."""
    platform: Name
    """Name of the platform that it was planned for."""
    processors: tuple[Processor, ...]
    """The processors used."""
    inputs: tuple[Name, ...]
    """Graph inputs that results depend on."""
    outputs: tuple[Result, ...]
    """Graph outputs, in the model's order; those that are constant are left out."""
    tensors: Mapping[str, Tensor]
    """Graph inputs, graph outputs, all tensors of channels and of views, by name."""
    segments: tuple[Segment, ...]
    """All segments in an order in which they can run one after the other."""
    channels: tuple[Channel, ...]
    """One for each tensor and processor that reads it in segments that do not make it. What reads
    a range of a tensor, or a tensor made of ranges, reads the tensors that segments make."""
    predicted: Prediction
    """What to expect."""
    whole: WholeModel | None
    """The same network as one file; null in a folder of compiled or converted segments."""
    files: Mapping[str, Digest]
    """Digest of every other file of the folder but the script, by name."""
    denormals: tuple[Denormals, ...] = ()
    """Weights of a kilobyte and more that hold denormal numbers."""
    views: tuple[View, ...] = ()
    """Tensors that are ranges of others: what joins parts, or cuts them out, copies nothing."""
    arenas: tuple[Arena, ...] = ()
    """One for each memory, for a run with arenas."""
    places: tuple[Place, ...] = ()
    """Where tensors lie in them."""
    outside: tuple[Outside, ...] = ()
    """Those that have no place, and why."""
    states: tuple[State, ...] = ()
    """Inputs that the step before has made: frames bring those of the first steps alone."""
    sequences: Count = 1
    """How many sequences take turns, each with states of its own: frame n reads what frame
    n - sequences has made."""


def type_text(dtype: object, shape: Sequence[int]) -> str:
    """Return type and shape as in float32[1,3]."""
    return f"{dtype}[{','.join(map(str, shape))}]"
