"""What a model holds: counts at both granularities, its subgraphs and its operator types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.partition import Partition, Subgraph

SCHEMA = "parapipe/inspection/1"


@dataclass(frozen=True, slots=True)
class SubgraphRow:
    """One subgraph; `boundary_bytes` are live behind it, in tensors that operators made."""

    number: int
    operators: int
    branches: int
    parallelism: int
    macs: int
    boundary_bytes: int
    first_operator: str
    last_operator: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """A model at a glance.

    Parameters
    ----------
    operators, operators_fused
        Number of operators, single and with activations fused into the operator before.
    max_parallelism
        The largest parallelism of any subgraph.
    operator_types
        How often each type occurs, the most frequent first.
    unmodelled
        Types of which no MACs are known; they are priced by their bytes.
    opaque
        Types of control flow, each imported as one operator with its body.
    ruled
        Types whose work a rules file gives.
    """

    model: str
    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    operators: int
    operators_fused: int
    subgraphs: int
    max_parallelism: int
    macs: int
    constant_bytes: int
    operator_types: dict[str, int]
    unmodelled: dict[str, int]
    opaque: dict[str, int]
    ruled: dict[str, int]
    subgraph_table: tuple[SubgraphRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `parapipe inspect --json` prints."""
        return {"schema": SCHEMA, **asdict(self)}


def inspect(graph: OperatorGraph, fused: OperatorGraph, partition: Partition) -> Inspection:
    """Describe a model, given both granularities and the partition of the finer one."""
    rows = []
    end = 0
    for number, subgraph in enumerate(partition.subgraphs, start=1):
        end += len(subgraph.units)
        rows.append(_row(graph, subgraph, number, partition.boundaries[end]))
    types = Counter(operator.type for operator in graph.operators)
    unknown = Counter(operator.type for operator in graph.operators if not operator.work.modelled)
    return Inspection(
        model=graph.source.name,
        inputs={name: list(graph.tensors[name].shape) for name in graph.inputs},
        outputs={name: list(graph.tensors[name].shape) for name in graph.outputs},
        operators=len(graph.operators),
        operators_fused=len(fused.operators),
        subgraphs=len(partition.subgraphs),
        max_parallelism=max(subgraph.parallelism for subgraph in partition.subgraphs),
        macs=sum(operator.work.macs for operator in graph.operators),
        constant_bytes=sum(constant.size_bytes for constant in graph.constants.values()),
        operator_types=dict(types.most_common()),
        unmodelled=dict(unknown.most_common()),
        opaque=_types(operator for operator in graph.operators if operator.opaque),
        ruled=_types(operator for operator in graph.operators if operator.work.rule),
        subgraph_table=tuple(rows),
    )


def _types(operators: Iterable[Operator]) -> dict[str, int]:
    return dict(Counter(operator.type for operator in operators).most_common())


def _row(
    graph: OperatorGraph, subgraph: Subgraph, number: int, live: tuple[str, ...]
) -> SubgraphRow:
    operators = [graph.operators[v] for v in subgraph.operators]
    return SubgraphRow(
        number=number,
        operators=len(operators),
        branches=subgraph.branches,
        parallelism=subgraph.parallelism,
        macs=sum(operator.work.macs for operator in operators),
        boundary_bytes=sum(graph.tensors[name].size_bytes for name in live),
        first_operator=operators[0].name,
        last_operator=operators[-1].name,
    )
