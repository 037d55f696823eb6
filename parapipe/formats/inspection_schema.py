"""The format of `parapipe inspect --json`; published as JSON Schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from parapipe.formats.front_schema import CoverageRow

SCHEMA: Literal["parapipe/inspection/2"] = "parapipe/inspection/2"


class _Record(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, from_attributes=True
    )


class SubgraphRow(_Record):
    """A subgraph of the paper."""

    number: int
    """Place in the partition's order, from 1."""
    operators: int
    """Number of its single operators."""
    units: int
    """Number of its units: between them stages may be cut, too."""
    branches: int
    """Parallel branches that leave its first fork; 1 for a linear run."""
    parallelism: int
    """Size of the largest set of operators none of which waits for another."""
    macs: int
    """Multiply-accumulates."""
    boundary_bytes: int
    """Bytes of the tensors that are live behind it."""
    boundary_tensors: tuple[str, ...]
    """Those tensors: made by it or before it, and read behind it; graph inputs do not count."""
    first_operator: str
    """Name of its first operator."""
    last_operator: str
    """Name of its last operator."""


class SubgraphFlow(_Record):
    """What one subgraph makes and another reads."""

    source: int
    """Number of the subgraph that makes it."""
    target: int
    """Number of the subgraph that reads it."""
    tensors: tuple[str, ...]
    """Names of the tensors, sorted."""
    size_bytes: int
    """Their bytes together."""


class PlatformCoverage(_Record):
    """How a platform runs the model's fused operators, and where their times come from."""

    platform: str
    """Name of the platform."""
    times: CoverageRow
    """Where the times come from."""
    unsupported: dict[str, dict[str, int]]
    """By processor: types of the operators that it does not run, and how many of each."""


class InspectionDocument(_Record):
    """A model at a glance."""

    schema_version: Literal["parapipe/inspection/2"] = Field(alias="schema")
    """Version of this format."""
    model: str
    """Path as the user gave it, or `zoo:NAME`."""
    inputs: dict[str, tuple[int, ...]]
    """Shapes of the graph inputs."""
    outputs: dict[str, tuple[int, ...]]
    """Shapes of the graph outputs."""
    operators: int
    """Number of single operators."""
    operators_fused: int
    """Number of operators with activations fused into the operator before."""
    subgraphs: int
    """Number of subgraphs."""
    max_parallelism: int
    """The largest parallelism of any subgraph."""
    macs: int
    """Multiply-accumulates."""
    constant_bytes: int
    """Bytes of weights and other constants."""
    peak_activation_bytes: int
    """The most bytes of activations at one time, one frame running through fused operators in the
    partition's order; each tensor has memory of its own, weights do not count."""
    peak_operator: str
    """Name of the operator that runs then."""
    operator_types: dict[str, int]
    """How often each type of single operator occurs, the most frequent first."""
    unmodelled: dict[str, int]
    """Types of which no MACs are known; they are priced by their bytes."""
    opaque: dict[str, int]
    """Types of control flow, each imported as one operator with its body."""
    ruled: dict[str, int]
    """Types whose work a rules file gives."""
    subgraph_table: tuple[SubgraphRow, ...]
    """The subgraphs, in order."""
    subgraph_flows: tuple[SubgraphFlow, ...]
    """What goes from one subgraph to another."""
    coverage: PlatformCoverage | None
    """How the platform that was named runs the model; null without one."""

    def to_json(self) -> dict[str, Any]:
        """Return the document that `parapipe inspect --json` prints."""
        return self.model_dump(mode="json", by_alias=True)
