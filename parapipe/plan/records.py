"""Records of a plan beside its schedule: fields, the layout of memory, and what is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from parapipe.files.record import Figure, PositiveFigure, Record
from parapipe.platform.memories import MemorySystem

_Value = TypeVar("_Value")


def _sort_by_name(values: Mapping[str, _Value]) -> Mapping[str, _Value]:
    """Order by name, so that equal plans have equal bytes."""
    return dict(sorted(values.items()))


def _refuse_empty(values: tuple[_Value, ...]) -> tuple[_Value, ...]:
    """Refuse an empty list; pydantic's own check also complains of lists of wrong entries."""
    if not values:
        raise PydanticCustomError("empty", "is empty, and at least one entry should be there")
    return values


def _refuse_once(value: Any, handler: Any) -> Any:  # noqa: ANN401 - what stands in a file
    """Say once what an attribute may be, not once for each kind of value."""
    try:
        # A list in a file arrives here as a list, which is not strictly a tuple.
        return handler(tuple(value) if isinstance(value, list) else value)
    except ValidationError as error:
        raise PydanticCustomError(
            "attribute",
            "should be an integer, a finite number, a text, or a list of one of these kinds",
        ) from error


Name = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Shape = tuple[NonNegativeInt, ...]
ByName = Annotated[Mapping[Name, _Value], AfterValidator(_sort_by_name)]
OneOrMore = Annotated[
    tuple[_Value, ...], AfterValidator(_refuse_empty), Field(json_schema_extra={"minItems": 1})
]
Attribute = Annotated[
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...],
    WrapValidator(_refuse_once),
]


Bytes = Annotated[int, Field(ge=0, le=1 << 60)]
"""So that sums of two stay whole numbers of 64 bits."""


class Arena(Record):
    """The arena of one memory: activations, copies and queues of all frames on their way."""

    name: Name
    """Name of the memory, as in the platform."""
    processors: OneOrMore[Name]
    """Processors that keep their tensors in it, those that the plan does not use included."""
    alignment_bytes: PositiveInt
    """All sizes and offsets are multiples of this."""
    size_bytes: Bytes
    """Bytes of the arena."""
    bound_bytes: Bytes
    """No arena does with less while this schedule is kept and buffers share bytes so: their peak,
    or more if that is proven."""
    proven: bool
    """Whether the arena has the size of that bound."""


class MemoryLayout(Record):
    """The memories of a plan."""

    assumed: bool
    """Whether the platform states no memories, so that one shared by all processors is assumed."""
    arenas: OneOrMore[Arena]
    """One for each memory, in the platform's order."""
    copying: tuple[tuple[Name, Name], ...] = ()
    """Pairs of processors in one memory that hand over a copy, since their link converts."""

    @property
    def system(self) -> MemorySystem:
        """The memory system that this tells of, without what it says of weights."""
        return MemorySystem(
            names=tuple(each.name for each in self.arenas),
            assumed=self.assumed,
            memory_of={p: m for m, each in enumerate(self.arenas) for p in each.processors},
            alignment_bytes=tuple(each.alignment_bytes for each in self.arenas),
            usable_bytes=(None,) * len(self.arenas),
            copying=frozenset(self.copying),
            packing={},
        )


class PlacedBuffer(Record):
    """A tensor's place in the arena of the memory that its processor uses.

    Frame n lies at the offset number n modulo their count. Whoever writes there waits until those
    that read what lay there before have ended: in the predicted schedule they have.
    """

    tensor: Name
    """Name of the tensor."""
    content: Literal["tensor", "copy", "queue"]
    """tensor: where it was made or loaded; copy: of a tensor that came from another processor;
    queue: the slots between processors that work on different frames, of a tensor or a copy."""
    processors: OneOrMore[Name]
    """The processor that makes it, gets the copy, or reads the graph input first; then the others
    that read it there."""
    size_bytes: Bytes
    """Bytes of one frame, a multiple of the alignment."""
    offset_bytes: OneOrMore[Bytes]
    """Where it lies, from the start of the arena."""
    over: Name | None = None
    """The tensor whose bytes it takes over: its operator is element-wise and the last to read that
    one. Left out if there is none."""
    within: Name | None = None
    """The tensor that it is a range of, in the same bytes: a part of what a Concat joins, or what a
    Slice or a Reshape makes. Then that operator has nothing to copy. Left out if there is none."""


class Coverage(Record):
    """Where the predicted times come from: shares of the operators' time, free views aside."""

    measured: Figure
    """Share of time that was measured for this very operator."""
    stated: Figure | None = None
    """Share of time that the chip's maker states for this very operator; left out if there is
    none."""
    compiled: Figure | None = None
    """Share of time out of cycles that a processor's compiler tells; left out if there is none."""
    fitted: Figure
    """Share of time from a model fitted to measurements."""
    nominal: Figure
    """Share of time from data sheets."""


class PredictedTimes(Record):
    """What the plan is expected to give."""

    latency_s: PositiveFigure
    """One frame through all stages, for frames admitted once per period; where the operators of a
    stage have several lags, from its first start to its last end. No less than the memory needs."""
    period_s: PositiveFigure
    """Time between frames: the longest stage, one with r processors in turn counting 1 / r; or what
    the memory needs for a frame, if that is longer."""
    sustained_period_s: PositiveFigure
    """Time between frames when processors need not wait for the whole stage, with the queues of
    the plan. No less than the memory needs."""


class PowerLimit(Record):
    """What a power budget asks for."""

    budget_w: PositiveFigure
    """Watts that the processors may draw on average."""
    period_s: PositiveFigure
    """Time between frames at which they draw that."""


class Predicted(PredictedTimes):
    """What the plan is expected to give, energy included."""

    throughput_fps: PositiveFigure
    """Frames per second: the reciprocal of the period."""
    energy_j: PositiveFigure
    """Energy of the used processors per frame."""
    board_energy_j: PositiveFigure
    """The same with the idle power of the board."""
    input_s: Figure
    """Time to load a frame; in none of the figures above."""
    output_s: Figure
    """Time to read the result; in none of the figures above."""
    memory_s: Figure | None = None
    """Time in which the memory serves all operators of a frame, one of them at most for its own
    time: latency and periods are no less. Left out where its bandwidth is not known."""
    power: PowerLimit | None = None
    """What limits the power: periods are no less. Left out where nothing does."""
    coverage: Coverage | None = None
    """Where the times come from; left out where that is not known."""


class CoRunFactor(Record):
    """How many times as long operators of a processor take while others are busy."""

    processor: Name
    """Who is slowed down."""
    busy: OneOrMore[Name]
    """All of these are busy beside it."""
    operator_class: Literal["compute", "memory"] | None = Field(default=None, alias="class")
    """Of the operators that are slowed down; both if left out."""
    busy_class: Literal["compute", "memory"] | None = None
    """Of what the others run; both if left out."""
    factor: Annotated[float, Field(ge=1, le=1e6)]
    """Time beside them over the time alone; the largest of all that hold counts."""


class Draw(Record):
    """What a processor draws from the memory."""

    most_bytes_per_s: PositiveFigure
    """At most."""
    cache_bytes: Figure
    """What moves no more bytes draws nothing, and is bound by arithmetic."""


class TransferSpans(Record):
    """When a transfer keeps something busy."""

    tensor: Name
    """Name of the tensor."""
    source: Name = Field(alias="from")
    """Processor that makes it."""
    target: Name = Field(alias="to")
    """Processor that reads it."""
    spans_s: OneOrMore[tuple[Figure, Figure]]
    """Start and end, frame by frame."""


class CoRun(Record):
    """How much processors slow each other down, and when all runs therefore.

    Latency and periods that are predicted hold this in. The times of the stages are of operators
    that run alone. One law holds: a table, a memory that is shared, or contention in proportion
    to what the others move.
    """

    slowdowns: tuple[CoRunFactor, ...] = ()
    """The table."""
    memory_share: Figure | None = None
    """Of the table: an operator is bound by the memory if its bytes over its time alone are at
    least this share of what its processor draws."""
    bandwidth_bytes_per_s: PositiveFigure | None = None
    """Of the shared memory, which serves processors in proportion to what they draw at most, and
    none more than it asks for."""
    contention_s_per_byte: PositiveFigure | None = None
    """What an operator takes longer, as a share of its time, for each byte a second that the others
    move when they run alone."""
    draws: ByName[Draw] = Field(default_factory=dict)
    """By the name that the law has for a processor; of a table, and of the shared memory."""
    names: ByName[Name] = Field(default_factory=dict)
    """What the law calls a processor, where that is a part or a stream of another one."""
    free: PredictedTimes
    """What the plan would give if nothing slowed anything down."""
    exact: bool
    """Whether all recurs, to the picosecond, when frames come once per predicted period; else the
    predicted times are those of a long run."""
    spans_s: ByName[OneOrMore[tuple[Figure, Figure]]] = Field(default_factory=dict)
    """By operator: start and end of as many frames in a row as it takes until all recurs, in
    seconds from when the first of them comes. Left out where nothing recurs, or the frames are
    many."""
    transfers: tuple[TransferSpans, ...] = ()
    """Likewise of transfers that keep something busy."""


class Stream(Record):
    """One of the streams on which a processor of the platform runs several operators at once."""

    of: Name
    """Name of that processor. Its streams share its cores."""
    count: Annotated[int, Field(ge=2)]
    """How many streams it has here, those that the plan does not use included."""


class WayBack(Record):
    """A state that goes from the processor that writes it to one that reads it a step later."""

    source: Name = Field(alias="from")
    """Processor that writes it."""
    target: Name = Field(alias="to")
    """Processor that reads it."""
    time_s: Figure
    """Predicted time."""


class State(Record):
    """A graph input that the step before has made."""

    input: Name
    """Name of the graph input."""
    output: Name
    """Name of the graph output."""
    kind: Literal["state", "token"]
    """state: the same tensor, fed back as it is; where its shape grows, the next step has another.
    token: whoever runs the plan chooses the input of the output, as the next word of the logits."""
    ways_back: tuple[WayBack, ...] = ()
    """Where a state is written and read on different processors; of processors that take turns, the
    longest way between any two, under the names of the first ones."""
