"""What a model holds: counts at both granularities, its subgraphs and its operator types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from parapipe.graph.activation_memory import peak_activations
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.partition import Partition, Subgraph
from parapipe.graph.partition import partition as partition_of


@dataclass(frozen=True, slots=True)
class SubgraphRow:
    """One subgraph; the boundary is behind it, its tensors those that operators made."""

    number: int
    operators: int
    units: int
    branches: int
    parallelism: int
    macs: int
    boundary_bytes: int
    boundary_tensors: tuple[str, ...]
    first_operator: str
    last_operator: str


@dataclass(frozen=True, slots=True)
class SubgraphFlow:
    """What one subgraph makes and another reads."""

    source: int
    target: int
    tensors: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """A model at a glance.

    Parameters
    ----------
    operators, operators_fused
        Number of operators, single and with activations fused into the operator before.
    max_parallelism
        The largest parallelism of any subgraph.
    peak_activation_bytes, peak_operator
        As `peak_activations` has it, of fused operators in the order of their partition.
    operator_types
        How often each type occurs, the most frequent first, then by name.
    unmodelled
        Types of which no MACs are known; they are priced by their bytes.
    opaque
        Types of control flow, each imported as one operator with its body.
    ruled
        Types whose work a rules file gives.
    """

    model: str
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    operators: int
    operators_fused: int
    subgraphs: int
    max_parallelism: int
    macs: int
    constant_bytes: int
    peak_activation_bytes: int
    peak_operator: str
    operator_types: dict[str, int]
    unmodelled: dict[str, int]
    opaque: dict[str, int]
    ruled: dict[str, int]
    subgraph_table: tuple[SubgraphRow, ...]
    subgraph_flows: tuple[SubgraphFlow, ...]


def inspect(graph: OperatorGraph, fused: OperatorGraph, partition: Partition) -> Inspection:
    """Describe a model, given both granularities and the partition of the finer one."""
    rows = []
    end = 0
    for number, subgraph in enumerate(partition.subgraphs, start=1):
        end += len(subgraph.units)
        rows.append(_row(graph, subgraph, number, partition.boundaries[end]))
    peak = peak_activations(fused, partition_of(fused).order)
    return Inspection(
        model=graph.source.name,
        inputs={name: graph.tensors[name].shape for name in graph.inputs},
        outputs={name: graph.tensors[name].shape for name in graph.outputs},
        operators=len(graph.operators),
        operators_fused=len(fused.operators),
        subgraphs=len(partition.subgraphs),
        max_parallelism=max(subgraph.parallelism for subgraph in partition.subgraphs),
        macs=sum(operator.work.macs for operator in graph.operators),
        constant_bytes=sum(constant.size_bytes for constant in graph.constants.values()),
        peak_activation_bytes=peak.size_bytes,
        peak_operator=fused.operators[peak.operator].name,
        operator_types=_types(graph.operators),
        unmodelled=_types(operator for operator in graph.operators if not operator.work.modelled),
        opaque=_types(operator for operator in graph.operators if operator.opaque),
        ruled=_types(operator for operator in graph.operators if operator.work.rule),
        subgraph_table=tuple(rows),
        subgraph_flows=_flows(graph, partition),
    )


def _types(operators: Iterable[Operator]) -> dict[str, int]:
    """Count operators by type, the most frequent first, then by name."""
    counts = Counter(operator.type for operator in operators)
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _row(
    graph: OperatorGraph, subgraph: Subgraph, number: int, live: tuple[str, ...]
) -> SubgraphRow:
    operators = [graph.operators[v] for v in subgraph.operators]
    return SubgraphRow(
        number=number,
        operators=len(operators),
        units=len(subgraph.units),
        branches=subgraph.branches,
        parallelism=subgraph.parallelism,
        macs=sum(operator.work.macs for operator in operators),
        boundary_bytes=sum(graph.tensors[name].size_bytes for name in live),
        boundary_tensors=live,
        first_operator=operators[0].name,
        last_operator=operators[-1].name,
    )


def _flows(graph: OperatorGraph, partition: Partition) -> tuple[SubgraphFlow, ...]:
    number_of = {
        v: number
        for number, subgraph in enumerate(partition.subgraphs, start=1)
        for v in subgraph.operators
    }
    tensors: dict[tuple[int, int], list[str]] = {}
    for name, maker in graph.producer.items():
        for target in {number_of[v] for v in graph.consumers.get(name, ())} - {number_of[maker]}:
            tensors.setdefault((number_of[maker], target), []).append(name)
    return tuple(
        SubgraphFlow(
            source,
            target,
            tuple(sorted(names)),
            sum(graph.tensors[name].size_bytes for name in names),
        )
        for (source, target), names in sorted(tensors.items())
    )
