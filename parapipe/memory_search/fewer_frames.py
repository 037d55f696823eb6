"""Interleaved configurations that need less memory: other orders on the circle, longer periods.

An assignment stays as it is. At its own period the order and the starts of its work are annealed
for what is held meanwhile. If that does not keep the limit, longer periods are tried, up to one
that is known to fit: then each frame is through in fewer periods, and fewer are under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from parapipe.cost.cost_table import CostTable
from parapipe.mappings.configuration import Configuration, Least
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import MemoryLimit
from parapipe.modulo.cyclic_problem import Cyclic, ModuloSchedule
from parapipe.modulo.modulo_schedules import Works, scheduled
from parapipe.modulo.reordering import Sizes, thriftier
from parapipe.search.interleaved import repeating, schedule_of
from parapipe.search.problems.problems import whole_problem
from parapipe.solvers.problem import NANO

PIECES = 250_000  # of work whose starts are worked out, at each period
PERIODS = 4  # that are tried between the one that is given and one that is known to fit


@dataclass(frozen=True)
class FewerFrames:
    """Looks for interleaved configurations of one graph that need less memory.

    Parameters
    ----------
    storage, costs
        Of the graph.
    least_period_s
        No mapping of the graph has a shorter period.
    sized
        Gives a configuration its memory.
    seed
        Of all random choices.
    """

    storage: Storage
    costs: CostTable
    limit: MemoryLimit
    least_period_s: float
    sized: Callable[[Configuration], Configuration]
    seed: int

    def like(self, configuration: Configuration, longest_s: float) -> Iterator[Configuration]:
        """Yield configurations of the same assignment, until one keeps the limit at its period.

        Parameters
        ----------
        longest_s
            Shorter periods than this one are tried, down to that of what is given.
        """
        schedule = schedule_of(configuration.mapping, self.storage.graph)
        own = [*self._at_period_of(schedule, configuration)]
        yield from own
        if self.limit.size_bytes is None or any(map(self.limit.fits, own)):
            return
        jobs = Works.of(self.cyclic, schedule.processor)
        short, long = schedule.period, min(longest_s * NANO, sum(jobs.time))
        for _ in range(PERIODS):
            period = int((short * long) ** 0.5)
            if not short < period < long:
                return
            slower = scheduled(jobs, period)
            at_period = [*self._at_period_of(slower, configuration)] if slower else []
            yield from at_period
            if any(map(self.limit.fits, at_period)):
                long = period
            else:
                short = period

    def _at_period_of(
        self, schedule: ModuloSchedule, configuration: Configuration
    ) -> Iterator[Configuration]:
        """Yield a schedule and those that hold less at its period, as configurations."""
        low_memory = thriftier(self.cyclic, schedule, self.sizes, self.seed, PIECES)
        for each in (schedule, *low_memory):
            mapping = repeating(each, self.storage.graph, self.costs)
            evaluated = evaluate(mapping, self.storage.graph, self.costs)
            least = Least(self.least_period_s)
            gap = least.gap(evaluated)
            yield self.sized(
                replace(
                    configuration,
                    mapping=mapping,
                    evaluated=evaluated,
                    proven=not gap,
                    gap=gap,
                    least=least,
                )
            )

    @cached_property
    def cyclic(self) -> Cyclic:
        """The network as its operators repeat every period."""
        return Cyclic(whole_problem(self.storage.graph, self.costs))

    @cached_property
    def sizes(self) -> Sizes:
        """What tensors count for: their bytes, by how scarce the memory is that they are in."""
        storage, names = self.storage, self.storage.system.names
        tensors = [name for name in storage.graph.consumers if name in storage.graph.producer]
        scarce = self.limit.scarcity(names)

        def size(flow: int, p: int) -> float:
            return storage.tensor_bytes(tensors[flow], p) * scarce[storage.memory_of(p)]

        return Sizes(size, lambda flow, p, q: storage.copies(tensors[flow], p, q))
