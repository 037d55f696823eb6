"""Every mapping problem that a pipeline search can ask for: one per unit, processors and homes.

A boundary tensor lives where its producer ran. So a unit is not one problem but one for each set
of processors it may use, each processor its incoming tensors may live on, and each on which its
outgoing ones are made: costs of neighbouring units then meet exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition, Unit
from parapipe.mapping.problem import Flow, MappingProblem, Series
from parapipe.pipeline.runs import Homes


@dataclass(frozen=True, slots=True)
class Request:
    """A mapping problem and where it belongs.

    Parameters
    ----------
    unit, homes_in
        The unit, and the homes of the tensors that are live before it.
    homes_out
        Homes of the tensors that are live behind it.
    problem
        Its operators in the unit's order, on all processors of the platform.
    """

    unit: int
    homes_in: Homes
    homes_out: Homes
    problem: MappingProblem


def requests(graph: OperatorGraph, partition: Partition, costs: CostTable) -> Iterator[Request]:
    """Yield every request that a search can reach, unit by unit."""
    reachable: set[Homes] = {()}
    for index, unit in enumerate(partition.units):
        before, behind = partition.boundaries[index : index + 2]
        template = _Template(graph, costs, unit)
        exits = sorted({graph.producer[name] for name in behind} & set(unit.operators))
        placed = list(template.placements(exits or [unit.operators[-1]]))
        outgoing: set[Homes] = set()
        for homes in sorted(reachable):
            home_of = dict(zip(before, homes, strict=True))
            seen: set[MappingProblem] = set()
            for processors, pins in placed:
                problem = template.problem(home_of, processors, pins)
                if problem is None or problem in seen:
                    continue
                seen.add(problem)
                homes_out = tuple(
                    home_of[name] if name in home_of else pins[graph.producer[name]]
                    for name in behind
                )
                outgoing.add(homes_out)
                yield Request(index, homes, homes_out, problem)
        reachable = outgoing


@dataclass(frozen=True, slots=True)
class _Template:
    """What all problems of one unit share."""

    graph: OperatorGraph
    costs: CostTable
    unit: Unit

    def placements(self, exits: Sequence[int]) -> Iterator[tuple[int, dict[int, int]]]:
        """Yield sets of processors (as masks), each with every choice for the exits."""
        count = len(self.costs.processors)
        for mask in range(1, 1 << count):
            if mask.bit_count() <= len(self.unit.operators):
                inside = [p for p in range(count) if mask >> p & 1]
                for chosen in product(inside, repeat=len(exits)):
                    yield mask, dict(zip(exits, chosen, strict=True))

    def problem(
        self, home_of: dict[str, int], processors: int, pins: dict[int, int]
    ) -> MappingProblem | None:
        """Return the problem, or None if an operator has nowhere to run."""
        rows = tuple(
            tuple(
                self.costs.time_s(v, p) if processors >> p & 1 and pins.get(v, p) == p else inf
                for p in range(len(self.costs.processors))
            )
            for v in self.unit.operators
        )
        if any(min(row) == inf for row in rows):
            return None
        return MappingProblem(rows, tuple(self._flows(home_of)), self._structure())

    def _flows(self, home_of: dict[str, int]) -> Iterator[Flow]:
        local = {v: i for i, v in enumerate(self.unit.operators)}
        names = dict.fromkeys(
            name for v in self.unit.operators for name in self.graph.reads(self.graph.operators[v])
        )
        for name in names:
            producer = local.get(self.graph.producer.get(name, -1))
            if producer is None and name not in home_of:
                continue  # a graph input: available everywhere once loaded
            readers = tuple(local[v] for v in self.graph.consumers[name] if v in local)
            home = None if producer is not None else home_of[name]
            yield Flow(producer, readers, self.costs.transfer_matrix(name), home)

    def _structure(self) -> Series:
        local = {v: i for i, v in enumerate(self.unit.operators)}

        def renamed(series: Series) -> Series:
            return tuple(
                local[step] if isinstance(step, int) else tuple(renamed(branch) for branch in step)
                for step in series
            )

        return renamed(self.unit.structure)
