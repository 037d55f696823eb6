"""The records of front.json for stages, memory, inputs, bounds and several models."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from parapipe.files.record import Figure, PositiveFigure, Row, without_none
from parapipe.mappings.memory import AliveRow, MemoryPeak
from parapipe.plan.schema import OperatingPoint
from parapipe.platform.memories import MemorySystem
from parapipe.platform.precision import Precision
from parapipe.platform.thermal_state import State
from parapipe.search.option_types import MOST_DRAWS


class ProcessorRow(Row):
    """A processor of a stage, and what it does for a frame."""

    name: str
    """Name, as in the platform."""
    operating_point: OperatingPoint
    """The point that the figures hold for."""
    busy_s: Figure
    """Seconds of a frame in which it runs operators."""
    transfer_s: Figure
    """Seconds of a frame in which it sends or receives, whatever stage that is for."""
    dynamic_energy_j: Figure
    """Joules of its operators per frame: αV²f·U of equation (8), times their seconds."""
    static_power_w: Figure
    """Watts as long as the configuration uses it: βV of equation (8)."""
    segments: int | None = None
    """Segments that it has; none where they are neither limited nor cost anything."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out segments that are not stated."""
        return without_none(write(self), "segments")


class StageRow(Row):
    """A stage of a configuration."""

    processors: Annotated[tuple[ProcessorRow, ...], Field(min_length=1)]
    """Those that run at least one operator, in the platform's order."""
    first_operator: str
    """Id of its first operator in the stored order."""
    last_operator: str
    """Id of its last operator in the stored order."""
    subgraphs: tuple[int, ...]
    """Numbers, from 1, of the subgraphs it runs, wholly or in part."""
    time_s: Figure
    """One frame, the transfer from the previous stage included. Where the period is less than that
    of a stage, seconds from the start of a period to its last end."""
    in_turn: bool = False
    """Whether its processors take turns on frames, each for its own; they are identical then, and
    each one's figures are its share."""


class MemoryRow(Row):
    """What a configuration needs of one memory."""

    name: str
    """As in `memory.memories`."""
    peak_bytes: int
    """The most at one moment."""
    weights_bytes: int
    """Of these, weights, which are there at any time."""
    segments_bytes: int | None = None
    """Of these, what segments take by themselves; none where the platform does not say it."""
    at_s: Figure
    """First moment of the peak, from the start of the period."""
    alive: tuple[AliveRow, ...]
    """Activations at that moment, the largest first."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what segments do not take."""
        return without_none(write(self), "segments_bytes")

    @property
    def constant_bytes(self) -> int:
        """What is there at any time: weights, and what segments take."""
        return self.weights_bytes + (self.segments_bytes or 0)

    @classmethod
    def of_peak(cls, peak: MemoryPeak) -> Self:
        """Return the row of a peak."""
        own_bytes = peak.segments_bytes or None
        return cls.of(peak, peak_bytes=peak.size_bytes, segments_bytes=own_bytes)


class MemoryEntry(Row):
    """A memory of the platform."""

    name: str
    """Name; `shared memory assumed` if the platform states none."""
    processors: tuple[str, ...]
    """Those that keep their tensors in it."""
    usable_bytes: Figure | None
    """What is free for a plan; none if the platform does not say."""
    alignment_bytes: int
    """Each tensor takes a multiple of this."""


class MemorySystemRow(Row):
    """The memories of the platform, and who keeps copies."""

    assumed: bool
    """Whether the platform states no memories, so that one shared by all processors is assumed."""
    memories: tuple[MemoryEntry, ...]
    """In the platform's order."""
    copying: tuple[tuple[str, str], ...]
    """Pairs of processors in one memory that hand over a copy, since their link converts."""
    packing: dict[str, float]
    """Processors with a copy of the weights of their own: its bytes per byte in the model."""
    segment_bytes: dict[str, int] | None = None
    """Processors of which each segment takes memory by itself: its bytes; none if none does."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what segments do not take."""
        return without_none(write(self), "segment_bytes")

    @classmethod
    def of_system(cls, system: MemorySystem) -> Self:
        """Return the row of a memory system."""
        memories = tuple(
            MemoryEntry(
                name=name,
                processors=tuple(p for p, own in system.memory_of.items() if own == m),
                usable_bytes=system.usable_bytes[m],
                alignment_bytes=system.alignment_bytes[m],
            )
            for m, name in enumerate(system.names)
        )
        pairs = tuple(sorted(system.copying))
        return cls.of(
            system,
            memories=memories,
            copying=pairs,
            packing=dict(system.packing),
            segment_bytes=dict(system.segment_bytes) or None,
        )

    @property
    def system(self) -> MemorySystem:
        """The memory system that this is the row of."""
        return MemorySystem(
            names=tuple(each.name for each in self.memories),
            assumed=self.assumed,
            memory_of={p: m for m, each in enumerate(self.memories) for p in each.processors},
            alignment_bytes=tuple(each.alignment_bytes for each in self.memories),
            usable_bytes=tuple(each.usable_bytes for each in self.memories),
            copying=frozenset(self.copying),
            packing=self.packing,
            segment_bytes=self.segment_bytes or {},
        )


class LeastRow(Row):
    """What no configuration is below that may be listed with the front's options: proven.

    That is stages, replicated or not, and frames interleaved, on processors as they are or divided,
    at any operating point. Of operators split, it is said of the ways to split that were found.
    """

    period_s: Figure
    """Whatever its latency. Of stages the period is the longest one."""
    latency_s: Figure
    """If its period is at most that of the configuration; 0 if nothing is known."""
    energy_j: Figure
    """If its period is at most that of the configuration; 0 if nothing is known."""


class Options(Row):
    """What the front was made with."""

    mapper: str
    """Name of the mapper."""
    granularity: Literal["onnx", "fused"]
    """Whether activations are mapped with the operator before them."""
    precision: Precision = "model"
    """What the model is planned in: as it stands, or as after conversion to this type."""
    exclude: tuple[str, ...] | None = None
    """Processors of the platform that were left out; none if there are none."""
    thermal_state: State | None = None
    """Whether clocks are the default ones or those of long runs; what the platform says if left
    out."""
    pins: dict[str, str] | None = None
    """Processors that operators had to run on, by their names or by patterns; none if there are
    none."""
    split: Literal["none", "auto"] = "none"
    """Whether operators may be split over several processors."""
    interleave: Literal["none", "auto"] = "none"
    """Whether processors may take operators of several frames in turn."""
    objectives: tuple[str, ...]
    """What the front trades."""
    max_memory_bytes: float | dict[str, float] | None = None
    """The most memory that a configuration may need at one moment, of all memories together or by
    memory; none if there is no limit."""
    rate_fps: PositiveFigure | None = None
    """Frames per second that arrive, of a single model: all configurations reach them, and energy
    is stated at this rate; none if nothing was said."""
    max_stages: int | None = None
    """The most stages that a configuration may have; none if there is no limit."""
    max_segments: int | dict[str, int] | None = None
    """The most segments of each processor, or of some; none if there is no limit."""
    compiler: str | None = None
    """Compiler whose times of segments the search follows; left out if none was asked for."""
    recompute: bool = False
    """Whether tensors may be made again in place of keeping them."""
    schedules: str
    """What kind of schedules the search chose from."""
    proves: tuple[str, ...]
    """What `proven` and `gap` speak of."""
    time_limit_s: PositiveFigure
    """For one subgraph on one set of processors."""
    seed: int
    """Of the solvers and the draws."""
    draws: int = Field(default=0, ge=0, le=MOST_DRAWS)
    """Draws of the costs behind `intervals` and `chances`."""
    robust: float | None = None
    """The quantile of which a front was asked for; none if none was."""
    deterministic: bool
    """Whether mappers counted their work in place of wall time."""
    resolution: Figure
    """Configurations that another one matches to within this share in every objective are left
    out of the front, unless they have a name or are on the paper's front."""
    energy_resolution: Figure | None
    """For every configuration that any schedules make there is one, before such are left out, that
    is larger by at most this share in latency, period and energy each. null if no share is known:
    the mapper's own schedules are all there was to choose from, or time ran out."""
    energy_resolution_asked: Figure | None
    """What that share was to be at most. null if the mapper's own schedules are all there was."""
    energy_timed_out: bool
    """Whether time limits kept that share from being less."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the choices that were not made."""
        return without_none(
            write(self),
            "exclude",
            "thermal_state",
            "pins",
            "rate_fps",
            "max_stages",
            "max_segments",
            "compiler",
        )


class CompilationRow(Row):
    """What a compiler told of the segments of the best plans, see `map --compiler`."""

    compiler: str
    """Name of the compiler."""
    version: str
    """Its own version."""
    rounds: int
    """How many searches there were, each with the times that were compiled before."""
    plans: int
    """How many plans of the last search had their segments compiled."""
    segments: int
    """How many different segments these have on processors of the compiler."""
    total_difference: Figure
    """Sum of |compiled - predicted| of their times / sum of predicted, after the last search."""
    largest_difference: Figure
    """Largest |compiled - predicted| / predicted of a segment, be it short; after that search."""
    refused: tuple[str, ...]
    """Why segments did not compile, a sentence each."""
    on_cpu: tuple[str, ...] = ()
    """Nodes that the compiler leaves to the CPU inside a segment of these plans, as the model has
    them."""


class Inputs(Row):
    """What the front was made of, as it was given; paths are those of the folder it was made in."""

    platform: str
    """Name of a shipped platform, or path of a file."""
    profiles: tuple[str, ...]
    """CSV files of times, also those beside the platform's file; none: the shipped ones, or for a
    shipped platform those in the folder of the command."""
    dims: dict[str, int]
    """Values of named dimensions."""
    shapes: dict[str, tuple[int, ...] | tuple[str, tuple[int, ...]]]
    """Shapes of inputs and of results that depend on values, some with a data type before."""
    rules: str | None
    """File of rules for the work of operators."""
    at_most: int | None = None
    """Entries of results whose length depends on values; left out if none are bounded."""
    states: dict[str, str] | None = None
    """Outputs that the user says are fed back, by input; left out if there are none."""
    sequences: int | None = None
    """How many sequences take turns, each with states of its own; left out if it is one."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is said of some models only."""
        return without_none(write(self), "at_most", "states", "sequences")


class DvfsRow(Row):
    """The operating points of a processor that configurations were searched for at."""

    operating_points: tuple[OperatingPoint, ...]
    """The default one first."""
    listed: int
    """How many the platform lists."""
    switching_up_s: Figure | None
    """Until the clock has a higher point, none if the platform does not say. A processor keeps its
    point while a configuration runs, so that this is in no figure."""
    switching_down_s: Figure | None
    """Until the clock has a lower point."""


class DemandRow(Row):
    """A model, and what is asked for it."""

    name: str
    """Name, with which its operators' and tensors' names begin."""
    model: str
    """Path as the user gave it, or `zoo:NAME`."""
    model_sha256: str
    """Hexadecimal digest of the model file."""
    frames: int
    """Frames of it in a pattern."""
    rate_fps: PositiveFigure
    """Frames a second that are asked."""
    pattern_fps: PositiveFigure
    """Frames a second that a pattern gives: at least those."""
    deadline_s: PositiveFigure | None
    """Most latency that is asked; null if any will do."""
    priority: PositiveFigure
    """What its latency counted in comparison to others'."""


class SharingRow(Row):
    """By how much all rates could grow together, in one way to share processors: by loads."""

    rate_factor: PositiveFigure
    """1: the rates as they are asked, and no more."""
    processors: dict[str, tuple[str, ...]]
    """Processors that each model may use."""


class SeveralRow(Row):
    """Several models on one board."""

    period_s: PositiveFigure
    """Seconds in which a pattern repeats: a common period of the rates, and that of every row."""
    models: tuple[DemandRow, ...]
    """In the order of their operators: by priority, then by deadline, then as they were given."""
    shared: PositiveFigure
    """By how much all rates could grow together with processors shared, whatever the latency: by
    loads; never below any of the ways that follow."""
    bound: PositiveFigure
    """No pattern lets all rates grow by more, however long it is: proven, by loads."""
    own_processors: SharingRow | None
    """The best with processors of its own for each model, each frame assigned by itself; null if
    there are too few or too many of them, or some run no model whole."""
    in_turn: SharingRow
    """One model after the other on all processors, each with its best throughput."""
    one_each: SharingRow | None
    """The best with a single processor for each model, which several may share; null if no
    processor runs some model whole."""


class ServedRow(Row):
    """What a model gets."""

    latency_s: PositiveFigure
    """From when a frame comes to its last end, of the frame of a pattern that takes longest."""
    come_s: tuple[float, ...]
    """When its frames come, in seconds after a pattern begins: in equal steps."""
    utilisation: Figure
    """Share of its turns that frames take if the pattern repeats as fast as it can."""
    random_p99_s: Figure | None
    """99 of 100 frames are through within this time if they come at random times, at the asked rate
    on average, and the pattern repeats as fast as it can; null if more and more frames wait."""


class GrowthRow(Row):
    """What the models get of a configuration, each by its name."""

    rate_factor: PositiveFigure
    """By how much all rates could grow together, with this order of work: at most the bound."""
    contended_rate_factor: PositiveFigure | None
    """The same while processors slow each other down at the memory; null if the platform does not
    say how much."""
    power_w: PositiveFigure
    """Watts of the used processors at the asked rates."""
    models: dict[str, ServedRow]
    """What each gets at the asked rates."""
