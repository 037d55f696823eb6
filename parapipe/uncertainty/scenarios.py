"""Searches under drawn costs: what would be best if the costs were others than stated.

A scenario is a draw of what many costs share: states of processors, errors of fits, hand-overs and
power. Single operators keep what they are stated to take beside that: what repeats in a network
stays equal, so that it is solved once, and no search profits from the luck of an operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, exp, inf
from pathlib import Path

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost
from parapipe.cost.spread import CERTAIN, PlatformSpread
from parapipe.errors import MappingError
from parapipe.files.progress import ALONE
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.feedback import keep_loops
from parapipe.mappings.memory import MemoryLimit, peaks_of
from parapipe.platform.fields import Expression
from parapipe.platform.support import Refusal
from parapipe.problems.cache import Cache
from parapipe.problems.identical_processors import identical_processors
from parapipe.processes.deadline import Deadline
from parapipe.processes.shared_work import SMALL_PROBLEM, distribute
from parapipe.search.configurations_from_costs import explore
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.options import MapOptions
from parapipe.search.registry import requested_searches
from parapipe.search.stages.candidates import Candidate
from parapipe.uncertainty.causes import (
    ALL_STATES,
    HAND_OVERS,
    Draws,
    on_processor,
    power_of,
    state_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """Cost tables in one draw, the first one that of the default points."""

    tables: tuple[CostTable, ...]


@dataclass(frozen=True, slots=True)
class ScenarioConfiguration:
    """A configuration that was worth showing in a scenario, as what can be said of it elsewhere.

    See `Configuration` for its fields; proofs are of the costs of the scenario.
    """

    table: int
    assignment: Assignment
    replicated: tuple[tuple[int, ...], ...]
    proven: bool
    gap: float


def scenarios_of(
    graph: OperatorGraph, tables: Sequence[CostTable], count: int, seed: int
) -> tuple[Scenario, ...]:
    """Return drawn cost tables, as `Draws` of that many have them; what is shared errs in all."""
    draws = Draws(count, seed)
    return tuple(
        Scenario(tuple(sampled_table(graph, table, draws, draw) for table in tables))
        for draw in range(1, count + 1)
    )


def sampled_table(graph: OperatorGraph, costs: CostTable, draws: Draws, draw: int) -> CostTable:
    """Return what a graph costs in a draw of all that costs share.

    Identical processors have one state here, so that they stay identical.

    Parameters
    ----------
    draw
        Its column in what `Draws.of` returns; 0 are the stated costs.
    """
    if costs.spread is None:
        return costs
    sample = _Sample(costs.spread, costs.processors, draws, draw)
    groups = identical_processors(graph, costs)
    first = {p: group[0] for group in groups for p in group}
    stands_in = [first.get(p, p) for p in range(len(costs.processors))]
    cached: dict[tuple[int, int], OperatorCost | Refusal] = {}

    def entry(cost: OperatorCost | Refusal, p: int) -> OperatorCost | Refusal:
        if isinstance(cost, Refusal):
            return cost
        key = id(cost), stands_in[p]
        if key not in cached:
            cached[key] = sample.cost(cost, stands_in[p])
        return cached[key]

    moves = sample.factor(HAND_OVERS, costs.spread.transfers)
    moved = {
        matrix: tuple(tuple(moves * time_s for time_s in row) for row in matrix)
        for matrix in set(costs.transfers.values())
    }
    return replace(
        costs,
        entries=tuple(tuple(entry(cost, p) for p, cost in enumerate(row)) for row in costs.entries),
        transfers={name: moved[matrix] for name, matrix in costs.transfers.items()},
        static_power_w=tuple(
            sample.power(stands_in[p]) * watts for p, watts in enumerate(costs.static_power_w)
        ),
        spread=None,
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    """What is drawn of a platform; processors go by their indices."""

    spread: PlatformSpread
    processors: tuple[str, ...]
    draws: Draws
    draw: int

    def factor(self, cause: str, spread: float) -> float:
        return exp(spread * float(self.draws.of([cause])[0, self.draw]))

    def power(self, p: int) -> float:
        return self.factor(power_of(self.spread.states[p]), self.spread.power[p])

    def cost(self, cost: OperatorCost, p: int) -> OperatorCost:
        """Return the cost of an operator; where it is slower, it draws less power."""
        state = self.factor(state_of(self.spread.states[p]), self.spread.own_state)
        state *= self.factor(ALL_STATES, self.spread.common)
        parts = []
        for part in cost.parts:
            cause = on_processor(part.spread.cause, self.processors[p])
            shared = self.factor(cause, part.spread.shared) if part.spread.cause else 1.0
            time = Expression(part.time_s * shared * state)
            power = Expression(part.power.value * self.power(p) / state)
            parts.append(replace(part, time=time, power=power, spread=CERTAIN))
        return replace(cost, parts=tuple(parts))


class SampledCostsSearch:
    """The search repeated under drawn costs, for what is good at a quantile of them."""

    name = "drawn-costs"
    moment = Moment.DRAWS

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield what was found in draws and by no incumbent, with what it takes at stated costs.

        Its memory is known, and keeps the limit. What is reported is how many draws were searched.
        """
        graph, tables, options = problem.graph, problem.tables, problem.options
        report = problem.reporter("searching")
        scenarios = scenarios_of(graph, tables, options.scenarios, options.seed)
        searched = search_scenarios(scenarios, graph, problem.partition, options, deadline)
        report(len(searched), len(scenarios))
        peak_of = peaks_of(graph, lambda configuration: tables[configuration.table])
        limit = MemoryLimit(options.max_memory_bytes)
        configurations = [each for each in incumbents if isinstance(each, Configuration)]
        in_draws = chain.from_iterable(searched.values())
        for each in at_stated_costs(in_draws, graph, tables, configurations):
            sized = replace(each, peak=peak_of(each))
            if limit.fits(sized):
                yield sized


def search_scenarios(
    scenarios: Sequence[Scenario],
    graph: OperatorGraph,
    partition: Partition,
    options: MapOptions,
    deadline: Deadline,
) -> dict[int, tuple[ScenarioConfiguration, ...]]:
    """Repeat the search under drawn costs, several at the same time; return what was found by each.

    Stages of whole operators are searched. Scenarios that the deadline leaves out are missing.

    Parameters
    ----------
    options
        Those of the search with the stated costs, but for its budget: what is left to the deadline
        is shared by the scenarios.

    Raises
    ------
    MappingError
        A worker process ends before it has answered.
    """
    if not (left_s := deadline.left_s):
        return {}
    budget_s = None if left_s == inf else left_s / ceil(len(scenarios) / options.workers)
    alone = replace(
        options,
        budget_s=budget_s,
        jobs=ALONE,
        interleave="none",
        split="none",
        search=(),
        recompute=False,
        robust=None,
        draws=0,
        rates=None,  # what reaches it by the stated costs is chosen later
    )
    number = {scenario: i for i, scenario in enumerate(scenarios)}
    of_scenarios: dict[int, tuple[ScenarioConfiguration, ...]] = {}
    with deadline.ending():
        distribute(
            search_scenario,
            scenarios,
            lambda scenario, some: of_scenarios.__setitem__(number[scenario], some),
            given=(graph, partition, alone),
            size=lambda _: len(graph.operators) + SMALL_PROBLEM,
            jobs=options.workers,
            deadline=deadline,
        )
    return dict(sorted(of_scenarios.items()))


def search_scenario(
    scenario: Scenario, graph: OperatorGraph, partition: Partition, options: MapOptions
) -> tuple[ScenarioConfiguration, ...]:
    """Return what is worth showing in one scenario; nothing if no configuration keeps the limit."""
    folder = None if isinstance(options.cache, bool) else Path(options.cache)
    costs, *others = scenario.tables
    with nullcontext() if options.cache is False else Cache(folder, lambda _: None) as cache:
        try:
            exploration = explore(
                graph, partition, costs, options, cache=cache, others=others,
                searches=requested_searches(options),
            )  # fmt: skip
        except MappingError:
            if options.max_memory_bytes is None:
                raise
            return ()
    return tuple(
        ScenarioConfiguration(
            each.table, assignment_of(each.mapping), each.mapping.replicated, each.proven, each.gap
        )
        for each in exploration.found
    )


def at_stated_costs(
    configurations: Iterable[ScenarioConfiguration],
    graph: OperatorGraph,
    tables: Sequence[CostTable],
    incumbents: Sequence[Configuration],
) -> Iterator[Configuration]:
    """Yield what was found in draws, with what it takes by the stated costs; nothing twice.

    Operators keep their processors, their stages and their order, and start as early as that
    allows.

    Parameters
    ----------
    incumbents
        What the search with the stated costs has found.
    """
    seen = {
        _key_of(each.table, assignment_of(each.mapping), each.mapping.replicated)
        for each in incumbents
        if each.mapping.period_s is None and not each.split
    }
    for each in configurations:
        key = _key_of(each.table, each.assignment, each.replicated)
        if key in seen:
            continue
        seen.add(key)
        costs = tables[each.table]
        mapping = mapping_of(graph, None, costs, each.assignment).with_replicas(each.replicated)
        if keep_loops(mapping, graph, costs) is None:
            continue
        yield Configuration(
            mapping,
            evaluate(mapping, graph, costs),
            proven=each.proven,
            gap=each.gap,
            table=each.table,
        )


def _key_of(
    table: int, assignment: Assignment, replicated: tuple[tuple[int, ...], ...]
) -> tuple[object, ...]:
    """Return what says how a configuration runs: by stage, the order on each processor."""
    orders = tuple(
        tuple(sorted(stage, key=lambda v: assignment.processors[v])) for stage in assignment.stages
    )
    return table, assignment.processors, orders, replicated
