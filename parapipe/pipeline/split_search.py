"""Configurations with operators split over several processors, found by the split search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from typing import Any

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.profile import Profile
from parapipe.errors import SplitError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.split.problem import SplitProblem
from parapipe.mapping.split.search import shortest
from parapipe.pipeline.assigned import mapping_of
from parapipe.pipeline.candidate import Candidate
from parapipe.pipeline.choices import NANO, Choice
from parapipe.pipeline.choose import Chosen
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.evaluate import Evaluated, evaluate
from parapipe.pipeline.mapping import Kind, Mapping
from parapipe.pipeline.part_prices import PartPrices
from parapipe.pipeline.split_model import SplitModel, placed
from parapipe.pipeline.split_ways import SplitWays
from parapipe.platform.platform import Platform

WIDTH = 50
"""Labels at one place: 200 take five times as long, and AlexNet's latency is no shorter then."""


@dataclass(frozen=True, slots=True)
class SplitSources:
    """What it takes to split a model.

    Parameters
    ----------
    splitter
        Returns the model's graph with operators split as rules of `parapipe split` say.
    """

    platform: Platform
    profiles: Sequence[Profile] | None
    splitter: Callable[[Sequence[str]], OperatorGraph]


@dataclass(frozen=True, slots=True)
class SplitCandidate:
    """A configuration with split operators, as candidates of the other search are."""

    mapping: Mapping
    evaluated: Evaluated
    model: SplitModel
    gap: float
    cost_table: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(sum(1 << p for p in stage.processors) for stage in self.mapping.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        return self.mapping.kind

    @property
    def objectives(self) -> tuple[float, float, float]:
        """What the front trades: latency, period, energy."""
        made = self.evaluated
        return (made.latency_s * NANO, made.period_s * NANO, made.energy_j * NANO)

    def configured(self, chosen: Chosen[Any]) -> Configuration:
        """Make a configuration of it."""
        return Configuration(
            self.mapping,
            self.evaluated,
            proven=False,
            gap=self.gap,
            names=chosen.names,
            pareto=chosen.pareto,
            pareto_latency_throughput=chosen.pareto_latency_throughput,
            table=self.cost_table,
            split=self.model,
        )


def split_candidates(
    graph: OperatorGraph,
    partition: Partition,
    costs: CostTable,
    sources: SplitSources | None,
    *,
    schedules: Sequence[Choice],
    known: Sequence[Candidate],
    identical: Sequence[Sequence[int]],
    deadline: Deadline,
    tell: Callable[[int, int], None],
    left_out: Callable[[str], None],
) -> Iterator[SplitCandidate]:
    """Yield, for each set of two or more processors, the best configuration with split operators.

    Parameters
    ----------
    sources
        None are yielded without.
    schedules
        Of units, on all sets of processors.
    known
        Configurations without parts.
    identical
        Groups of processors of which it does not matter which one is used.
    tell
        Called with the numbers of sets that are done and of all.
    left_out
        Takes a sentence for each configuration that the search has found and that cannot be made.
    """
    if sources is None:
        return
    sets = sets_of(len(costs.processors), identical)
    tell(0, len(sets))
    prices = PartPrices(graph, sources.platform, costs, sources.profiles)
    made = SplitWays(prices, partition.order, schedules)
    problem = made.problem()

    def priced(split: OperatorGraph) -> CostTable:
        return build_cost_table(
            split, sources.platform, profiles=sources.profiles, precision=costs.precision
        )

    for done, processors in enumerate(sets, start=1):
        if deadline.over:
            return
        others = ~sum(1 << p for p in processors)
        latencies_ns = (c.latency_ns for c in known if not any(m & others for m in c.processors))
        limit_s = min(latencies_ns, default=inf) / NANO
        part = restricted(problem, processors)
        if part is None:
            continue
        found = shortest(part, known_s=limit_s, width=WIDTH, stop=lambda: deadline.over)
        if found and any(way.is_split for way in found.ways):
            try:
                model, assignment = placed(found.ways, made, sources.splitter, priced)
            except SplitError as error:
                left_out(f"a configuration with split operators is left out: {error}")
                continue
            mapping = mapping_of(model.graph, sources.platform, model.costs, assignment)
            taken = evaluate(mapping, model.graph, model.costs)
            # The search proves its own order of operators only; shared work bounds all orders.
            gap = max(0.0, 1 - part.rest_s[0] / taken.latency_s)
            yield SplitCandidate(mapping, taken, model, gap)
        tell(done, len(sets))


def sets_of(count: int, identical: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the sets of two or more processors; of identical ones, the first are taken."""
    sizes = range(2, count + 1)
    every = (processors for size in sizes for processors in combinations(range(count), size))
    return [processors for processors in every if _takes_the_first(processors, identical)]


def _takes_the_first(processors: Sequence[int], identical: Sequence[Sequence[int]]) -> bool:
    """Whether a set holds the first ones of each group of identical processors."""
    used = [[p in processors for p in group] for group in identical]
    return all(each == sorted(each, reverse=True) for each in used)


def restricted(problem: SplitProblem, processors: Sequence[int]) -> SplitProblem | None:
    """Return a problem in which only some processors work; None if they cannot."""
    ways = tuple(
        tuple(way for way in each if all(p.processor in processors for p in way.pieces))
        for each in problem.ways
    )
    if not all(any(way.end == v + 1 for way in each) for v, each in enumerate(ways)):
        return None
    return replace(problem, ways=ways)
