"""The format of front.json, published as JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from parapipe.cost.coverage import CoverageRow
from parapipe.documents.co_run_rows import CoRunCostRow, FreeBoundsRow
from parapipe.documents.doubt import ChancesRow, IntervalsRow, MediansRow, QuantilesRow
from parapipe.documents.figure_table import DRAWN, SHOWN_FIELDS
from parapipe.documents.front_records import (
    CompilationRow,
    DvfsRow,
    GrowthRow,
    Inputs,
    LeastRow,
    MemoryRow,
    MemorySystemRow,
    Options,
    ProcessorRow,
    SeveralRow,
    StageRow,
)
from parapipe.documents.shown import shown_figure
from parapipe.documents.state_rows import StateRow
from parapipe.documents.token_rows import TokensRow
from parapipe.errors import NoConfigurationError
from parapipe.files.mistakes import did_you_mean, listed
from parapipe.files.record import Figure, PositiveFigure, Row, without_none
from parapipe.mappings.mapping import Kind
from parapipe.search.exploration_result import UnfinishedRow
from parapipe.uncertainty.robust import RobustRow

DEFAULT = "balanced"
SCHEMA: Literal["parapipe/front/1"] = "parapipe/front/1"


class EvaluatedRow(Row):
    """What a configuration takes by the final evaluation, as `parapipe evaluate` makes it.

    Its operators keep their places and their order, each starts as early as it can, and what the
    platform's section `evaluation` knows beyond costs that add up counts.
    """

    network: str | None
    """The measured network that the model is: operators then take the times of its own rows."""
    latency_s: PositiveFigure
    """One frame through all stages."""
    longest_stage_s: PositiveFigure
    """The longest stage by itself."""
    period_s: PositiveFigure
    """Time between frames, while the stages share the memory."""
    throughput_fps: PositiveFigure
    """Reciprocal of the period."""
    sustained_period_s: PositiveFigure
    """As of the configuration, with these times; as if the stages did not share the memory."""
    energy_j: PositiveFigure
    """Joules of the used processors per frame at that period."""
    board_energy_j: PositiveFigure
    """The same with the board's idle power."""


class ConfigurationRow(Row):
    """A configuration and what it gives."""

    id: str = Field(pattern=r"^c[0-9]+$")
    """Its number by ascending latency; its plan is plans/ID.json."""
    kind: Kind
    """sequential: one processor; pipe-only: several stages of one processor each; para-only: one
    stage of several; hybrid: several stages, at least one of several processors; interleaved: a
    processor takes operators of several frames in turn; replicated: identical processors take
    turns on the frames of a stage."""
    names: tuple[str, ...]
    """Names of its own: the best of its kind, the balanced and the most efficient one; if memory is
    an objective, also that of the least; robust-L, -T and -E are the best at the quantile. Of those
    that are equal in what a name is for, it is the best in the other figures. Times are equal to
    within a billionth, energies to within a thousandth."""
    pareto: bool
    """On the front of the objectives in `options`: no other one listed is at least as good in all
    of them, by the figures that stand here, and better in one. Of several models the objectives
    are the latency of each, the factor by which rates can grow (with contention, where it is
    known), and energy."""
    pareto_latency_throughput: bool
    """On the paper's front: the same without energy, and without memory."""
    stages: Annotated[tuple[StageRow, ...], Field(min_length=1)]
    """First to last."""
    drawing: str
    """The stages in one line, as in `big+little[1-9] │ gpu[10-11]`: processors and subgraphs. A
    subgraph cut between stages shows as `big[1-3…] │ gpu[…3-11]`, a stage that leaves one out as
    `big[1,3] │ gpu[2]`, a processor that is not at its
    default operating point with its gigahertz, as `big@1.2[1-9]`, processors that take turns on
    frames as `dsp0/dsp1[1-11]`. Where frames are interleaved, all
    processors and the frames under way: `big+gpu[1-11] takes turns on 4 frames`. Of several models,
    what runs each: `detect on gpu, read on big+gpu`."""
    latency_s: PositiveFigure
    """One frame through all stages."""
    period_s: PositiveFigure
    """Time between frames: the longest stage, of r processors in turn 1 / r; where frames are
    interleaved, or handed over while both ends work, less than a stage's time may do."""
    sustained_period_s: PositiveFigure
    """Time between frames for an executor with one thread per processor and bounded channels."""
    throughput_fps: PositiveFigure
    """Frames per second: the reciprocal of the period."""
    energy_j: PositiveFigure
    """Joules of the used processors per frame: one each period, or each `arrival_s`."""
    board_energy_j: PositiveFigure
    """The same with the board's idle power."""
    frames_per_joule: PositiveFigure
    """Efficiency of the used processors."""
    board_frames_per_joule: PositiveFigure
    """Efficiency of the board."""
    arrival_s: PositiveFigure | None = None
    """Time between frames as they arrive, if their rate was given: static power counts for so long
    in energies; none if a frame comes each period."""
    input_s: Figure
    """Loading a frame; in none of the figures but `latency_with_io_s`."""
    output_s: Figure
    """Reading the result; in none of the figures but `latency_with_io_s`."""
    latency_with_io_s: PositiveFigure
    """Latency with loading the frame and reading the result."""
    peak_memory_bytes: int | None = None
    """The most bytes that are needed at one moment, in all memories together: activations, queues
    and weights, frames coming once per period. None in documents of older versions."""
    memories: tuple[MemoryRow, ...] = ()
    """What each memory needs."""
    most_segments: int | None = None
    """The most segments of one processor: what an export makes one file of. None where they are
    neither limited nor cost anything, and of several models."""
    load_s: Figure | None = None
    """Seconds to load all segments, one after the other, before the first frame: those of
    processors whose load time the platform states. None if it states none of those used."""
    loop_s: Figure | None = None
    """Of a model with states: seconds from the start of what reads a state to its being there for
    the next step, of the state that takes longest. The period is no less than that, shared among
    the sequences that take turns. Left out if there is no state."""
    sequences: int | None = None
    """How many sequences would fill it: with so many in turn, states do not set the period. Left
    out if there is no state."""
    token_s: PositiveFigure | None = None
    """Seconds between tokens, of all sequences together: the period over the tokens of a step. Left
    out of models that read no tokens, as are those that follow."""
    tokens_per_second: PositiveFigure | None = None
    """Its reciprocal."""
    energy_per_token_j: PositiveFigure | None = None
    """Energy per frame over the tokens of a step."""
    first_token_s: PositiveFigure | None = None
    """Time to the first token, where a step reads a whole prompt: latency with loading and reading.
    Left out where it reads one token."""
    split: tuple[str, ...] = ()
    """Rules by which operators are split into parts, as `parapipe split` takes them, or run again,
    OPERATOR:againN=READER; its plan is of the model that is changed so."""
    divided: tuple[str, ...] = ()
    """Clusters that are divided, with the cores of the parts: `big 2+2`."""
    evaluated: EvaluatedRow | None
    """What it takes beyond costs that add up, which the search goes by; none if the platform has no
    section `evaluation`, or operators start at moments of a period, as where frames are
    interleaved."""
    proven: bool
    """Whether every schedule is proven optimal in what its mapper proves. With `least`, whether it
    has the least period of all configurations that may be listed, or the least latency or energy at
    its period, by the bounds there: to within a millionth, or what rounding to whole nanoseconds
    may add to its latency."""
    gap: Figure
    """1 − bound ÷ value, the largest among its schedules: the share by which what its mapper proves
    might be less. With `least`, value is the figure that is nearest to its bound there."""
    least: LeastRow | None = None
    """Bounds where frames are interleaved, or stages come of that search, or where processors slow
    each other down; else null."""
    co_run: CoRunCostRow | None = None
    """What it would take if its processors did not slow each other down; none if nothing is known
    of that."""
    intervals: IntervalsRow | None = None
    """In which figures lie in nine of ten draws of the costs; none without draws."""
    medians: MediansRow | None = None
    """Figures in the middle of these draws; none without draws, and in older documents."""
    chances: ChancesRow | None = None
    """How often it is the best one in these draws."""
    robust: bool = False
    """No other one listed beats it at the quantile that was asked for."""
    quantiles: QuantilesRow | None = None
    """What figures it keeps in that share of the draws; none if no quantile was asked for."""
    several: GrowthRow | None = None
    """What each of several models gets; null if there is one."""
    exports: tuple[str, ...] | None = None
    """Targets of `parapipe export` whose folder runs it, each processor by its own back end. Left
    out where no processor of the platform has a compiler."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is said at a rate, of segments, compilers, states or tokens only."""
        named = "arrival_s", "most_segments", "load_s", "exports", "loop_s", "sequences"
        tokens = "token_s", "tokens_per_second", "energy_per_token_j", "first_token_s"
        return without_none(write(self), "co_run", *named, *tokens)

    def __repr__(self) -> str:
        """Return a line: id, stages and the three objectives, by the stated costs."""
        fields = self.model_dump(include={*SHOWN_FIELDS, "intervals", "medians"})
        latency, fps, energy = (
            figure.remark(each.scale) if (figure := shown_figure(fields, each.field)) else ""
            for each in DRAWN
        )
        return (
            f"<{self.id} {self.drawing}: {self.latency_s * 1e3:.1f} ms{latency}, "
            f"{self.throughput_fps:.2f} fps{fps}, {self.energy_j * 1e3:.1f} mJ{energy}>"
        )

    @property
    def processors(self) -> tuple[ProcessorRow, ...]:
        """Those it uses, stage by stage, each once."""
        by_name = {each.name: each for stage in self.stages for each in stage.processors}
        return tuple(by_name.values())

    @property
    def power_w(self) -> float:
        """Watts of the used processors while a frame comes once per period, or as they arrive."""
        return self.energy_j / self.frame_s

    @property
    def frame_s(self) -> float:
        """Seconds between frames at which energy and power are stated."""
        return self.period_s if self.arrival_s is None else self.arrival_s


class PlatformProcessor(Row):
    """A processor of the platform, used or not."""

    name: str
    """Name, as in the stages."""
    kind: Literal["cpu", "gpu", "npu", "dsp"]
    """What it is."""
    backend: str
    """What its operators were timed with."""
    description: str
    """What the platform's file says of it; may be empty."""
    data_type: str | None = None
    """Type in which it works on floating-point tensors after conversion; none if the model is
    planned as it stands."""
    part_of: str | None = None
    """Name of the cluster that it is a part of; none of a processor of its own."""


class SubgraphEntry(Row):
    """A subgraph of the partition."""

    number: int
    """Counted from 1."""
    first_operator: str
    """Id of its first operator in the stored order."""
    last_operator: str
    """Id of its last operator in the stored order."""
    parallelism: int
    """Most operators of which none waits for another."""


class OperatorEntry(Row):
    """An operator in the stored order."""

    id: str
    """Name of its first output tensor."""
    name: str
    """Name of its first ONNX node."""
    type: str
    """ONNX operator type; of a fused operator, that of its first part."""


class FrontDocument(Row):
    """The whole of front.json."""

    schema_version: Literal["parapipe/front/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that wrote it."""
    model: str
    """Path as the user gave it, or `zoo:NAME`."""
    model_sha256: str
    """Hexadecimal digest of the model file."""
    platform: str
    """Name of the platform."""
    processors: tuple[PlatformProcessor, ...]
    """All processors of the platform, in its order, then the parts of clusters that it divides."""
    command: str
    """Makes the front again, in the folder where this one was made."""
    inputs: Inputs
    """Where model and costs came from, so that `parapipe explain` finds them again."""
    options: Options
    """What decided what the front holds."""
    operators: tuple[OperatorEntry, ...]
    """In the stored topological order."""
    subgraphs: tuple[SubgraphEntry, ...]
    """In the same order."""
    configurations: Annotated[tuple[ConfigurationRow, ...], Field(min_length=1)]
    """By ascending latency; at least one."""
    conversion: str | None = None
    """What all figures suppose, in words, if the model is planned as after a conversion."""
    absent: dict[str, str]
    """Kinds of configuration that do not exist here, and processors that cannot run the whole model
    alone (`NAME-alone`), each with the reason."""
    memory: MemorySystemRow | None = None
    """The memories that peaks are of."""
    dvfs: dict[str, DvfsRow] | None
    """By processor, if operating points were searched; else none."""
    robust: RobustRow | None = None
    """How the front at a quantile was found; none if that was not asked for."""
    notes: tuple[str, ...] = ()
    """What is assumed of the model, such as a batch of one: a sentence each."""
    co_run: FreeBoundsRow | None = None
    """Bounds without co-runs, where processors slow each other down; none if nothing is known of
    that."""
    unfinished: UnfinishedRow | None = None
    """What a budget, an interruption or the size of the network left undone; null if nothing."""
    coverage: CoverageRow
    """How much of the times was measured or stated, how much fitted, and how much is nominal."""
    compilation: CompilationRow | None = None
    """What was compiled to make the front; left out if no compiler was asked for."""
    several: SeveralRow | None = None
    """What is asked for several models that share the platform; null if there is one."""
    states: tuple[StateRow, ...] | None = None
    """Inputs that the step before has made; left out if the model has none."""
    tokens: TokensRow | None = None
    """Of a language model with a cache; left out of others."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what was compiled where no compiler was asked for, and states if none are."""
        return without_none(write(self), "compilation", "states", "tokens", "co_run")

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        """Refuse a document that names operators or processors which it does not list."""
        operators = {operator.id for operator in self.operators}
        processors = {processor.name for processor in self.processors}
        parts = [part for row in self.configurations for part in row.stages]
        ranges: tuple[StageRow | SubgraphEntry, ...] = (*parts, *self.subgraphs)
        ends = {end for each in ranges for end in (each.first_operator, each.last_operator)}
        used = {processor.name for part in parts for processor in part.processors}
        if unknown := sorted((ends - operators) | (used - processors)):
            context = {"told": listed([f"'{name}'" for name in unknown])}
            raise PydanticCustomError("unknown", "names what it does not list: {told}", context)
        return self

    def configuration(self, key: str | int | None = None) -> ConfigurationRow:
        """Return the configuration with an id, a name or a place; the balanced one if not asked.

        Raises
        ------
        NoConfigurationError
            If there is none; says why, if the front does.
        """
        return self.configurations[self.place(DEFAULT if key is None else key)]

    def place(self, key: str | int) -> int:
        """Return the place, from 0, of the configuration with an id, a name or a place.

        Raises
        ------
        NoConfigurationError
            If there is none; says why, if the front does.
        """
        if isinstance(key, int):
            if -len(self.configurations) <= key < len(self.configurations):
                return key
            most = len(self.configurations) - 1
            raise NoConfigurationError(f"no configuration {key}: they count from 0 to {most}")
        if not isinstance(key, str):
            raise NoConfigurationError(f"name a configuration by id or name, not by {key!r}")
        for place, row in enumerate(self.configurations):
            if key == row.id or key in row.names:
                return place
        kind = key.removesuffix("-L").removesuffix("-T")
        reason = self.absent.get(key) or self.absent.get(kind)
        names = sorted({name for row in self.configurations for name in row.names})
        ids = [row.id for row in self.configurations]
        because = f": {reason}" if reason else ""
        what_to_do = (not reason and _suggest(key, ids, names)) or (
            f"; give an id ({ids[0]} to {ids[-1]}) or a name ({', '.join(names)})"
        )
        raise NoConfigurationError(f"no configuration '{key}' in this front{because}{what_to_do}")

    @property
    def members(self) -> tuple[tuple[OperatorEntry, ...], ...]:
        """The operators of each subgraph, in the stored order."""
        place = {operator.id: i for i, operator in enumerate(self.operators)}
        return tuple(
            self.operators[place[each.first_operator] : place[each.last_operator] + 1]
            for each in self.subgraphs
        )


def _suggest(wanted: str, ids: Sequence[str], names: Sequence[str]) -> str:
    """Return a question: an id or a name in other case or without its zeros, else a near name."""
    number = wanted.lower().removeprefix("c")
    if number.isdecimal():
        same = [name for name in ids if name[1:].lstrip("0") == number.lstrip("0")]
        return f"; did you mean '{same[0]}'?" if same else ""
    return did_you_mean(wanted.lower(), names)
