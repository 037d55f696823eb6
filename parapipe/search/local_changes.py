"""Mappings that differ a little from one: in stages, or with frames interleaved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.event_graph import sustained_period_s
from parapipe.mappings.mapping import Mapping
from parapipe.modulo.cyclic_problem import CyclicProblem, ModuloSchedule, ceil_ns
from parapipe.modulo.kept_orders import at_period, schedule_in_order
from parapipe.modulo.modulo_schedules import Jobs
from parapipe.problems.problems import whole_problem
from parapipe.search.interleaved import modulo_schedule_of, repeating_mapping
from parapipe.search.neighbours import Neighbourhood


@dataclass
class LocalChanges:
    """Changes of mappings of one model: with whole operators, or with some of them split.

    What is changed is an assignment, whatever the kind: where operators run, in which order and in
    which stages. Frames are interleaved by one stage of which the next frame begins earlier.

    Parameters
    ----------
    costs
        Of operators that run alone.
    most_stages
        Of a mapping; any number if it is None.
    interleaves
        Whether frames may be interleaved.
    done
        What has been yielded: assignments, with the period in nanoseconds or 0.
    """

    graph: OperatorGraph
    costs: CostTable
    most_stages: int | None
    interleaves: bool
    done: set[tuple[object, object, int]] = field(default_factory=set)

    def near(self, mapping: Mapping) -> Iterator[Mapping]:
        """Yield mappings near one, which has plain stages or is made for a period; each once."""
        own, period = self._assignment_of(mapping), 0
        if mapping.period_s is not None:
            period = ceil_ns(mapping.period_s)
            yield from self._paced(mapping, period)
        elif self.interleaves:
            every = tuple(v for stage in own.stages for v in stage)
            yield from self._repeating(Assignment(own.processors, (every,), ordered=True), 0)
        for changed in (*([own] if period else ()), *self._neighbourhood.of(own)):
            if period and len(changed.stages) == 1:
                yield from self._repeating(changed, period)
            elif self._is_new(changed, 0):
                yield mapping_of(self.graph, None, self.costs, changed)

    def _assignment_of(self, mapping: Mapping) -> Assignment:
        """Return the assignment of a mapping: of one that is made for a period, in one stage."""
        own = assignment_of(mapping)
        if mapping.period_s is None:
            return own
        schedule = modulo_schedule_of(mapping, self.graph)
        order = sorted(range(len(schedule.start)), key=lambda v: (schedule.start[v], v))
        return Assignment(own.processors, (tuple(order),), ordered=True)

    def _paced(self, mapping: Mapping, period: int) -> Iterator[Mapping]:
        """Yield the same orders for the least period that they allow."""
        jobs = Jobs.of(self._cyclic, self._assignment_of(mapping).processors)
        rounding = len(jobs.time)  # a nanosecond each
        least = max(self._least_period(jobs), ceil_ns(sustained_period_s(mapping)) + rounding)
        if least < period:
            yield from self._mapped(at_period(jobs, modulo_schedule_of(mapping, self.graph), least))

    def _repeating(self, own: Assignment, period: int) -> Iterator[Mapping]:
        """Yield mappings of one stage, of which a frame begins before the one before it ends.

        They are made for their least period and, if that is longer, for the one that is given.
        """
        jobs = Jobs.of(self._cyclic, own.processors)
        least = self._least_period(jobs)
        for each in dict.fromkeys((least, max(least, period))):
            if self._is_new(own, each):
                yield from self._mapped(schedule_in_order(jobs, each, own.stages[0]))

    def _mapped(self, schedule: ModuloSchedule | None) -> Iterator[Mapping]:
        mapping = schedule and repeating_mapping(schedule, self.graph, self.costs)
        if mapping:
            yield mapping

    def _least_period(self, jobs: Jobs) -> int:
        return max(*self._cyclic.loads(jobs.place), ceil_ns(self.costs.least_period_s))

    def _is_new(self, own: Assignment, period: int) -> bool:
        key = (own.processors, own.stages, period)
        if key in self.done:
            return False
        self.done.add(key)
        return True

    @cached_property
    def _cyclic(self) -> CyclicProblem:
        return CyclicProblem(whole_problem(self.graph, self.costs))

    @cached_property
    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(self.graph, self.costs, self.most_stages)
