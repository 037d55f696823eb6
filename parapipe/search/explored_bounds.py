"""What no configuration that an exploration may list is below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration, SplitModel
from parapipe.search.exploration_result import UnfinishedRow, least_energy_j
from parapipe.search.mapping_bounds import (
    EnergyBounds,
    TimeBounds,
    is_nowhere_faster,
    of_all_sets,
    operator_bounds,
    relaxed_bounds,
    stage_bounds,
)
from parapipe.search.stages.problem_order import Promising
from parapipe.search.stages.stage_incumbents import Searches
from parapipe.search.stages.unit_schedules import Choice


@dataclass(frozen=True)
class ExploredBounds:
    """Bounds of all configurations that an exploration may list, with the options that it has.

    Parameters
    ----------
    promising
        What is known of stages with the first cost table where not all of their problems were
        solved; else none.
    choices
        By number of the cost table: the shortest schedules.
    whole
        Whether all problems of all cost tables were solved.
    interleaved
        Whether frames may be interleaved.
    interleaved_s
        The least period of all mappings of whole operators that interleave frames, if that is
        proven; else infinite.
    splits
        The models with operators split that were found.
    """

    graph: OperatorGraph
    searches: Searches
    promising: Promising | None
    choices: Callable[[int], Sequence[Choice]]
    whole: bool
    interleaved: bool
    interleaved_s: float
    splits: Sequence[SplitModel]

    def with_bounds(self, found: Configuration) -> Configuration:
        """Return a configuration that interleaves frames with bounds of all that may be listed.

        Its own bounds are those of mappings that interleave frames; others have none.
        """
        if found.least is None:
            return found
        own, period_s = found.least, found.evaluated.period_s
        periods_s = (each.period_s for each in self._other_times)
        latencies_s = (each.latency_at(period_s) for each in self._other_times if own.latency_s)
        energies_j = (
            each.at(period_s, own.energy_j) for each in self._other_energies if own.energy_j
        )
        least = replace(
            own,
            period_s=min([own.period_s, self.interleaved_s, *periods_s]),
            latency_s=min([own.latency_s, *latencies_s]),
            energy_j=min([own.energy_j, *energies_j]),
        )
        gap = least.gap(found.evaluated)
        return replace(found, least=least, proven=not gap, gap=gap)

    def unfinished(self, reasons: Sequence[str]) -> UnfinishedRow:
        """Return what was left undone, with bounds."""
        tables, operators = self.searches.tables, len(self.graph.operators)
        times = [self._stages(i) for i in self._fast_tables]
        if self._cuts_anywhere:
            times += map(self._mappings, self._fast_tables)
        elif self.interleaved:
            known_s = 0.0 if self.interleaved_s == inf else self.interleaved_s
            period_s = max(known_s, self._anyhow.period_s)
            times.append(of_all_sets(tables[0], period_s, self._anyhow.latency_s))
        times += self._split_times
        energies_j = [least_energy_j(operators, tables)]
        energies_j += [
            least_energy_j(len(each.graph.operators), [each.costs]) for each in self.splits
        ]
        return UnfinishedRow(
            reasons=tuple(reasons),
            latency_s=min(each.latency_s for each in times),
            period_s=min(each.period_s for each in times),
            energy_j=min(energies_j),
        )

    @cached_property
    def _anyhow(self) -> TimeBounds:
        """Bounds of all mappings of whole operators by the first cost table."""
        return operator_bounds(self.graph, self.searches.tables[0])

    @cached_property
    def _fast_tables(self) -> list[int]:
        """Numbers of the cost tables by which some mapping may take less time than by the first."""
        first, *others = self.searches.tables
        faster = (i for i, each in enumerate(others, 1) if not is_nowhere_faster(each, first))
        return [0, *faster]

    @cached_property
    def _other_times(self) -> list[TimeBounds]:
        """Times of all that bounds of interleaved frames do not cover."""
        first, *faster = self._fast_tables
        kinds = [*([] if self._is_covered else [first]), *faster]
        return [*map(self._mappings, kinds), *self._split_times]

    @cached_property
    def _other_energies(self) -> list[EnergyBounds]:
        """Energies of all that bounds of interleaved frames do not cover."""
        return [*self._energies()]

    def _energies(self) -> Iterator[EnergyBounds]:
        operators = len(self.graph.operators)
        made: list[tuple[CostTable, TimeBounds]] = []
        for i, costs in enumerate(self.searches.tables):
            known = (times for other, times in made if is_nowhere_faster(costs, other))
            if (times := next(known, None)) is None:
                covered = i == 0 and self._is_covered
                times = self._interleaved_times if covered else self._mappings(i)
                made.append((costs, times))
            if i == 0 and self._are_received and self.interleaved_s < inf:
                if groups := self.searches.replicable(0).alone:
                    yield EnergyBounds.of_replicas(self.graph, costs, times, groups)
            else:
                yield EnergyBounds.of(operators, costs, times.periods_s)
        for model, times in zip(self.splits, self._split_times, strict=True):
            yield EnergyBounds.of(len(model.graph.operators), model.costs, times.periods_s)

    @property
    def _interleaved_times(self) -> TimeBounds:
        return of_all_sets(self.searches.tables[0], self.interleaved_s, 0.0)

    @cached_property
    def _is_covered(self) -> bool:
        """Whether bounds of interleaved frames hold for all with the first cost table.

        They do if no processors take turns, and if all that hand-overs keep busy is the receiver,
        whose stage counts them.
        """
        alone = self.searches.replicable(0).alone
        return self._are_received and not alone and self.interleaved_s < inf

    @property
    def _are_received(self) -> bool:
        """Whether hand-overs keep nothing but the receiver busy."""
        busy = self.searches.tables[0].transfer_resource
        return all(each in (None, q) for row in busy for q, each in enumerate(row))

    @property
    def _cuts_anywhere(self) -> bool:
        """Whether stages may be cut inside of units: to need less memory, or by other packages."""
        options = self.searches.options
        return options.memory or options.max_memory_bytes is not None or bool(options.search)

    @cached_property
    def _mappings(self) -> Callable[[int], TimeBounds]:
        """What returns bounds of all mappings by a cost table that do not interleave frames."""
        return cache(self._mappings_once)

    def _mappings_once(self, table: int) -> TimeBounds:
        if not self._cuts_anywhere:
            return self._stages(table)
        if not table:
            return self._anyhow
        return operator_bounds(self.graph, self.searches.tables[table])

    @cached_property
    def _stages(self) -> Callable[[int], TimeBounds]:
        """What returns bounds of all stages between units by a cost table."""
        return cache(self._stages_once)

    def _stages_once(self, table: int) -> TimeBounds:
        searches = self.searches
        costs, partition = searches.tables[table], searches.partition
        if table == 0 and (known := self.promising):
            period_s = max(known.period_s, self._anyhow.period_s)
            return of_all_sets(costs, period_s, max(known.latency_s, self._anyhow.latency_s))
        if table and not self.whole:
            return relaxed_bounds(self.graph, partition, costs)
        sizes = partition.cuts.last, len(self.graph.operators)
        return stage_bounds(*sizes, self.choices(table), costs, searches.replicable(table))

    @cached_property
    def _split_times(self) -> list[TimeBounds]:
        return [operator_bounds(each.graph, each.costs) for each in self.splits]
