"""The front of several models: latency of each, energy, and how far their rates could grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.errors import DemandError
from parapipe.files.progress import Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition, partition
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.mapping import Mapping
from parapipe.mappings.service import Service
from parapipe.modulo.cyclic_problem import CyclicProblem
from parapipe.modulo.least_period import loads_s
from parapipe.pareto import ENERGY_TIE, least, most_balanced
from parapipe.problems.solve import Reporter, SolvedQuestions
from parapipe.processes.deadline import Deadline
from parapipe.processes.memory_limit import SHORT_OF_MEMORY
from parapipe.search.candidate_selection import mark_fronts
from parapipe.search.contract import Moment, Search, SearchProblem
from parapipe.search.exploration_result import Exploration, UnfinishedRow, least_energy_j
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import configure
from parapipe.several_models.patterns import Demand, LeastPeriods, Patterns
from parapipe.several_models.search import Length, PatternSources, best_length
from parapipe.solvers.problem import NANO

NEAR = 1e-6  # share by which a rate or a deadline may be missed: rounding


@dataclass(frozen=True, slots=True)
class SeveralModelsFront:
    """The front, and what patterns without sharing reach.

    Parameters
    ----------
    times
        As long as the shortest pattern is that of the front.
    partition
        Of its graph.
    """

    exploration: Exploration
    reached: LeastPeriods
    times: int
    partition: Partition


def explore_several(
    graph: OperatorGraph,
    costs: CostTable,
    demands: Sequence[Demand],
    options: MapOptions,
    *,
    period_s: float,
    deadline: Deadline,
    longer: Callable[[int], tuple[OperatorGraph, CostTable]],
    searches: Sequence[Search],
    progress: Tell | None = None,
) -> SeveralModelsFront:
    """Return the patterns of several models that no other one beats.

    Parameters
    ----------
    graph
        All frames of the shortest pattern.
    demands
        Of each model, in the order of the graph.
    period_s
        In which the frames of that pattern come.
    longer
        Gives graph and costs of a pattern that is so many times as long.
    searches
        Those for patterns are run.

    Raises
    ------
    DemandError
        If the rates or the deadlines cannot be kept, or no pattern that keeps them was found; says
        which model and which processor stand in the way, and how far.
    """
    patterns = Patterns(
        graph, costs, demands, period_s, seed=options.seed, over=lambda: deadline.over
    )
    undone: list[str] = []
    lacking: dict[str, str] = {}
    reached = patterns.reached()
    length = best_length(patterns, reached)
    if length.each_s > period_s * (1 + NEAR):
        raise DemandError(_rates_message(patterns, reached, length))
    shortest = None
    if length.times > 1:
        shortest = (patterns, reached)
        graph, costs = longer(length.times)
        patterns = replace(patterns, graph=graph, costs=costs, period_s=length.times * period_s)
        reached = patterns.reached([length.least.processor])
    problem = SearchProblem(
        graph,
        partition(graph),
        (costs,),
        identical=((),),
        options=options,
        schedules=tuple,
        reporter=lambda phase: Reporter(phase, progress),
        left_out=undone.append,
        lacking=lacking,
        patterns=PatternSources(patterns, reached, length.times, shortest),
    )
    configurations: list[Configuration] = []
    with deadline.ending():
        for search in searches:
            if search.moment is Moment.PATTERNS:
                for each in search.run(problem, configurations, deadline):
                    configurations.append(configure(each, graph, (costs,)))
                    deadline.interruptible = True
    in_time = [each for each in configurations if not _late_by(each, demands)]
    in_time = [each for each in in_time if _served(each).effective_factor >= 1 - NEAR]
    if deadline.interrupted and not in_time:
        raise KeyboardInterrupt
    if not in_time:
        raise DemandError(_deadlines_message(configurations, patterns))
    chosen = tuple(_marked_front(in_time, patterns, options))
    unfinished = None
    if deadline.over:
        undone.append("the search for patterns ended before it had tried all periods")
    undone += [SHORT_OF_MEMORY] * deadline.short_of_memory
    if undone:
        least_j = least_energy_j(len(graph.operators), [costs])
        longest_s = (
            max(CyclicProblem(each).critical_path for each in patterns.baselines.problems) * 1e-9
        )
        unfinished = UnfinishedRow(
            reasons=tuple(undone), latency_s=longest_s, period_s=reached.bound_s, energy_j=least_j
        )
    exploration = Exploration(
        found=chosen,
        schedules={},
        absent=lacking,
        cached=frozenset(),
        asked={},
        traded=SolvedQuestions({}, frozenset()),
        resolution=options.resolution,
        energy_resolution=None,
        energy_timed_out=False,
        unfinished=unfinished,
        interrupted=deadline.interrupted,
    )
    return SeveralModelsFront(exploration, reached, length.times, problem.partition)


def _marked_front(
    configurations: Sequence[Configuration], patterns: Patterns, options: MapOptions
) -> list[Configuration]:
    """Return what no other one beats, and the best of each kind, by ascending latency."""

    def names(some: Sequence[int], front: Sequence[int]) -> dict[int, tuple[str, ...]]:
        winners = [*_winners(configurations, some, front, patterns, options.energy)]
        return {i: tuple(name for name, best in winners if best == i) for _, i in winners}

    return mark_fronts(
        configurations,
        [_objectives(each, energy=options.energy) for each in configurations],
        names,
        without_energy=len(patterns.demands) + 1,
        resolution=options.resolution,
    )


def _served(configuration: Configuration) -> Service:
    assert configuration.several is not None
    return configuration.several


def _objectives(configuration: Configuration, *, energy: bool) -> tuple[float, ...]:
    """Return what the front trades, all to be least."""
    served = _served(configuration)
    least = (*served.latency_s, 1 / served.effective_factor)
    return (*least, configuration.evaluated.energy_j) if energy else least


def _winners(
    configurations: Sequence[Configuration],
    some: Sequence[int],
    front: Sequence[int],
    patterns: Patterns,
    energy: bool,
) -> Iterator[tuple[str, int]]:
    def objectives(i: int) -> tuple[float, ...]:
        return _objectives(configurations[i], energy=energy)

    def factor_first(i: int) -> tuple[float, ...]:
        return (-_served(configurations[i]).effective_factor, *objectives(i))

    yield "most-growth", least(some, factor_first)
    unshared = [i for i in some if _on_own_processors(configurations[i].mapping, patterns)]
    if unshared:
        yield "own-processors", least(unshared, factor_first)
    for model, demand in enumerate(patterns.demands):
        latencies = {
            i: (_served(configurations[i]).latency_s[model], *factor_first(i)) for i in some
        }
        yield f"{demand.name}-L", least(some, latencies.__getitem__)
    yield "balanced", most_balanced(front, objectives, 1 / NANO)
    if energy:
        efficient = {i: (configurations[i].evaluated.energy_j, *factor_first(i)) for i in some}
        yield "most-efficient", least(some, efficient.__getitem__, (ENERGY_TIE,))


def _on_own_processors(mapping: Mapping, patterns: Patterns) -> bool:
    """Tell whether no processor works for two models."""
    frames = patterns.frames
    users: dict[int, set[int]] = {}
    for at in mapping.placements:
        users.setdefault(at.processor, set()).add(frames.model[frames.of[at.operator]])
    return all(len(each) == 1 for each in users.values())


def _late_by(each: Configuration, demands: Sequence[Demand]) -> float:
    """Return the share by which the deadline is missed that is missed most; 0 if none is."""
    pairs = zip(_served(each).latency_s, demands, strict=True)
    share = max(latency_s / demand.deadline_s - 1 for latency_s, demand in pairs)
    return max(0.0, share - NEAR)


def _rates_message(patterns: Patterns, reached: LeastPeriods, length: Length) -> str:
    """Say which model and which processor stand in the way of the rates, and how far.

    What is said to be at most holds for patterns of any length.
    """
    shared, period_s, names = reached.shared, patterns.period_s, patterns.costs.processors
    counts = patterns.frames.counts
    factor, bound = period_s / length.each_s, period_s / reached.bound_s
    clauses = []
    rests: list[float] = []
    for model, demand in enumerate(patterns.demands):
        least_s = patterns.bound_s([n * (m == model) for m, n in enumerate(counts)])
        others = [n * (m != model) for m, n in enumerate(counts)]
        rest_s = patterns.bound_s(others) if any(others) else 0.0
        own, rest = (period_s / each if each else inf for each in (least_s, rest_s))
        rests.append(rest)
        clauses.append(f"'{demand.name}' alone reaches at most {plain(own, 3)} times its rate")
    worst = max(range(len(rests)), key=rests.__getitem__)
    loads = loads_s(patterns.problem, shared.processor)[: len(names)]
    fullest = max(range(len(names)), key=loads.__getitem__)
    share = _share_of_model(patterns, shared.processor, fullest, worst)
    stands = (
        f"without '{patterns.demands[worst].name}', the others reach at most "
        f"{plain(rests[worst], 3)} times theirs; "
        if len(rests) > 1
        else ""
    )
    memory_s = patterns.costs.memory_range_s()[0]
    if memory_s > period_s:
        stands += (
            f"at its bandwidth, the memory needs {plain(memory_s / period_s, 3)} times the period "
            "for what all frames read and write; "
        )
    if bound < 1:
        cannot = (
            f"the rates cannot be kept: all models together reach {plain(factor, 3)} times of what "
            f"is asked, and no pattern reaches more than {plain(bound, 3)} times"
        )
    else:
        frames = length.times * len(patterns.frames.model)
        cannot = (
            f"no pattern was found that keeps the rates: the best one, of {frames} frames, reaches "
            f"{plain(factor, 3)} times of what is asked; that none reaches more than "
            f"{plain(bound, 3)} times is certain, and one that is longer may keep them"
        )
    return (
        f"{cannot}; {'; '.join(clauses)}; {stands}the "
        f"fullest processor is '{names[fullest]}', {share:.0%} of its work for "
        f"'{patterns.demands[worst].name}': lower that rate first"
    )


def _share_of_model(patterns: Patterns, place: Sequence[int], processor: int, model: int) -> float:
    """Return the share of a processor's work that is for one model."""
    frames, time_s = patterns.frames, patterns.problem.time_s
    operators = [v for v, p in enumerate(place) if p == processor]
    own = sum(time_s[v][processor] for v in operators if frames.model[frames.of[v]] == model)
    return own / (sum(time_s[v][processor] for v in operators) or 1.0)


def _deadlines_message(configurations: Sequence[Configuration], patterns: Patterns) -> str:
    """Say which deadline, or what else, stands in the way, and how far."""
    if not configurations:
        return (
            "no pattern was found in which every transfer is read soon enough: give lower rates "
            "or a longer `budget_s`"
        )
    demands = patterns.demands
    nearest = min(configurations, key=lambda each: _late_by(each, demands))
    if not _late_by(nearest, demands):
        most = max(
            _served(each).effective_factor for each in configurations if not _late_by(each, demands)
        )
        return (
            "processors slow each other down, and no pattern was found that keeps the rates "
            f"beside that: one in time reaches {plain(most, 3)} times of them; lower them, or give "
            "longer deadlines"
        )
    clauses = []
    for model, demand in enumerate(demands):
        latency_s = _served(nearest).latency_s[model]
        if latency_s > demand.deadline_s * (1 + NEAR):
            least_s = min(_served(each).latency_s[model] for each in configurations)
            path_s = CyclicProblem(patterns.baselines.problems[model]).critical_path * 1e-9
            clauses.append(
                f"'{demand.name}' takes {plain(latency_s * 1e3)} ms instead of "
                f"{plain(demand.deadline_s * 1e3)} ms, {latency_s / demand.deadline_s - 1:.0%} too "
                f"long (by itself first, {plain(least_s * 1e3)} ms; its longest way, every "
                f"operator where it is fastest, {plain(path_s * 1e3)} ms)"
            )
    return (
        "no pattern was found that keeps all deadlines; in the nearest one, "
        f"{'; '.join(clauses)}: give longer deadlines or lower rates"
    )
