"""What a change of the chip would bring: the search done again with other costs, not guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from parapipe.cost.cost_table import CostTable, Matrix, build_cost_table
from parapipe.cost.pins import with_pins
from parapipe.cost.price import OperatorCost
from parapipe.cost.profile import Profile
from parapipe.errors import CostError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.platform.support import Refusal, Support

FASTER = 1.1
MOST_TYPES = 3  # of operators that a processor does not run, those that take most time elsewhere


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the chip.

    Parameters
    ----------
    words
        What it is.
    costs
        The cost table with it; None if it cannot be priced, or changes no cost.
    remark
        Why there is no other cost table, or what the changed numbers are worth.
    """

    words: str
    costs: CostTable | None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """A chip and what a model costs on it, at the operating points that the question is asked for.

    Parameters
    ----------
    profiles
        As for `build_cost_table`.
    pinned
        Processors that operators are pinned to, by the index of the operator.
    """

    graph: OperatorGraph
    platform: Platform
    costs: CostTable
    profiles: Sequence[Profile] | None
    pinned: Mapping[int, str] = field(default_factory=dict)

    def changes(self) -> Iterator[Change]:
        """Yield a tenth more of each processor, link and the memory, and of what runs where."""
        names = self.costs.processors
        there = [p for p, each in enumerate(self.platform.processors) if not each.divided_into]
        for p in there:
            yield Change(f"{names[p]} 10 % faster", _with_faster_processor(self.costs, p))
        for p, q in combinations(there, 2):
            words = f"link of {names[p]} and {names[q]} 10 % faster"
            yield Change(words, _with_faster_link(self.costs, p, q))
        yield self._add_bandwidth()
        for p in there:
            yield from self._add_types(p)

    def _add_bandwidth(self) -> Change:
        words = "memory bandwidth 10 % higher"
        processors = []
        for each in self.platform.processors:
            bandwidth = {"bandwidth_bytes_per_s": each.memory.bandwidth_bytes_per_s * FASTER}
            memory = each.memory.model_copy(update=bandwidth)
            processors.append(each.model_copy(update={"memory": memory}))
        table = self._price(processors)
        limit = self.costs.bandwidth_bytes_per_s
        if limit is not None:
            table = replace(table, bandwidth_bytes_per_s=limit * FASTER)
            return Change(words, table, "of nominal times, and of what the memory serves")
        if table.entries == self.costs.entries:
            return Change(words, None, "no time here follows it: all are measured or fitted")
        return Change(words, table, "of nominal times only")

    def _add_types(self, p: int) -> Iterator[Change]:
        """Yield, for types that a processor does not run, what it would be if it ran them."""
        missing = _missing_types(self.graph, self.costs, p)
        if not missing:
            return
        processors = list(self.platform.processors)
        processors[p] = processors[p].model_copy(update={"operators": Support()})
        name = self.costs.processors[p]
        try:
            table = self._price(processors)
        except CostError as error:
            yield Change(f"{name} runs more types of operators", None, str(error))
            return
        for kind, operators in missing.items():
            gained = {v for v in operators if table.unsupported(v, p) is None}
            if not gained:
                yield Change(f"{name} runs {kind}", None, str(table.unsupported(operators[0], p)))
                continue
            rows = tuple(
                (*row[:p], table.entries[v][p], *row[p + 1 :]) if v in gained else row
                for v, row in enumerate(self.costs.entries)
            )
            words = f"{name} runs {kind}, {len(gained)} of the operators"
            yield Change(words, replace(self.costs, entries=rows))

    def _price(self, processors: Sequence[Processor]) -> CostTable:
        changed = self.platform.model_copy(update={"processors": tuple(processors)})
        table = build_cost_table(
            self.graph, changed, profiles=self.profiles, precision=self.costs.precision
        )
        table = replace(table, arrival_s=self.costs.arrival_s)
        return with_pins(table, self.graph, changed, self.pinned)


def _with_faster_processor(costs: CostTable, p: int) -> CostTable:
    def faster(cost: OperatorCost | Refusal) -> OperatorCost | Refusal:
        if isinstance(cost, Refusal):
            return cost
        parts = tuple(replace(part, time=part.time / FASTER) for part in cost.parts)
        return replace(cost, parts=parts)

    rows = tuple((*row[:p], faster(row[p]), *row[p + 1 :]) for row in costs.entries)
    return replace(costs, entries=rows)


def _with_faster_link(costs: CostTable, p: int, q: int) -> CostTable:
    def faster(matrix: Matrix) -> Matrix:
        return tuple(
            tuple(time_s / FASTER if {i, j} == {p, q} else time_s for j, time_s in enumerate(row))
            for i, row in enumerate(matrix)
        )

    by_matrix = {matrix: faster(matrix) for matrix in set(costs.transfers.values())}
    moved = {name: by_matrix[matrix] for name, matrix in costs.transfers.items()}
    return replace(costs, transfers=moved)


def _missing_types(graph: OperatorGraph, costs: CostTable, p: int) -> Mapping[str, Sequence[int]]:
    """Return the operators that a processor does not run by type, the most costly types first."""
    by_type: dict[str, list[int]] = {}
    weight_s: dict[str, float] = {}
    for v, operator in enumerate(graph.operators):
        if costs.unsupported(v, p) is not None:
            least_s = min(costs.time_s(v, q) for q in range(len(costs.processors)))
            by_type.setdefault(operator.type, []).append(v)
            weight_s[operator.type] = weight_s.get(operator.type, 0.0) + least_s
    costly = sorted(by_type, key=lambda kind: -weight_s[kind])
    return {kind: by_type[kind] for kind in costly[:MOST_TYPES]}
