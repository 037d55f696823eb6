"""The search where processors slow each other down: what is promising, evaluated exactly.

Searches add up times of operators, and cannot know what runs beside them. So they are run with the
times alone, and with times under several expected loads, some of which leave processors empty. All
that comes of it is evaluated event by event, with its times alone and the law, and then changed
little by little as long as that helps. Times alone are bounds, which hold whatever the law.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration, Least, SplitModel
from parapipe.mappings.evaluate import evaluate, memory_s, settle, work_by_processor
from parapipe.mappings.mapping import Mapping
from parapipe.pareto import nondominated
from parapipe.processes.deadline import Deadline
from parapipe.search.candidate_selection import select_candidates
from parapipe.search.exploration_result import UnfinishedRow
from parapipe.search.loaded_costs import expected_loads, loaded_costs, without_law
from parapipe.search.neighbours import Neighbourhood
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import Candidate, StageCandidate, configure

MOST_CANDIDATES = 200  # of a search, that are evaluated
MOST_SHOWN = 24  # on a front, of which none is left out because another one is nearly as good
MOST_CHANGES = 800  # evaluations of changed assignments
MOST_CHANGED_OPERATORS = 24_000  # in all of them: those of large networks take longer


@dataclass(slots=True)
class CoRunSearch:
    """Evaluates what searches have found, and changes it.

    Parameters
    ----------
    tables
        Cost tables with their laws.
    explore
        Returns what a search finds by a cost table.
    deadline
        When to end with what has been found.
    known
        What has been evaluated, by where and in which order all runs.
    splits
        Models with operators split, without the law and with it.
    """

    graph: OperatorGraph
    tables: Sequence[CostTable]
    options: MapOptions
    explore: Callable[[CostTable], Sequence[Configuration]]
    deadline: Deadline
    known: dict[object, Configuration] = field(default_factory=dict)
    splits: dict[int, tuple[SplitModel, SplitModel]] = field(default_factory=dict)

    def run(self, candidates: Sequence[Candidate]) -> list[Configuration]:
        """Return configurations with what they take while processors slow each other down.

        Parameters
        ----------
        candidates
            What was found with times alone.
        """
        free = tuple(map(without_law, self.tables))
        for each in self._promising(candidates):
            self._add(configure(each, self.graph, free))
            if self.deadline.over:
                break
        for found in self._under_loads():
            self._add(found)
        self._change()
        return [*self.known.values()]

    @property
    def has_many(self) -> bool:
        """Whether the front has so many configurations that some stand for others."""
        return len(nondominated(self.known.values(), self._figures)) > MOST_SHOWN

    def _promising(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield the front, what searches made beside stages, and the best on all sets."""
        shown = select_candidates(
            candidates,
            self.tables[0].processors,
            energy=self.options.energy,
            resolution=self.options.resolution,
        )
        yield from shown
        best: dict[object, StageCandidate] = {}
        for each in candidates:
            if isinstance(each, Configuration):
                yield each
                continue
            latency, period, energy = each.nano_objectives
            for order in ((latency, period, energy), (period, latency, energy)):
                key = (order[0] == latency, each.table, each.processors)
                rank = best[key].nano_objectives if key in best else None
                if rank is None or order < _in_order(rank, first_latency=order[0] == latency):
                    best[key] = each
        ranked = sorted(best.values(), key=lambda each: each.nano_objectives)
        yield from ranked[:: 1 + len(ranked) // MOST_CANDIDATES]

    def _under_loads(self) -> Iterator[Configuration]:
        """Yield what searches find with times under expected loads, with its times alone."""
        costs = self.tables[0]
        assert costs.co_run is not None, "there is a law"
        for busy in expected_loads(len(costs.processors)):
            if self.deadline.over:
                return
            try:
                found = self.explore(loaded_costs(costs, costs.co_run, busy))
            except MappingError:
                continue  # these processors do not run the network without others
            for each in found:
                yield replace(each, mapping=retime(each.mapping, self.graph, costs))

    def _add(self, found: Configuration) -> Configuration:
        """Evaluate a configuration, unless the same one was before."""
        key = (found.table, id(found.split), _key(found.mapping))
        if key not in self.known:
            costs, split = self.tables[found.table], found.split
            if split:
                split = self._with_law(split, costs)
                costs = split.costs
            mapping, evaluated = settle(found.mapping, found.graph_of(self.graph), costs)
            self.known[key] = replace(
                found,
                mapping=mapping,
                evaluated=evaluated,
                proven=False,
                gap=0.0,
                least=None,
                split=split,
            )
        return self.known[key]

    def _with_law(self, split: SplitModel, costs: CostTable) -> SplitModel:
        """Return a model with operators split, whose costs have the law; the same one again."""
        if id(split) not in self.splits:
            own = replace(split.costs, co_run=costs.co_run, wholes=costs.wholes)
            self.splits[id(split)] = (split, replace(split, costs=own))
        return self.splits[id(split)][1]

    def _change(self) -> None:
        """Change the best assignments in stages as long as something gets better."""
        costs, operators = self.tables[0], max(1, len(self.graph.operators))
        free = without_law(costs)
        neighbourhood = Neighbourhood(self.graph, costs, self.options.max_stages)
        left = max(1, min(MOST_CHANGES, MOST_CHANGED_OPERATORS // operators))
        done: set[object] = set()
        looked: set[object] = set()
        while True:
            front = nondominated(self.known.values(), self._figures)
            waiting = self._best_unlooked(looked)
            if not waiting:
                return
            for each in waiting:
                looked.add(_key(each.mapping))
                for changed in neighbourhood.of(assignment_of(each.mapping)):
                    if left <= 0 or self.deadline.over:
                        return
                    if (changed.processors, changed.stages) in done:
                        continue
                    done.add((changed.processors, changed.stages))
                    left -= self._try(changed, free, front)

    def _best_unlooked(self, looked: Container[object]) -> list[Configuration]:
        """Return what no other one beats of those whose neighbours have not been looked at.

        What another one beats may lead to what none does, so in the end all are looked at.
        """
        rest = [each for each in self.known.values() if _is_plain(each)]
        return nondominated(
            (each for each in rest if _key(each.mapping) not in looked), self._figures
        )

    def _try(self, changed: Assignment, free: CostTable, front: Sequence[Configuration]) -> bool:
        """Evaluate a changed assignment, unless it cannot be better; tell whether it took long."""
        mapping = mapping_of(self.graph, None, free, changed)
        own = _free_figures(mapping, free)[: 2 + self.options.energy]
        if any(
            all(a <= b for a, b in zip(self._figures(each), own, strict=True)) for each in front
        ):
            return False
        evaluated = evaluate(mapping, self.graph, free)
        alone = Configuration(mapping, evaluated, proven=False, gap=0.0, table=0)
        self._add(alone)
        return True

    def _figures(self, each: Configuration) -> tuple[float, ...]:
        return each.objectives[: 2 + self.options.energy]


def _free_figures(mapping: Mapping, costs: CostTable) -> tuple[float, float, float]:
    """Return latency, period and energy that plain stages take at least, without the law."""
    times_s = [stage.time_s for stage in mapping.stages]
    needed_s = memory_s(mapping, costs)
    period_s = max(needed_s, *work_by_processor(mapping.stages, times_s).values())
    dynamic_j = sum(costs.energy_j(at.operator, at.processor) for at in mapping.placements)
    static_w = sum(costs.static_power_w[p] for p in mapping.processors)
    energy_j = dynamic_j + costs.frame_s(period_s) * static_w
    return max(needed_s, sum(times_s)), period_s, energy_j


def _in_order(figures: tuple[float, float, float], *, first_latency: bool) -> tuple[float, ...]:
    latency, period, energy = figures
    return (latency, period, energy) if first_latency else (period, latency, energy)


def _is_plain(each: Configuration) -> bool:
    """Tell whether it has stages of whole operators, none of which share a processor."""
    mapping = each.mapping
    whole = each.table == 0 and each.split is None
    plain = mapping.period_s is None and not mapping.replicated
    return whole and plain and not any(stage.shared for stage in mapping.stages)


def _key(mapping: Mapping) -> object:
    """Return where and in which order all runs: what an evaluation goes by, beside the costs."""
    orders = tuple(
        (p, tuple((at.operator, at.lag) for at in order)) for p, order in mapping.orders.items()
    )
    return orders, mapping.replicated, mapping.period_s is None


def retime(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a mapping with the times of other costs; where and in which order all runs stays."""
    if mapping.period_s is not None:
        placements = tuple(
            replace(at, end_s=at.start_s + costs.time_s(at.operator, at.processor))
            for at in mapping.placements
        )
        return replace(mapping, placements=placements)
    timed = mapping_of(graph, None, costs, assignment_of(mapping))
    return timed.with_replicas(mapping.replicated)


def with_free_bounds(
    some: Iterable[Configuration], bounds: UnfinishedRow, *, energy: bool
) -> Iterator[Configuration]:
    """Yield configurations with how far they are from what they could take without the law."""
    least = Least(bounds.period_s, bounds.latency_s, bounds.energy_j if energy else 0.0)
    for each in some:
        gap = least.gap(each.evaluated)
        yield replace(each, least=least, gap=gap, proven=not gap)
