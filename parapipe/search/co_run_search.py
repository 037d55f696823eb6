"""The search where times depend on the mapping: what is promising, evaluated exactly.

Searches add up times of operators, and cannot know what runs beside them where processors slow each
other down, nor where captured graphs begin. So they are run with the times alone, and with times
under several expected loads, some of which leave processors empty, and with expected launches. All
that comes of it is evaluated: event by event, with its times alone and the law, and with a launch
for each of its graphs. Then it is changed little by little as long as that helps. Times alone are
bounds, which hold whatever the law and the launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.configuration import Configuration, Least, SplitModel
from parapipe.mappings.evaluate import evaluate, memory_s, settle, work_by_processor
from parapipe.mappings.mapping import Mapping
from parapipe.pareto import nondominated
from parapipe.processes.deadline import Deadline
from parapipe.search.candidate_selection import select_candidates
from parapipe.search.exploration_result import UnfinishedRow
from parapipe.search.loaded_costs import ExpectedLoad, additive, expected_loads
from parapipe.search.local_changes import LocalChanges
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import (
    Candidate,
    EvaluatedCandidate,
    StageCandidate,
    configure,
)

MOST_CANDIDATES = 200  # of a search, that are evaluated
MOST_SHOWN = 24  # on a front, of which none is left out because another one is nearly as good
MOST_CHANGES = 2000  # evaluations of changes of whole operators in stages
MOST_OTHER_CHANGES = 250  # of each other kind
MOST_CHANGED_OPERATORS = 24_000  # in all of them: those of large networks take longer
OTHER_PART = 3  # of other kinds, so many times less

STAGES = (False, False)  # a kind: nothing is split, no frames are interleaved

Rules = tuple[str, ...]
"""What is split in a model, of which there are none for the model as it is."""


@dataclass(slots=True)
class CoRunSearch:
    """Evaluates what searches have found, and changes it.

    Parameters
    ----------
    tables
        Cost tables with their laws and launches.
    explore
        Returns what a search finds with times under a load.
    deadline
        When to end with what has been found.
    interleaves
        Whether frames may be interleaved.
    known
        What has been evaluated, by where and in which order all runs.
    splits
        Models with operators split, by times alone and in truth.
    front
        What no other one beats of what has been evaluated.
    """

    graph: OperatorGraph
    tables: Sequence[CostTable]
    options: MapOptions
    explore: Callable[[ExpectedLoad], Sequence[Configuration]]
    deadline: Deadline
    interleaves: bool = False
    known: dict[object, Configuration] = field(default_factory=dict)
    splits: dict[Rules, tuple[SplitModel, SplitModel]] = field(default_factory=dict)
    front: list[Configuration] = field(default_factory=list)

    def run(self, candidates: Sequence[Candidate]) -> list[Configuration]:
        """Return configurations with what they take in truth, and others near them.

        Parameters
        ----------
        candidates
            What was found with times alone.
        """
        free = tuple(map(additive, self.tables))
        for each in self._promising(candidates):
            self._add(configure(each, self.graph, free))
            if self.deadline.over:
                break
        for found in self._under_loads():
            self._add(found)
        self._change()
        return [*self.known.values()]

    def evaluated(self, found: Iterable[Configuration]) -> list[Configuration]:
        """Return configurations with what they take in truth.

        Those that were evaluated so before stay as they are, and all keep what they store.
        """
        return [
            each if _is_evaluated(each) else replace(self._add(each), peak=each.peak)
            for each in found
        ]

    @property
    def split_models(self) -> Sequence[SplitModel]:
        """The models with operators split that were found, with times alone."""
        return [alone for alone, _ in self.splits.values()]

    @property
    def has_many(self) -> bool:
        """Whether the front has so many configurations that some stand for others."""
        return len(nondominated(self.known.values(), self._figures)) > MOST_SHOWN

    def with_free_bounds(
        self, some: Iterable[Configuration], bounds: UnfinishedRow
    ) -> Iterator[Configuration]:
        """Yield configurations with how far they are from what they could take by times alone."""
        energy_j = bounds.energy_j if self.options.energy else 0.0
        least = Least(bounds.period_s, bounds.latency_s, energy_j)
        for each in some:
            gap = least.gap(each.evaluated)
            yield replace(each, least=least, gap=gap, proven=not gap)

    def _promising(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield the front, what searches made beside stages, and the best on all sets."""
        shown = select_candidates(
            candidates,
            self.tables[0].processors,
            energy=self.options.energy,
            resolution=self.options.resolution,
        )
        yield from shown
        best: dict[object, StageCandidate | EvaluatedCandidate] = {}
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
        every = tuple(range(len(costs.processors)))
        for busy in expected_loads(len(every)) if costs.co_run else (every,):
            if self.deadline.over:
                return
            try:
                found = self.explore(ExpectedLoad.of(costs, costs.co_run, busy))
            except MappingError:
                continue  # these processors do not run the network without others
            yield from map(self._alone, found)

    def _alone(self, found: Configuration) -> Configuration:
        """Return what was found under a load with its times alone."""
        split, graph = found.split, found.graph_of(self.graph)
        if split and split.alone:
            split, _ = self._models(replace(split, costs=split.alone, alone=None))
        costs = split.costs if split else self.tables[0]
        return replace(found, split=split, mapping=retime(found.mapping, graph, costs))

    def _add(self, found: Configuration) -> Configuration:
        """Evaluate a configuration, unless the same one was before."""
        key = (found.table, found.split and found.split.rules, _key(found.mapping))
        if key not in self.known:
            costs, split = self.tables[found.table], found.split
            if split:
                _, split = self._models(split)
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

    def _models(self, split: SplitModel) -> tuple[SplitModel, SplitModel]:
        """Return a model with operators split, by times alone and in truth; the same ones again."""
        if split.rules not in self.splits:
            costs = self.tables[0]
            own = replace(
                split.costs,
                co_run=costs.co_run,
                wholes=costs.wholes,
                graph_launch_s=costs.graph_launch_s,
            )
            self.splits[split.rules] = (split, replace(split, costs=own))
        return self.splits[split.rules]

    def _change(self) -> None:
        """Change what is best of each kind as long as something gets better."""
        changes: dict[Rules, LocalChanges] = {}
        left: dict[object, int] = {}
        looked: set[object] = set()
        self.front = [*nondominated(self.known.values(), self._figures)]
        while waiting := [*self._best_unlooked(looked)]:
            for key, each in waiting:
                looked.add(key)
                alone = self._models(each.split)[0] if each.split else None
                near = self._changes_of(alone, changes)
                kind = _kind(each)
                left.setdefault(kind, _most_changes(kind, near.graph))
                for changed in near.near(each.mapping) if left[kind] > 0 else ():
                    if self.deadline.over:
                        return
                    left[kind] -= self._try(changed, alone, near)
                    if left[kind] <= 0:
                        break

    def _changes_of(
        self, alone: SplitModel | None, changes: dict[Rules, LocalChanges]
    ) -> LocalChanges:
        """Return what changes mappings of a model: of one with operators split, or as it is."""
        rules = alone.rules if alone else ()
        if rules not in changes:
            graph = alone.graph if alone else self.graph
            costs = alone.costs if alone else additive(self.tables[0])
            changes[rules] = LocalChanges(graph, costs, self.options.max_stages, self.interleaves)
        return changes[rules]

    def _best_unlooked(self, looked: set[object]) -> Iterator[tuple[object, Configuration]]:
        """Yield what no other one of its kind beats of those that have not been looked at.

        What another one beats may lead to what none does, so in the end all are looked at.
        """
        kinds: dict[object, list[tuple[object, Configuration]]] = {}
        for key, each in self.known.items():
            if key not in looked and (kind := _kind(each)):
                kinds.setdefault(kind, []).append((key, each))
        for some in kinds.values():
            yield from nondominated(some, lambda pair: self._figures(pair[1]))

    def _try(self, changed: Mapping, split: SplitModel | None, near: LocalChanges) -> bool:
        """Evaluate a changed mapping, unless it cannot be better; tell whether it took long."""
        own = _free_figures(changed, near.costs)[: 2 + self.options.energy]
        if self._is_matched(own):
            return False
        evaluated = evaluate(changed, near.graph, near.costs)
        added = self._add(Configuration(changed, evaluated, False, 0.0, table=0, split=split))
        if not self._is_matched(self._figures(added)):
            self.front = [*nondominated([*self.front, added], self._figures)]
        return True

    def _is_matched(self, figures: Sequence[float]) -> bool:
        """Tell whether something on the front is as good in all."""
        return any(
            all(a <= b for a, b in zip(self._figures(each), figures, strict=True))
            for each in self.front
        )

    def _figures(self, each: Configuration) -> tuple[float, ...]:
        return each.objectives[: 2 + self.options.energy]


def _is_evaluated(each: Configuration) -> bool:
    """Tell whether what a configuration takes holds a law or launches."""
    return each.evaluated.co_run is not None or each.evaluated.launch_s is not None


def _free_figures(mapping: Mapping, costs: CostTable) -> tuple[float, float, float]:
    """Return latency, period and energy that a mapping takes at least, by times alone."""
    times_s = [stage.time_s for stage in mapping.stages]
    needed_s = memory_s(mapping, costs)
    own_s = mapping.period_s or max(work_by_processor(mapping.stages, times_s).values())
    period_s = max(needed_s, own_s)
    dynamic_j = sum(costs.energy_j(at.operator, at.processor) for at in mapping.placements)
    static_w = sum(costs.static_power_w[p] for p in mapping.processors)
    energy_j = dynamic_j + costs.frame_s(period_s) * static_w
    latency_s = sum(times_s) if mapping.period_s is None else mapping.elapsed_s
    return max(needed_s, latency_s), period_s, energy_j


def _in_order(figures: tuple[float, float, float], *, first_latency: bool) -> tuple[float, ...]:
    latency, period, energy = figures
    return (latency, period, energy) if first_latency else (period, latency, energy)


def _kind(each: Configuration) -> object:
    """Return what changes count for together; None of what is not changed.

    Those are groups of processors that take turns, stages that share one, and other cost tables.
    """
    mapping = each.mapping
    shared = mapping.period_s is None and any(stage.shared for stage in mapping.stages)
    if each.table or mapping.replicated or shared:
        return None
    return each.split is not None, mapping.period_s is not None


def _most_changes(kind: object, graph: OperatorGraph) -> int:
    """Return how many changes of a kind are evaluated, given the first model of it."""
    most = MOST_CHANGED_OPERATORS // max(1, len(graph.operators))
    if kind == STAGES:
        return max(1, min(MOST_CHANGES, most))
    return max(1, min(MOST_OTHER_CHANGES, most // OTHER_PART))


def _key(mapping: Mapping) -> object:
    """Return where and in which order all runs: what an evaluation goes by, beside the costs."""
    orders = tuple(
        (p, tuple((at.operator, at.lag) for at in order)) for p, order in mapping.orders.items()
    )
    return orders, mapping.replicated, mapping.period_s


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
