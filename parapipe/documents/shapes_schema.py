"""The format of shapes.json: placements of several shapes of one model together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from parapipe.documents.doubt import Interval
from parapipe.errors import FrontError, NoConfigurationError
from parapipe.files.documents import read_document
from parapipe.files.mistakes import listed
from parapipe.files.record import Figure, PositiveFigure, Row, without_none

SHAPES_FILE = "shapes.json"
SCHEMA: Literal["parapipe/shapes/1"] = "parapipe/shapes/1"
ShapeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
Sizes = int | tuple[int, ...] | tuple[str, tuple[int, ...]]


class ShapeRow(Row):
    """A shape of the model. Its own front is in the folder of its name."""

    name: ShapeName
    """What the user calls it."""
    sizes: dict[str, Sizes]
    """Values of named dimensions, and full shapes of inputs, that make it."""
    steps: int
    """Steps of it in a request; of buckets, requests of the mix that it serves."""
    from_size: int | None = None
    """Of a bucket: the least request that it serves; left out of other shapes."""
    to_size: int | None = None
    """Of a bucket: the largest request that it serves, which is its own size."""
    padding: Figure | None = None
    """Of a bucket that serves requests of the mix: share of its size, over all of these, that is
    padding."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is said of buckets only."""
        return without_none(write(self), "from_size", "to_size", "padding")


class PlacementRow(Row):
    """Where a shape runs, and what its steps take."""

    id: str = Field(pattern=r"^c[0-9]+$")
    """The configuration of the shape's own front; its plan is SHAPE/plans/ID.json."""
    drawing: str
    """The stages in one line, as the shape's front has it."""
    latency_s: PositiveFigure
    """One step."""
    steps_s: Figure
    """All steps of a request: one follows the other at the period, and the last takes its
    latency."""
    energy_j: Figure
    """Joules of these steps."""


class MoveRow(Row):
    """States that go from where one shape wrote them to where the next one reads them."""

    begin: ShapeName
    """Shape that wrote them."""
    end: ShapeName
    """Shape that reads them."""
    source: str
    """Processor that wrote them."""
    target: str
    """Processor that reads them."""
    states: int
    """How many tensors."""
    size_bytes: int
    """Bytes of all of them."""
    time_s: Figure
    """One after the other."""


class SharedMemoryRow(Row):
    """What all shapes together need of one memory."""

    name: str
    """As in the fronts."""
    peak_bytes: int
    """The most at one moment: weights, segments of all shapes, and what the shape that needs most
    needs beside."""
    weights_bytes: int
    """Of these, weights: those that several shapes use there, once."""


class RequestIntervalsRow(Row):
    """Ends of the intervals in which figures lie in nine of ten draws of the costs."""

    request_s: Interval
    """Least and most seconds of a request."""
    first_token_s: Interval | None = None
    """Least and most seconds to the first token, of a language model; else left out."""
    tokens_per_second: Interval | None = None
    """Least and most tokens a second, likewise."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is said of language models only."""
        return without_none(write(self), "first_token_s", "tokens_per_second")


class CombinationRow(Row):
    """A placement for each shape, and what a request takes."""

    id: str = Field(pattern=r"^s[0-9]+$")
    """Its number by ascending time of a request."""
    names: tuple[str, ...]
    """SHAPE-L: the least latency of that shape; most-throughput: of requests; balanced,
    most-efficient, least-memory (if memory is an objective); one-placement: of those in which each
    operator has the same processor in all shapes, the fastest; one-processor: the same of those
    that use a single one."""
    pareto: bool
    """On the front: no other one listed is at least as good in all objectives, and better in one:
    the latency of each shape, the time of a request, and energy and memory if they are
    objectives."""
    placements: dict[ShapeName, PlacementRow]
    """By shape, in their order."""
    moves: tuple[MoveRow, ...]
    """What a request moves between shapes, each once."""
    request_s: PositiveFigure
    """Seconds of a request: the steps of all shapes, and the moves, one after the other."""
    requests_per_second: PositiveFigure
    """Its reciprocal; of buckets, of whole mixes of requests."""
    energy_j: PositiveFigure
    """Joules of a request: of processors that are used, while their shape runs, and of both ends
    while states move."""
    first_token_s: PositiveFigure | None = None
    """Of a language model, if the last shape with steps reads one token that is fed back: seconds
    to the first token, loading the prompt and reading the result included; else left out."""
    tokens_per_second: PositiveFigure | None = None
    """Likewise: tokens after the first one, of each sequence of a batch, over the seconds from the
    first one to the last one, what moves before the second one included."""
    energy_per_token_j: PositiveFigure | None = None
    """Likewise: joules of these steps, and of both ends while states move before them, over the
    tokens of all sequences of a batch; left out by older versions, too."""
    intervals: RequestIntervalsRow | None = None
    """How sure the times are; left out with no draws of the costs, and by older versions."""
    memory_bytes: int
    """The most at one moment, in all memories."""
    memories: tuple[SharedMemoryRow, ...]
    """What each memory needs."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is said of language models, or of draws, only."""
        tokens = "first_token_s", "tokens_per_second", "energy_per_token_j"
        return without_none(write(self), *tokens, "intervals")


class ShapesDocument(Row):
    """The whole of shapes.json."""

    schema_version: Literal["parapipe/shapes/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that wrote it."""
    model: str
    """Path as the user gave it, or `zoo:NAME`."""
    model_sha256: str
    """Hexadecimal digest of the model file."""
    platform: str
    """Name of the platform."""
    command: str
    """Makes the front again, in the folder where this one was made."""
    objectives: tuple[str, ...]
    """What the front trades beside the latency of each shape: throughput is that of requests."""
    every_placement: bool
    """Whether every placement in stages was tried, of all shapes: else those that a search of each
    shape lists, and each of them in the other shapes, too."""
    bucket: str | None = None
    """The dimension that tells shapes apart, if it is one alone; else left out."""
    weight_factors: dict[str, float]
    """Processors that need copies of weights of their own: bytes there per byte in the model."""
    shapes: Annotated[tuple[ShapeRow, ...], Field(min_length=1)]
    """In the order in which a request has them."""
    configurations: Annotated[tuple[CombinationRow, ...], Field(min_length=1)]
    """By ascending time of a request."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the bucket where there is none."""
        return without_none(write(self), "bucket")

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        """Refuse a document whose configurations are of other shapes than it lists."""
        shapes = [each.name for each in self.shapes]
        wrong = [row.id for row in self.configurations if [*row.placements] != shapes]
        ends = {
            name for row in self.configurations for move in row.moves
            for name in (move.begin, move.end)
        }  # fmt: skip
        if wrong or ends.difference(shapes):
            context = {"told": listed(wrong or sorted(ends.difference(shapes)))}
            raise PydanticCustomError("unknown", "has other shapes than it lists: {told}", context)
        return self

    def configuration(self, key: str) -> CombinationRow:
        """Return the configuration with an id or a name.

        Raises
        ------
        NoConfigurationError
            There is none.
        """
        for row in self.configurations:
            if key == row.id or key in row.names:
                return row
        names = sorted({name for row in self.configurations for name in row.names})
        raise NoConfigurationError(
            f"no configuration '{key}' of these shapes; give an id (s01 to "
            f"{self.configurations[-1].id}) or a name ({', '.join(names)})"
        )


def load_shapes(folder: Path) -> ShapesDocument:
    """Read shapes.json of a folder.

    Raises
    ------
    FrontError
        It cannot be read.
    """
    return read_document(
        folder / SHAPES_FILE, ShapesDocument, schema=SCHEMA, what="front", error=FrontError
    )
