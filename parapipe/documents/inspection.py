"""A model at a glance: what `parapipe inspect --json` prints; published as JSON Schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Literal

from pydantic import Field

from parapipe.cost.compiled_groups import join_compiled
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.coverage import CoverageRow
from parapipe.cost.profile import Profile
from parapipe.cost.signature import signature_of
from parapipe.documents.compiled_support import CompiledSupportRow
from parapipe.files.record import Row
from parapipe.graph.lifetimes import peak_activations
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.partition import Partition, Subgraph, partition
from parapipe.graph.rewrites import fuse
from parapipe.graph.work import operator_class
from parapipe.mappings.memory import order_problem
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.solvers.memory.least_memory import least_order

SCHEMA: Literal["parapipe/inspection/2"] = "parapipe/inspection/2"
MOST_STATES = 3_000  # of the search for the least peak: a sixth of a second for 250 operators


class SubgraphRow(Row):
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


class SubgraphFlow(Row):
    """What one subgraph makes and another reads."""

    source: int
    """Number of the subgraph that makes it."""
    target: int
    """Number of the subgraph that reads it."""
    tensors: tuple[str, ...]
    """Names of the tensors, sorted."""
    size_bytes: int
    """Their bytes together."""


class TypeRow(Row):
    """What fused operators compute in one data type."""

    operators: int
    """Number of them; views, which compute nothing, do not count."""
    macs: int
    """Their multiply-accumulates."""


class PlatformCoverage(Row):
    """How a platform runs the model's fused operators, and where their times come from."""

    platform: str
    """Name of the platform."""
    precision: Precision
    """What the model is planned in: as it stands, or as after conversion to this type."""
    times: CoverageRow
    """Where the times come from."""
    unsupported: dict[str, dict[str, int]]
    """By processor: types of the operators that it does not run, and how many of each."""


class InspectionDocument(Row):
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
    least_peak_activation_bytes: int
    """The same in the order of the lowest peak that was found."""
    least_peak_bound_bytes: int
    """No order has a lower peak; equal to the one found if that is proven to be the least."""
    operator_types: dict[str, int]
    """How often each type of single operator occurs, the most frequent first."""
    data_types: dict[str, TypeRow]
    """What is computed in each data type, the most work first; a quantised operator computes in
    that of its integers."""
    unmodelled: dict[str, int]
    """Types of which no MACs are known; they are priced by their bytes."""
    opaque: dict[str, int]
    """Types of control flow, each imported as one operator with its body."""
    ruled: dict[str, int]
    """Types whose work a rules file gives."""
    notes: tuple[str, ...]
    """What is assumed of the model, such as a batch of one: a sentence each."""
    subgraph_table: tuple[SubgraphRow, ...]
    """The subgraphs, in order."""
    subgraph_flows: tuple[SubgraphFlow, ...]
    """What goes from one subgraph to another."""
    coverage: PlatformCoverage | None
    """How the platform that was named runs the model; null without one."""
    compiled: tuple[CompiledSupportRow, ...] = ()
    """What the compiler that was named says of the operators; none without one."""


def inspect_graph(
    graph: OperatorGraph,
    platform: Platform | None,
    precision: Precision | None = None,
    profiles: Sequence[Profile] | None = None,
) -> InspectionDocument:
    """Describe a graph of single operators, and how a platform runs it if one is given.

    Parameters
    ----------
    precision, profiles
        As for `build_cost_table`.

    Raises
    ------
    CostError
        The platform has no processor, or no price, for an operator.
    """
    fused, cut = fuse(graph), partition(graph)
    ends = accumulate(len(subgraph.units) for subgraph in cut.subgraphs)
    peak = peak_activations(fused, partition(fused).order)
    least = least_order(
        order_problem(fused, range(len(fused.operators))), MOST_STATES, deterministic_s=0
    )
    return InspectionDocument(
        schema=SCHEMA,
        model=graph.source.name,
        inputs={name: graph.tensors[name].shape for name in graph.inputs},
        outputs={name: graph.tensors[name].shape for name in graph.outputs},
        operators=len(graph.operators),
        operators_fused=len(fused.operators),
        subgraphs=len(cut.subgraphs),
        max_parallelism=max(subgraph.parallelism for subgraph in cut.subgraphs),
        macs=sum(operator.work.macs for operator in graph.operators),
        constant_bytes=sum(constant.size_bytes for constant in graph.constants.values()),
        peak_activation_bytes=peak.size_bytes,
        peak_operator=fused.operators[peak.operator].name,
        least_peak_activation_bytes=min(least.peak_bytes, peak.size_bytes),
        least_peak_bound_bytes=least.bound_bytes,
        operator_types=_count_types(graph.operators),
        data_types=_work_by_type(fused),
        unmodelled=_count_types(each for each in graph.operators if not each.work.modelled),
        opaque=_count_types(each for each in graph.operators if each.opaque),
        ruled=_count_types(each for each in graph.operators if each.work.rule),
        notes=graph.notes,
        subgraph_table=tuple(
            _subgraph_row(graph, subgraph, number, cut.boundaries[end])
            for number, (subgraph, end) in enumerate(zip(cut.subgraphs, ends, strict=True), 1)
        ),
        subgraph_flows=_subgraph_flows(graph, cut),
        coverage=platform_coverage(fused, platform, precision, profiles) if platform else None,
    )


def _count_types(operators: Iterable[Operator]) -> dict[str, int]:
    """Count operators by type, the most frequent first, then by name."""
    counts = Counter(operator.type for operator in operators)
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _work_by_type(graph: OperatorGraph) -> dict[str, TypeRow]:
    """Add up the work of fused operators by data type, the most first, then by number and name."""
    macs: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for operator in graph.operators:
        if operator_class(operator, graph) != "view":
            dtype = signature_of(operator.singles[0], graph).dtype
            counts[dtype] += 1
            macs[dtype] += operator.work.macs
    order = sorted(counts, key=lambda dtype: (-macs[dtype], -counts[dtype], dtype))
    return {dtype: TypeRow(operators=counts[dtype], macs=macs[dtype]) for dtype in order}


def _subgraph_row(
    graph: OperatorGraph, subgraph: Subgraph, number: int, live: tuple[str, ...]
) -> SubgraphRow:
    operators = [graph.operators[v] for v in subgraph.operators]
    return SubgraphRow.of(
        subgraph,
        number=number,
        operators=len(operators),
        units=len(subgraph.units),
        macs=sum(operator.work.macs for operator in operators),
        boundary_bytes=sum(graph.tensors[name].size_bytes for name in live),
        boundary_tensors=live,
        first_operator=operators[0].name,
        last_operator=operators[-1].name,
    )


def _subgraph_flows(graph: OperatorGraph, cut: Partition) -> tuple[SubgraphFlow, ...]:
    number_of = {
        v: number
        for number, subgraph in enumerate(cut.subgraphs, start=1)
        for v in subgraph.operators
    }
    tensors: dict[tuple[int, int], list[str]] = {}
    for name, maker in graph.producer.items():
        for target in {number_of[v] for v in graph.consumers.get(name, ())} - {number_of[maker]}:
            tensors.setdefault((number_of[maker], target), []).append(name)
    return tuple(
        SubgraphFlow(
            source=source,
            target=target,
            tensors=tuple(sorted(names)),
            size_bytes=sum(graph.tensors[name].size_bytes for name in names),
        )
        for (source, target), names in sorted(tensors.items())
    )


def platform_coverage(
    graph: OperatorGraph,
    platform: Platform,
    precision: Precision | None = None,
    profiles: Sequence[Profile] | None = None,
) -> PlatformCoverage:
    """Say where a platform's times of the graph's operators come from, and what it cannot run.

    Parameters
    ----------
    precision, profiles
        As for `build_cost_table`. What profiles say is fused is one operator for the times.
    """
    costs = timed = build_cost_table(graph, platform, profiles=profiles, precision=precision)
    joined = join_compiled(graph, profiles)
    if joined is not graph:
        timed = build_cost_table(joined, platform, profiles=profiles, precision=precision)
    unsupported = {
        processor: _count_types(
            operator
            for v, operator in enumerate(graph.operators)
            if costs.unsupported(v, p) is not None
        )
        for p, processor in enumerate(costs.processors)
    }
    return PlatformCoverage(
        platform=platform.name,
        precision=costs.precision,
        times=timed.coverage(),
        unsupported=unsupported,
    )
