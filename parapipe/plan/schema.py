"""The plan: one configuration written down for a runtime, complete without parapipe.

A runtime needs the plan and the model's weights, nothing else. It starts one thread for every
processor; each takes its operators in the order given, frame after frame, and tensors that cross
from one processor to another go through bounded channels, one for every transfer.

An operator with *frame lag* l works on frame n - l in period n. In a plan of plain stages the lag
is the number of the stage. Where frames are *interleaved* on a processor, or handed over while both
ends work on others, the operators of its stage have several lags; their times count from the start
of the period and repeat every period, and what starts in one period may end in the next. Processors
that share such a lag are of one stage. A plan of several models always repeats so, and has one
stage, whatever the lags.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from parapipe.errors import PlanError
from parapipe.files.atomic import write_atomically
from parapipe.files.documents import read_document
from parapipe.files.record import Figure, PositiveFigure, Record
from parapipe.plan.records import (
    Attribute,
    ByName,
    CoRun,
    MemoryLayout,
    Name,
    OneOrMore,
    PlacedBuffer,
    Predicted,
    Sha256,
    Shape,
    State,
    Stream,
)

SCHEMA: Final = "parapipe/plan/1"


class ModelFile(Record):
    """The model, for people and for reports."""

    name: Name
    """Path as the user gave it, or `zoo:NAME`."""
    sha256: Sha256
    """Hexadecimal digest of the model file."""


class SplitModel(Record):
    """How operators of the model are split into parts, or run again."""

    rules: OneOrMore[Name]
    """As `parapipe split` takes them. Or OPERATOR:againN=READER: a reader, or another run of one,
    takes the result of another run of an operator."""
    granularity: Literal["onnx", "fused"]
    """Whether activations are split with the operator before them."""


class Model(ModelFile):
    """The model file, so that a runtime can see that it has the right one."""

    external: ByName[Sha256] = {}
    """Digest of each external data file, by its path relative to the model's folder."""
    split: SplitModel | None = None
    """The plan's operators are those of the model that is split so; left out if none are split."""


class PlannedModel(ModelFile):
    """One of several models whose frames a plan runs, period for period."""

    external: ByName[Sha256] = {}
    """Digest of each external data file, by its path relative to the model's folder."""
    prefixes: OneOrMore[Name]
    """What the names of the operators and tensors of each of its frames in a period begin with.
    Constants that no node computes have the model's name in front, for all its frames."""
    come_s: OneOrMore[Annotated[float, Field(ge=-1e18, le=1e18)]]
    """When each frame comes, in seconds after a period begins, or before if below 0: the frames of
    a model come in equal steps, and no operator of one starts before it has come."""
    latency_s: PositiveFigure
    """Predicted time from when a frame comes to its last end, of the one that takes longest."""

    @property
    def short_name(self) -> str:
        """The name that stands in front of its operators' names, without a frame's number."""
        number = ".1" if len(self.prefixes) > 1 else ""
        return self.prefixes[0].removesuffix("/").removesuffix(number)


class Tensor(Record):
    """An activation: a graph input, an intermediate result or a graph output."""

    shape: Shape
    """Dimensions, the outermost first."""
    dtype: Name
    """Type of an element, as ONNX calls it in lower case: "float32"."""
    size_bytes: NonNegativeInt
    """Bytes of the dense tensor."""


class Initializer(Record):
    """A constant that stands in the model under its own name."""

    kind: Literal["initializer"]
    """Says so."""


class Computed(Record):
    """A constant that ONNX nodes compute from initializers before the first frame."""

    kind: Literal["computed"]
    """Says so."""
    nodes: OneOrMore[Name]
    """Names of the nodes, in order; a node without a name goes by its first output."""


class Constant(Record):
    """A tensor known before the first frame, and how to get it."""

    name: Name
    """Name by which the operator's inputs call it."""
    shape: Shape
    """Dimensions, the outermost first."""
    dtype: Name
    """Type of an element."""
    stored: Name | None = None
    """Type of the integers that a DequantizeLinear makes it of, if one does: an operator on
    integers takes those."""
    scale_bytes: int | None = None
    """Bytes of the scales and zero points beside them, if they are quantised in blocks."""
    recipe: Annotated[Initializer | Computed, Field(discriminator="kind")]
    """Where its values come from."""


class Operator(Record):
    """An operator as it is placed; alone, or several fused that run at one go."""

    id: Name
    """Name of its first output tensor, unique in the plan."""
    name: Name
    """Name of the first ONNX node it stands for."""
    domain: str
    """ONNX domain; "" is the standard one."""
    type: Name
    """ONNX operator type; of a fused operator, that of its first part; of a quantised one, the
    standard type whose kernel for integers stands for all parts."""
    attributes: ByName[Attribute] = {}
    """ONNX attributes; of a fused operator, those of its first part. What is infinite or no number
    is the text "inf", "-inf" or "nan"."""
    members: tuple[Name, ...]
    """Names of all ONNX nodes it stands for, in order."""
    inputs: tuple[str, ...]
    """Tensors and constants by position; "" where an optional one is left out. Those of a quantised
    operator are integers; its scales and zero points stand in its parts.

    A Gemm or MatMul with a matrix for an output may read a tensor of more than two dimensions: its
    rows are then the first dimension, its columns all the others. (A Flatten went into it.)
    """
    outputs: tuple[str, ...]
    """Tensors by position; "" where an optional one is left out."""
    constants: tuple[Constant, ...] = ()
    """The constants among its inputs, in order of first use."""
    parts: tuple[Operator, ...] = ()
    """For a fused operator, the single ones that it runs, first to last; else empty."""
    opaque: Literal[True] | None = None
    """Stands where the operator is control flow (If, Loop, Scan): its own graphs, which the model
    holds, are run with it, and it reads what they take from outside after its own inputs."""
    computes_in: Name | None = None
    """Data type that a quantised operator computes in, such as "uint8"; left out for others."""
    folded: tuple[Operator, ...] = ()
    """Operators to be folded into this one's constants beforehand, in order: a batch-norm, a scale.

    Each stands here with constants of its own. Their tensors may occur nowhere else. What is folded
    into a part of a fused operator stands with that part only.
    """
    moved_bytes: NonNegativeInt | None = None
    """Bytes that it reads and writes for a frame, in the model's types; left out where no bandwidth
    is stated, for fused operators, and where its type and its tensors say the same."""


class OperatingPoint(Record):
    """Where a processor's clock and supply stand."""

    frequency_hz: PositiveFigure
    """Clock."""
    voltage_v: PositiveFigure
    """Supply."""


class CompilerTarget(Record):
    """The compiler that makes files for a processor."""

    name: Name
    """Name of the compiler, as `parapipe compilers list` has it."""
    target: Name
    """The chip, as the compiler calls it."""


class Processor(Record):
    """A processor that the plan uses."""

    name: Name
    """Name, as in the platform."""
    kind: Name
    """What it is: cpu, gpu, npu, dsp."""
    backend: Name
    """What its operators were timed with."""
    compiler: CompilerTarget | None = None
    """The compiler of its vendor; left out where the platform names none."""
    options: ByName[str] | None = None
    """What an execution provider of ONNX Runtime is given; left out where that is nothing."""
    cores: tuple[NonNegativeInt, ...]
    """Cores to bind its threads to; empty where there are none to bind to."""
    stream: Stream | None = None
    """Stands where it is a stream of a processor; left out where it is one of its own."""
    operating_point: OperatingPoint
    """The point that the predictions hold for."""
    graph_launch_s: Figure | None = None
    """Time to start a captured graph, a run of its operators that needs no other processor in
    between: the first of them holds it; left out where each operator is started by itself."""
    data_type: Name | None = None
    """Type that it keeps floating-point tensors in, and computes in if its operators say nothing
    else; left out where the model is planned as it stands."""

    @property
    def threads(self) -> int:
        """Threads for its operators: one for each core, of which streams have equal shares."""
        return max(1, len(self.cores) // (self.stream.count if self.stream else 1))


class PlacedOperator(Record):
    """An operator on its processor."""

    operator: Name
    """Its id."""
    start_s: Figure
    """Predicted start, from the start of the stage; of the period, where the operators of the stage
    have several lags."""
    end_s: Figure
    """Predicted end, likewise; an operator that ends in the next period ends after this one."""
    lag: NonNegativeInt
    """Periods between the frame's entry and this operator's turn: the stage's number, unless its
    stage has several; a stage with r processors in turn counts r times in those behind it."""
    energy_j: Figure | None = None
    """Predicted dynamic energy for a frame, the static part left out; left out where it is not
    known."""
    data_type: Name | None = None
    """Type that it computes in, if that is wider than its processor's; its time holds the casts of
    what it reads and makes."""


class StageProcessor(Record):
    """What one processor does in a stage."""

    name: Name
    """Name of the processor."""
    replicas: OneOrMore[Name] | None = None
    """Further processors, identical to this one, that take turns with it: of r in all, frame n is
    run by number n modulo r, this one being number 0. Left out where it works alone."""
    operators: OneOrMore[PlacedOperator]
    """In the order in which the processor takes them."""


class Stage(Record):
    """Processors that work on the same frame, or on frames next to each other."""

    index: NonNegativeInt
    """Its number; the first stage is 0."""
    processors: OneOrMore[StageProcessor]
    """The processors that it has for itself."""
    time_s: Figure
    """Predicted time of one frame, transfers from earlier stages included; the period, where the
    operators of the stage have several lags. With replicas, r frames are under way at once."""


class Route(Record):
    """A tensor that goes from one processor to another; all readers there share it."""

    tensor: Name
    """Name of the tensor."""
    source: Name = Field(alias="from")
    """Processor that makes it."""
    target: Name = Field(alias="to")
    """Processor that reads it."""


class Cast(Record):
    """A change of a tensor's type on its way."""

    source_type: Name = Field(alias="from")
    """Type in which the sender keeps it."""
    target_type: Name = Field(alias="to")
    """Type in which the receiver keeps it."""
    operator: Literal["Cast", "QuantizeLinear", "DequantizeLinear"]
    """ONNX operator that it is."""
    processor: Name
    """The one of both ends that does it: which works in the wider type. The tensor travels in the
    narrower one."""
    time_s: Figure
    """Predicted time, which is part of the transfer's."""


class Transfer(Route):
    """A tensor that goes from one processor to another, and when."""

    kind: Literal["stage", "within-stage"]
    """Whether it goes to a later stage, or to another processor of the same one."""
    size_bytes: NonNegativeInt
    """Bytes moved for each frame."""
    time_s: Figure
    """Predicted time; one between stages counts in the receiving stage, from its start."""
    cast: Cast | None = None
    """The change of its type; left out if both processors keep it in the same."""
    queue_depth: PositiveInt
    """Frames of this tensor that may be held at once: from the start of the operator that makes
    it to the end of the last one on the target that reads it."""
    occupies: Name | None = None
    """What it keeps busy for as long as it takes: a processor of the plan, by its name, or a link
    that transfers share; left out if nothing."""
    start_s: Figure | None = None
    """Predicted start, from the start of the receiving stage, or of the period where operators of
    that stage have several lags; left out if it occupies nothing."""
    end_s: Figure | None = None
    """Predicted end, likewise."""


class Plan(Record):
    """A configuration written down for a runtime."""

    schema_version: Literal["parapipe/plan/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: Name | None = None
    """Version that wrote it; versions before 0.2.0 left it out."""
    model: Model
    """What is run; of several models, their names, and a digest of theirs."""
    models: OneOrMore[PlannedModel] | None = None
    """Several models, in the order of their operators; left out if there is one. A frame of the
    plan then holds frames of all of them, and its inputs and outputs are theirs."""
    platform: Name
    """Name of the platform that it is run on."""
    precision: Literal["float16", "int8"] | None = None
    """Type to which the model is to be converted; left out where it is planned as it stands."""
    bandwidth_bytes_per_s: PositiveFigure | None = None
    """What the memory gives all processors together; left out where no limit is known."""
    inputs: tuple[Name, ...]
    """Graph inputs. Once loaded they are available to all processors, without transfer."""
    outputs: OneOrMore[Name]
    """Graph outputs."""
    tensors: ByName[Tensor]
    """All activations by name, those within fused operators included; in the model's types."""
    operators: OneOrMore[Operator]
    """All operators in topological order."""
    processors: OneOrMore[Processor]
    """The processors used."""
    stages: OneOrMore[Stage]
    """The stages, first to last."""
    transfers: tuple[Transfer, ...]
    """What goes between processors, ordered by tensor, then by stage and processor."""
    states: OneOrMore[State] | None = None
    """Inputs that the step before has made; left out if the model has none."""
    sequences: PositiveInt | None = None
    """With states: sequences that take turns, each with states of its own. Frame n reads what frame
    n - sequences has written; left out if there is one."""
    predicted: Predicted
    """What to expect."""
    co_run: CoRun | None = None
    """How much processors slow each other down; left out where nothing is known of that."""
    memory: MemoryLayout | None = None
    """The arenas that activations lie in; plans of older versions have none."""
    buffers: tuple[PlacedBuffer, ...] = ()
    """Where each tensor lies in them, by name; none if there is no `memory`."""

    def save(self, path: Path) -> None:
        """Write the plan as JSON, whole or not at all; the same plan gives the same bytes.

        Raises
        ------
        OutputError
            If the place cannot be written.
        """
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read a plan. It has the form of one; whether it keeps the rules, `verify_plan` says.

        Raises
        ------
        PlanError
            As `read_document` says: whatever of the file is wrong, by its path.
        """
        return read_document(path, cls, schema=SCHEMA, what="plan", error=PlanError)
