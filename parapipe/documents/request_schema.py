"""A request of a language model, run or simulated: what `run` and `simulate` of shapes.json print.

Published as JSON Schema. A request is a prompt, whose steps are of one shape, and tokens written
one after the other, whose steps are of another one.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from parapipe.documents.shapes_schema import ShapeName
from parapipe.files.record import Figure, PositiveFigure, Row, without_none

SCHEMA: Literal["parapipe/request/1"] = "parapipe/request/1"


class ComparedRow(Row):
    """A figure as predicted and as observed: the median of the requests."""

    predicted: PositiveFigure
    """By the plans, and by what shapes.json says of moves."""
    observed: PositiveFigure
    """Run or simulated."""
    error: float
    """Predicted over observed, less 1."""


class RequestShapeRow(Row):
    """Steps of a shape."""

    name: ShapeName
    """As in shapes.json."""
    id: str
    """The configuration of the shape's own front."""
    drawing: str
    """Its stages in one line."""
    steps: int
    """How many a request has."""
    tokens: int
    """That each step reads."""
    slots: int | None = None
    """Of its cache before a step; left out where neither a mask nor a cache that grows tells."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_none(write(self), "slots")


class RequestDocument(Row):
    """Figures of requests beside what was predicted."""

    schema_version: Literal["parapipe/request/1"] = Field(alias="schema")
    """Version of this format."""
    how: Literal["run", "simulation"]
    """Whether it ran on a machine, or on the simulated clock."""
    model: str
    """As in shapes.json."""
    platform: str
    """Likewise."""
    configuration: str
    """Id of the placements, as s01."""
    shapes: tuple[RequestShapeRow, ...]
    """In their order."""
    requests: int
    """How many were counted, one after the other."""
    prompt: int
    """Tokens that a request begins with."""
    tokens: int
    """That it writes; the first one comes out of the prompt's last step."""
    first_token_s: ComparedRow
    """Seconds from the begin to the first token: loading the prompt, its steps, reading."""
    token_s: ComparedRow
    """Seconds from one token to the next, on average: moves between placements are among them."""
    tokens_per_second: ComparedRow
    """Its reciprocal."""
    request_s: ComparedRow
    """Seconds from the begin to the last token."""
    median_token_s: PositiveFigure
    """Median of the times between tokens."""
    moved_s: Figure
    """Predicted seconds in which states move from one placement to the other, once."""
    energy_per_token_j: PositiveFigure | None = None
    """Predicted joules of each token after the first one, of all sequences; left out where
    shapes.json, of an older version, does not state it."""
    chosen: tuple[tuple[int, ...], ...] | None = None
    """The tokens of the last request, by sequence of a batch; left out of simulations."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_none(write(self), "energy_per_token_j", "chosen")
