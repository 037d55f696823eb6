"""Parts of operators as prices see them: what each reads, and its work."""

from collections.abc import Sequence
from typing import NamedTuple

from parapipe.graph.operator_graph import Operator, OperatorGraph, Work
from parapipe.parts.part import Range, Ranges
from parapipe.parts.run import outside_reads
from parapipe.parts.work import PartCollector


class Part(NamedTuple):
    reads: dict[str, Ranges]
    work: Work


def parts_of(
    graph: OperatorGraph, operators: Operator | Sequence[Operator], ranges: Sequence[Range]
) -> list[Part]:
    """Return the parts of an operator or a run that make these ranges of its result."""
    alone = PartCollector(graph)
    listed = (operators,) if isinstance(operators, Operator) else operators
    found = [alone.add(listed, asked) for asked in ranges]
    made = alone.graph().operators
    return [
        Part(outside_reads(part), Work.total([made[at].work for at in places]))
        for places, part in found
    ]
