"""What `parapipe explain --json` prints; published as JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from parapipe.cost.coverage import NoisyShare
from parapipe.documents.doubt import Share
from parapipe.documents.front_schema import EvaluatedRow, OperatorEntry
from parapipe.errors import FrontError
from parapipe.files.mistakes import listed
from parapipe.files.record import Row, without_none

SCHEMA: Literal["parapipe/explanation/1"] = "parapipe/explanation/1"


class GivenRow(Row):
    """A value that a rule takes."""

    name: str
    """What the rule calls it."""
    value: float
    """In its unit."""
    unit: str
    """SI; empty for a share or a count."""
    file: str | None
    """Where it stands; none for what follows from the model or from other numbers here."""
    line: int | None
    """Line in the file, from 1; none if it is the file as a whole."""
    key: str | None
    """In a platform's file: its key, as in `processors[2].launch.overhead_s`."""
    source: str | None
    """In a platform's file: provenance and title of the section's source."""
    note: str
    """What else there is to know."""


class DerivationRow(Row):
    """A number and how it follows from others."""

    value: float
    """The number, as it stands in the front and in the plan."""
    unit: str
    """SI."""
    rule: str
    """How it follows, in the names of the values."""
    numbers: str
    """The same with the values put in, to seven digits: an expression as calculators take it."""
    givens: tuple[GivenRow, ...]
    """The values."""


class PartRow(Row):
    """A single operator, of several that are fused or by itself."""

    operator: str
    """Name of the ONNX node."""
    type: str
    """ONNX type."""
    provenance: Literal["measured", "stated", "compiled", "fitted", "nominal"]
    """What the time is worth."""
    source: str
    """Where the time comes from, in words."""
    noisy_spread: float | None
    """Of a time that was measured and is noisy: (longest - shortest row) / time; null of others."""
    time: DerivationRow
    """Seconds."""
    energy: DerivationRow
    """Dynamic joules."""


class OperatorRow(OperatorEntry):
    """An operator where it is placed."""

    stage: int
    """Number of the stage, from 1."""
    processor: str
    """Name."""
    start_s: float
    """From the start of the stage."""
    end_s: float
    """From the start of the stage."""
    time_s: float
    """Sum of its parts, and of the launch if there is one."""
    energy_j: float
    """Sum of its parts' dynamic joules."""
    launch: DerivationRow | None = None
    """Seconds to start the captured graph that begins with it; left out if none does."""
    data_type: str | None
    """Type that it computes in after conversion; none for the model's own."""
    parts: tuple[PartRow, ...]
    """What it stands for, one after the other, and casts of what it reads and makes."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the launch of what begins no captured graph."""
        return without_none(write(self), "launch")


class CastRow(Row):
    """A change of a tensor's type between processors that work in different ones."""

    operator: str
    """ONNX operator that it is."""
    source_type: str = Field(alias="from")
    """Type that the sender keeps it in."""
    target_type: str = Field(alias="to")
    """Type that the receiver keeps it in."""
    processor: str
    """Which of both does it."""
    time: DerivationRow
    """Seconds, part of the transfer's."""


class TransferRow(Row):
    """A tensor that goes from one processor to another."""

    tensor: str
    """Name."""
    source: str = Field(alias="from")
    """Processor that makes it."""
    target: str = Field(alias="to")
    """Processor that reads it."""
    stage: int
    """Number of the stage that receives it, from 1."""
    size_bytes: int
    """Bytes."""
    time: DerivationRow
    """Seconds, a cast included."""
    cast: CastRow | None
    """The change of its type, if there is one."""


class StepRow(Row):
    """A step of the longest way through a stage."""

    kind: Literal["operator", "transfer", "wait"]
    """`wait`: until a link or a processor that a transfer occupies is free."""
    name: str
    """Operator's id or tensor's name."""
    processor: str
    """Where it runs; for a transfer the receiver."""
    time_s: float
    """Seconds."""


class StageExplained(Row):
    """A stage and the way through it that takes all of its time."""

    number: int
    """From 1."""
    processors: tuple[str, ...]
    """Names."""
    in_turn: bool
    """Whether they are identical and take turns on frames, each alone."""
    time: DerivationRow
    """Sum of the steps: what a frame takes."""
    steps: tuple[StepRow, ...]
    """First to last, without a gap."""


class ProcessorExplained(Row):
    """A processor that the configuration uses."""

    name: str
    """Name."""
    stage: int
    """Number of its stage, from 1."""
    operators: int
    """How many it runs."""
    busy_s: float
    """Sum of their times."""
    dynamic_energy_j: float
    """Sum of their energies."""
    frequency_hz: GivenRow
    """Of its operating point."""
    voltage_v: GivenRow
    """Of its operating point."""
    alpha_w_per_v2_hz: GivenRow
    """Of its dynamic power, equation (8)."""
    static_power_w: DerivationRow
    """Watts for as long as it is used."""


class TimeSourceRow(Row):
    """Where some of the times come from."""

    provenance: Literal["measured", "stated", "compiled", "fitted", "nominal"]
    """What they are worth."""
    source: str
    """The profile's file, or the platform's."""
    operators: int
    """How many single operators."""
    time_s: float
    """Their seconds."""


class Figures(Row):
    """What the configuration takes."""

    latency_s: DerivationRow
    """One frame through all stages."""
    period_s: DerivationRow
    """Time between frames."""
    sustained_period_s: DerivationRow
    """Time between frames for an executor with bounded channels: at least the busiest processor."""
    throughput_fps: DerivationRow
    """Frames per second."""
    energy_j: DerivationRow
    """Joules of the used processors per frame."""
    board_energy_j: DerivationRow
    """The same with the board's idle power."""
    input_s: DerivationRow
    """Loading a frame."""
    output_s: DerivationRow
    """Reading the result."""


class ReasonRow(Row):
    """A sentence on why the configuration is what it is."""

    about: Literal[
        "bottleneck",
        "critical path",
        "processors",
        "memory",
        "power",
        "segments",
        "unsupported",
        "bound",
        "front",
        "doubt",
    ]
    """What it speaks of."""
    text: str
    """The sentence."""


class DoubtRow(Row):
    """What a cause brings to the doubt in figures: shares of the variance of their logarithms."""

    cause: str
    """What costs share, or what a single operator is off by, with the processor."""
    latency: Share
    """Share of that of the latency."""
    period: Share
    """Share of that of the period."""
    energy: Share
    """Share of that of the energy per frame."""


class EffectRow(Row):
    """What a change of the chip brings: the front found again with other costs."""

    change: str
    """The change."""
    latency_s: float | None
    """Least latency of the front; null if the change has no price or changes no cost."""
    throughput_fps: float | None
    """Highest throughput of the front."""
    latency_change: float | None
    """Share by which the latency changes."""
    throughput_change: float | None
    """Share by which the throughput changes."""
    remark: str
    """What the numbers are worth, or why there are none; may be empty."""


class ExplanationDocument(Row):
    """A configuration, and where each of its numbers comes from."""

    schema_: Literal["parapipe/explanation/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that made it."""
    model: str
    """Path or zoo name, as given."""
    platform: str
    """Name of the platform."""
    platform_file: str
    """Its file."""
    id: str
    """Of the configuration."""
    names: tuple[str, ...]
    """Names of its own."""
    drawing: str
    """Its stages in one line."""
    reasons: tuple[ReasonRow, ...]
    """Why it is what it is, in sentences."""
    doubt: tuple[DoubtRow, ...]
    """What the doubt comes from, the largest share of the latency's first; empty without draws."""
    what_if: tuple[EffectRow, ...] | None
    """What would help, the most useful first; null if that was not asked for."""
    figures: Figures
    """What it takes."""
    stages: tuple[StageExplained, ...]
    """First to last."""
    processors: tuple[ProcessorExplained, ...]
    """Those it uses, in the platform's order."""
    operators: tuple[OperatorRow, ...]
    """By stage and start."""
    transfers: tuple[TransferRow, ...]
    """As in the plan."""
    evaluated: EvaluatedRow | None
    """What it takes by the final evaluation, if the platform has a section `evaluation`."""
    evaluation: tuple[GivenRow, ...]
    """What that section says, and the memory's bandwidth."""
    sources: tuple[TimeSourceRow, ...]
    """Where the operators' times come from, the largest share first."""
    noisy: NoisyShare
    """Of the operators' times, those that were measured and are noisy."""


def with_operators(document: ExplanationDocument, wanted: Sequence[str]) -> ExplanationDocument:
    """Return an explanation with some of the operators only.

    They are wanted by ids, or by names of ONNX nodes, those of fused ones included.

    Raises
    ------
    FrontError
        If there are no such operators; all of them are named.
    """
    names = {
        row.id: {row.id, row.name, *(part.operator for part in row.parts)}
        for row in document.operators
    }
    unknown = [f"'{name}'" for name in wanted if not any(name in own for own in names.values())]
    if unknown:
        ids = listed(sorted(names))
        raise FrontError(f"{document.id} has no operator {listed(unknown)}; there are {ids}")
    operators = tuple(row for row in document.operators if names[row.id].intersection(wanted))
    return document.model_copy(update={"operators": operators})
