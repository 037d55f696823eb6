"""The lives of a plan's tensors in whole numbers, on a circle of points that follow each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from parapipe.graph.operator_graph import OperatorGraph, size_in_bytes
from parapipe.mappings.event_graph import picoseconds
from parapipe.mappings.lifetimes import Life, Lives, Storage
from parapipe.plan.mapped import MappedPlan, mapping_view
from parapipe.plan.schema import Plan
from parapipe.platform.memories import MemorySystem


@dataclass(frozen=True, slots=True)
class NumberedLife:
    """A tensor where a processor keeps it.

    Parameters
    ----------
    begin, end
        Numbers of points, of frame 0; the same of frame n are n periods later.
    reads
        When those operators that read it here have ended.
    other_end
        When all others have done with it.
    """

    life: Life
    begin: int
    end: int
    reads: Mapping[int, int]
    other_end: int

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.life.name

    @property
    def queued(self) -> bool:
        """Whether all its slots are there at any time."""
        return self.life.content == "queue"

    def free_for(self, operator: int) -> int:
        """Return when all but one of the readers have done with it."""
        return max(self.other_end, *(end for v, end in self.reads.items() if v != operator), 0)


@dataclass(frozen=True)
class PlanLives:
    """All of a plan.

    Parameters
    ----------
    graph
        The plan's network, its operators in the plan's order.
    """

    plan: Plan
    graph: OperatorGraph
    system: MemorySystem

    @cached_property
    def view(self) -> MappedPlan:
        """The plan's mapping."""
        return mapping_view(self.plan)

    @cached_property
    def storage(self) -> Storage:
        """What tensors take, by the plan's numbers of processors."""
        types = {each.name: each.data_type for each in self.plan.processors}
        names = self.view.resources
        return Storage(self.graph, self.system, names, tuple(map(types.get, names)))

    @cached_property
    def _mapping_lives(self) -> Lives:
        period_ps = picoseconds(self.plan.predicted.period_s)
        number = {name: p for p, name in enumerate(self.view.resources)}
        slots = {(t.tensor, number[t.target]): t.queue_depth for t in self.plan.transfers}
        return Lives(self.view.mapping, self.storage, period_ps, slots)

    @cached_property
    def _points(self) -> dict[tuple[int, int, int, int], int]:
        points = {point for turn in self._mapping_lives.turns.values() for _, point in turn}
        for each in self._all_lives:
            points.update((each.begin[1], each.end[1], each.other_end[1]))
        return {point: number for number, point in enumerate(sorted(points))}

    @cached_property
    def _all_lives(self) -> tuple[Life, ...]:
        return tuple(self._mapping_lives.all())

    @cached_property
    def period(self) -> int:
        """Points of the circle."""
        return len(self._points)

    @cached_property
    def turns(self) -> dict[int, tuple[int, int]]:
        """Numbers of the points at which each operator starts and ends."""
        points, period = self._points, self.period
        return {
            v: (begin * period + points[start], last * period + points[end])
            for v, ((begin, start), (last, end)) in self._mapping_lives.turns.items()
        }

    @cached_property
    def all(self) -> tuple[NumberedLife, ...]:
        """Those of graph inputs, then of what operators make, each with its copies."""
        turns, points, period = self.turns, self._points, self.period
        return tuple(
            NumberedLife(
                each,
                each.begin[0] * period + points[each.begin[1]],
                each.end[0] * period + points[each.end[1]],
                {at.operator: turns[at.operator][1] for at in each.readers},
                each.other_end[0] * period + points[each.other_end[1]],
            )
            for each in self._all_lives
        )

    @cached_property
    def results(self) -> dict[tuple[str, int], int]:
        """Index of what an operator makes, by tensor and operator."""
        at, producer = self.view.mapping.at, self.graph.producer
        return {
            (each.name, producer[each.name]): i
            for i, each in enumerate(self.all)
            if each.name in producer and each.life.processor == at[producer[each.name]].processor
        }

    @cached_property
    def operands(self) -> dict[tuple[str, int], int]:
        """Index of what an operator reads, by tensor and operator."""
        return {(each.name, v): i for i, each in enumerate(self.all) for v in each.reads}

    def element_bits(self, i: int) -> int:
        """Return the bits of an element of a tensor where it is kept; 0 if they have no size."""
        life = self.all[i].life
        return size_in_bytes((8,), self.storage.type_of(life.name, life.processor)) or 0

    def range_bytes(self, i: int, begin: int) -> int | None:
        """Return where an element of a tensor lies in it; None if no byte begins with it."""
        bits = begin * self.element_bits(i)
        return None if bits % 8 else bits // 8
