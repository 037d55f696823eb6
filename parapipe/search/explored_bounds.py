"""What no configuration that an exploration may list is below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.mappings.configuration import Configuration, SplitModel
from parapipe.search.exploration_result import UnfinishedRow, least_energy_j
from parapipe.search.mapping_bounds import (
    EnergyBounds,
    TimeBounds,
    bounds_of_all_sets,
    is_nowhere_faster,
    operator_bounds,
    relaxed_bounds,
    stage_bounds,
)
from parapipe.search.stages.stage_search import StageProblems


@dataclass(frozen=True)
class ExploredBounds:
    """Bounds of all configurations that an exploration may list, with the options that it has.

    Parameters
    ----------
    stages
        With bounds of those with the first cost table where not all problems were solved.
    complete
        Whether all problems of all cost tables were solved.
    interleaved
        Whether frames may be interleaved.
    interleaved_s
        The least period of all mappings of whole operators that interleave frames, if that is
        proven; else infinite.
    splits
        The models with operators split that were found.
    changed
        Whether what is found is changed by itself, so that it may be any mapping.
    """

    stages: StageProblems
    complete: bool
    interleaved: bool
    interleaved_s: float
    splits: Sequence[SplitModel]
    changed: bool = False

    def with_bounds(self, configuration: Configuration) -> Configuration:
        """Return a configuration that interleaves frames with bounds of all that may be listed.

        Its own bounds are those of mappings that interleave frames; others have none.
        """
        if configuration.least is None:
            return configuration
        own, period_s = configuration.least, configuration.evaluated.period_s
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
        gap = least.gap(configuration.evaluated)
        return replace(configuration, least=least, proven=not gap, gap=gap)

    def unfinished(self, reasons: Sequence[str]) -> UnfinishedRow:
        """Return what was left undone, with bounds."""
        tables, operators = self.stages.searches.tables, len(self.stages.graph.operators)
        times = [self._stage_bounds(i) for i in self._fast_tables]
        if self._cuts_anywhere:
            times += map(self._mapping_bounds, self._fast_tables)
        elif self.interleaved:
            proven_s = 0.0 if self.interleaved_s == inf else self.interleaved_s
            period_s = max(proven_s, self._any_bounds.period_s)
            times.append(bounds_of_all_sets(tables[0], period_s, self._any_bounds.latency_s))
        times += self._split_times
        energies_j = [least_energy_j(operators, tables)]
        splits = ((len(each.graph.operators), [each.costs]) for each in self.splits)
        energies_j += [least_energy_j(*each) for each in splits]
        return UnfinishedRow(
            reasons=tuple(reasons),
            latency_s=min(each.latency_s for each in times),
            period_s=min(each.period_s for each in times),
            energy_j=min(energies_j),
        )

    @cached_property
    def _any_bounds(self) -> TimeBounds:
        """Bounds of all mappings of whole operators by the first cost table."""
        return operator_bounds(self.stages.graph, self.stages.searches.tables[0])

    @cached_property
    def _fast_tables(self) -> list[int]:
        """Numbers of the cost tables by which some mapping may take less time than by the first."""
        first, *others = self.stages.searches.tables
        faster = (i for i, each in enumerate(others, 1) if not is_nowhere_faster(each, first))
        return [0, *faster]

    @cached_property
    def _other_times(self) -> list[TimeBounds]:
        """Times of all that bounds of interleaved frames do not cover."""
        first, *faster = self._fast_tables
        kinds = [*([] if self._is_covered else [first]), *faster]
        return [*map(self._mapping_bounds, kinds), *self._split_times]

    @cached_property
    def _other_energies(self) -> list[EnergyBounds]:
        """Energies of all that bounds of interleaved frames do not cover."""
        operators, energies = len(self.stages.graph.operators), []
        bounds: list[tuple[CostTable, TimeBounds]] = []
        for i, costs in enumerate(self.stages.searches.tables):
            usable = (times for other, times in bounds if is_nowhere_faster(costs, other))
            if (times := next(usable, None)) is None:
                covered = i == 0 and self._is_covered
                interleaved = bounds_of_all_sets(costs, self.interleaved_s, 0.0)
                times = interleaved if covered else self._mapping_bounds(i)
                bounds.append((costs, times))
            if i == 0 and self._only_receivers_busy and self.interleaved_s < inf:
                if groups := self.stages.searches.replicable(0).alone:
                    energies.append(
                        EnergyBounds.of_replicas(self.stages.graph, costs, times, groups)
                    )
            else:
                energies.append(EnergyBounds.of(operators, costs, times.periods_s))
        splits = zip(self.splits, self._split_times, strict=True)
        return energies + [
            EnergyBounds.of(len(model.graph.operators), model.costs, times.periods_s)
            for model, times in splits
        ]

    @cached_property
    def _is_covered(self) -> bool:
        """Whether bounds of interleaved frames hold for all with the first cost table.

        They do if no processors take turns, and if all that hand-overs keep busy is the receiver,
        whose stage counts them.
        """
        alone = self.stages.searches.replicable(0).alone
        return self._only_receivers_busy and not alone and self.interleaved_s < inf

    @property
    def _only_receivers_busy(self) -> bool:
        """Whether hand-overs keep nothing but the receiver busy."""
        busy = self.stages.searches.tables[0].transfer_resource
        return all(each in (None, q) for row in busy for q, each in enumerate(row))

    @property
    def _cuts_anywhere(self) -> bool:
        """Whether stages may be cut inside of units: to need less memory, or by other packages."""
        options = self.stages.searches.options
        limited = options.memory or options.max_memory_bytes is not None
        return limited or bool(options.search) or self.changed

    @cached_property
    def _mapping_bounds(self) -> Callable[[int], TimeBounds]:
        """What returns bounds of all mappings by a cost table that do not interleave frames."""
        return cache(self._compute_mapping_bounds)

    def _compute_mapping_bounds(self, table: int) -> TimeBounds:
        if not self._cuts_anywhere:
            return self._stage_bounds(table)
        if not table:
            return self._any_bounds
        return operator_bounds(self.stages.graph, self.stages.searches.tables[table])

    @cached_property
    def _stage_bounds(self) -> Callable[[int], TimeBounds]:
        """What returns bounds of all stages between units by a cost table."""
        return cache(self._compute_stage_bounds)

    def _compute_stage_bounds(self, table: int) -> TimeBounds:
        searches = self.stages.searches
        costs, partition = searches.tables[table], searches.partition
        if table == 0 and self.stages.undone and (promising := self.stages.promising):
            period_s = max(promising.period_s, self._any_bounds.period_s)
            latency_s = max(promising.latency_s, self._any_bounds.latency_s)
            return bounds_of_all_sets(costs, period_s, latency_s)
        if table and not self.complete:
            return relaxed_bounds(self.stages.graph, partition, costs)
        sizes = partition.cuts.last, len(self.stages.graph.operators)
        return stage_bounds(*sizes, self.stages.shortest(table), costs, searches.replicable(table))

    @cached_property
    def _split_times(self) -> list[TimeBounds]:
        return [operator_bounds(each.graph, each.costs) for each in self.splits]
