"""Configurations with operators split over several processors, and which parts to measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations
from math import inf

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.profile import Profile
from parapipe.errors import CostError, SplitError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.power_budget import may_exceed
from parapipe.platform.platform import Platform
from parapipe.problems.identical_processors import identical_processors
from parapipe.processes.deadline import Deadline
from parapipe.search.contract import Moment, SearchProblem, SplitSources
from parapipe.search.stages.candidates import Candidate, StageCandidate
from parapipe.solvers.problem import NANO
from parapipe.split_search.choice import ChosenModes, shortest
from parapipe.split_search.execution_modes import ExecutionModes
from parapipe.split_search.part_prices import PartPrices
from parapipe.split_search.problem import ExecutionMode, SplitProblem, between, ends_s, makespan_s
from parapipe.split_search.split_model import rule_of, rules_of, split_and_assign

FINER = (32, 64)
"""Grids on which shares are refined, one step around the best ones on the grid before."""
ENERGY_ROUNDS = 2
"""Between two configurations, how often those that trade latency for energy are searched."""
LEAST_ENERGY_S_PER_J = 1e6
"""What a joule is worth where energy counts and seconds hardly do."""
NEGLIGIBLE = 1e-6
"""Share of what a choice costs that is not worth a search."""
WIDTH = 50
"""Labels at one place: 200 take five times as long, and AlexNet's latency is no shorter then."""


class SplitSearch:
    """The search with operators split over several processors.

    It yields the best configurations of one stage, and of two, of which one is another
    processor's, for each set of two or more processors.
    """

    name = "split"
    moment = Moment.STAGES

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield configurations that no incumbent of stages of the first cost table beats."""
        stage_candidates = [
            each for each in incumbents if isinstance(each, StageCandidate) and not each.table
        ]
        costs, identical, sources = problem.tables[0], problem.identical[0], problem.splitting
        tell = problem.reporter("splitting")
        sets = processor_sets(len(costs.processors), identical)
        tell(0, len(sets))
        alone = sources.load.costs if sources.load else costs
        prices = PartPrices(problem.graph, sources.platform, alone, sources.profiles, sources.load)
        execution_modes = ExecutionModes(prices, problem.partition.order, problem.schedules())
        energy = problem.options.energy or may_exceed(costs)
        finder = _SplitFinder(execution_modes, sources, energy, deadline)
        for done, processors in enumerate(sets, start=1):
            others = ~sum(1 << p for p in processors)
            within = (
                each for each in stage_candidates if not any(m & others for m in each.processors)
            )
            limit_s = min((each.latency_ns for each in within), default=inf) / NANO
            for choice in finder.choices(processors, limit_s, identical):
                if any(mode.is_split for mode in choice.modes) and not finder.is_beaten(
                    choice, stage_candidates
                ):
                    try:
                        yield finder.candidate(choice)
                    except SplitError as error:
                        problem.left_out(
                            f"a configuration with split operators is left out: {error}"
                        )
                if deadline.over:
                    return
            tell(done, len(sets))


@dataclass(frozen=True, slots=True)
class _SplitChoice:
    """Ways to run all operators.

    Parameters
    ----------
    cuts
        Places in the order of operators at which a stage begins, but for the first one.
    times_s
        Seconds of the stages, without the transfers from one to the next.
    bound_s
        No modes with these stages cost less for a frame: its latency, and what its energy is worth.
    s_per_j
        What a joule of dynamic energy is worth, in seconds.
    """

    modes: tuple[ExecutionMode, ...]
    cuts: tuple[int, ...]
    times_s: tuple[float, ...]
    bound_s: float
    s_per_j: float = 0.0


@dataclass
class _SplitFinder:
    """Finds the best modes to run a model's operators on sets of processors."""

    execution_modes: ExecutionModes
    sources: SplitSources
    energy: bool
    deadline: Deadline

    def __post_init__(self) -> None:
        self.problem = self.execution_modes.problem()

    def choices(
        self, processors: Sequence[int], limit_s: float, identical: Sequence[Sequence[int]]
    ) -> Iterator[_SplitChoice]:
        """Yield what a set of processors does best: all of a model, or one of two stages.

        Parameters
        ----------
        limit_s
            A latency that the set reaches without parts.
        """
        part = restricted(self.problem, processors)
        best = self._shortest(part, 0, part.operators, limit_s) if part else None
        if part is None or best is None:
            return
        yield _SplitChoice(best.modes, (), (best.makespan_s,), best.bound_s)
        if self.energy:
            least = self._shortest_of(
                between(replace(part, s_per_j=LEAST_ENERGY_S_PER_J), 0, part.operators), inf
            )
            yield from self._trades(part, best, least)
        for other in set(range(part.processors)).difference(processors):
            alone = restricted(self.problem, [other])
            if alone and takes_the_first([*processors, other], identical):
                yield from self._pipelines(part, best.modes, alone)

    def _trades(
        self,
        part: SplitProblem,
        fast: ChosenModes,
        slow: ChosenModes | None,
        rounds: int = ENERGY_ROUNDS,
    ) -> Iterator[_SplitChoice]:
        """Yield what takes more time than one choice and less energy, or reversed for the other.

        A joule is worth the seconds that it takes to save one between the two. What costs least
        then is a corner of the convex trade-off, and divides what is left to search.
        """
        if slow is None or not rounds or self.deadline.over:
            return
        saved_j, longer_s = fast.energy_j - slow.energy_j, slow.makespan_s - fast.makespan_s
        if min(saved_j, longer_s) <= 0:
            return
        s_per_j = longer_s / saved_j
        limit_s = (fast.makespan_s + s_per_j * fast.energy_j) * (1 - NEGLIGIBLE)
        between_them = self._shortest(replace(part, s_per_j=s_per_j), 0, part.operators, limit_s)
        if between_them is not None:
            yield _SplitChoice(
                between_them.modes, (), (between_them.makespan_s,), between_them.bound_s, s_per_j
            )
            yield from self._trades(part, fast, between_them, rounds - 1)
            yield from self._trades(part, between_them, slow, rounds - 1)

    def _pipelines(
        self, part: SplitProblem, best: Sequence[ExecutionMode], alone: SplitProblem
    ) -> Iterator[_SplitChoice]:
        """Yield pipelines of a set and of another processor, cut where they balance best.

        Where that is, is estimated by the set's best modes for the whole model.
        """
        unsplit = [min(modes, key=lambda mode: mode.end) for modes in alone.modes]
        before_s = [0.0, *accumulate(mode.pieces[0].time_s for mode in unsplit)]
        ended_s = {at: end_s for at, end_s in ends_s(part, best) if at < part.operators}
        total_s = makespan_s(part, best)
        for first in (True, False):
            at_cut_s = {
                at: max(end_s, before_s[-1] - before_s[at])
                if first
                else max(before_s[at], total_s - end_s)
                for at, end_s in ended_s.items()
            }
            cut = min(at_cut_s, key=at_cut_s.__getitem__, default=0)
            if not cut:
                continue
            begin, end = (0, cut) if first else (cut, part.operators)
            if choice := self._shortest(part, begin, end, inf):
                rest = unsplit[end:] if first else unsplit[:begin]
                rest_s = sum(mode.pieces[0].time_s for mode in rest)
                yield _SplitChoice(
                    (*choice.modes, *rest) if first else (*rest, *choice.modes),
                    (cut,),
                    (choice.makespan_s, rest_s),
                    choice.bound_s + rest_s,
                )

    def _shortest(
        self, problem: SplitProblem, begin: int, end: int, limit_s: float
    ) -> ChosenModes | None:
        """Return the shortest modes to run a range of operators, their shares then refined.

        The bound holds for all modes of the problem, and for those of finer shares that were tried.
        """
        stage = between(problem, begin, end)
        best, tried = self._shortest_of(stage, limit_s), problem
        for grid in FINER:
            if best is not None:
                near = list(self.execution_modes.near(best.modes, grid))
                tried = _with_modes(tried, near)
                few = _with_modes(_without_splits(problem), [*best.modes, *near])
                best = self._shortest_of(between(few, begin, end), best.cost_s) or best
        bound_s, _ = between(tried, begin, end).shared_s(stage.prices)
        return best and replace(best, bound_s=bound_s[0])

    def _shortest_of(self, stage: SplitProblem, limit_s: float) -> ChosenModes | None:
        choice = shortest(stage, limit_s=limit_s, width=WIDTH, stop=lambda: self.deadline.over)
        modes = (mode.mark for mode in choice.modes) if choice else ()
        return choice and replace(
            choice, modes=tuple(mode for mode in modes if isinstance(mode, ExecutionMode))
        )

    def candidate(self, choice: _SplitChoice) -> Configuration:
        """Return a configuration; SplitError if the model cannot be split so."""
        execution_modes, sources = self.execution_modes, self.sources

        def price(split: OperatorGraph) -> CostTable:
            whole = execution_modes.prices.costs
            try:
                costs = build_cost_table(
                    split, sources.platform, profiles=sources.profiles, precision=whole.precision
                )
            except CostError as error:  # what cuts or joins parts runs nowhere
                raise SplitError(str(error)) from error
            return replace(costs, arrival_s=whole.arrival_s, graph_launch_s=whole.graph_launch_s)

        model, assignment = split_and_assign(
            choice.modes, execution_modes, sources.splitter, price, choice.cuts
        )
        if sources.load:
            model = replace(model, costs=sources.load.table(model.costs), alone=model.costs)
        mapping = mapping_of(model.graph, sources.platform, model.costs, assignment)
        evaluated = evaluate(mapping, model.graph, model.costs)
        # The search proves its own order of operators only; shared work bounds all orders.
        dynamic_j = sum(stage.dynamic_energy_j for stage in evaluated.stages)
        cost_s = evaluated.latency_s + choice.s_per_j * dynamic_j
        gap = max(0.0, 1 - choice.bound_s / cost_s)
        return Configuration(mapping, evaluated, proven=False, gap=gap, table=0, split=model)

    def is_beaten(self, choice: _SplitChoice, candidates: Sequence[StageCandidate]) -> bool:
        """Return whether a known configuration is as good in all, whatever transfers take."""
        costs, period_ns = self.execution_modes.prices.costs, max(choice.times_s) * NANO
        used = {piece.processor for mode in choice.modes for piece in mode.pieces}
        static_nj = max(period_ns, costs.least_frame_s * NANO) * sum(
            costs.static_power_w[p] for p in used
        )
        energy_nj = static_nj + NANO * sum(mode.energy_j for mode in choice.modes)
        return any(
            c.latency_ns <= sum(choice.times_s) * NANO
            and c.period_ns <= period_ns
            and (not self.energy or c.energy_nj <= energy_nj)
            for c in candidates
        )


def processor_sets(count: int, identical: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the sets of two or more processors; of identical ones, the first are taken."""
    sizes = range(2, count + 1)
    every = (processors for size in sizes for processors in combinations(range(count), size))
    return [processors for processors in every if takes_the_first(processors, identical)]


def takes_the_first(processors: Sequence[int], identical: Sequence[Sequence[int]]) -> bool:
    """Whether a set holds the first ones of each group of identical processors."""
    used = [[p in processors for p in group] for group in identical]
    return all(each == sorted(each, reverse=True) for each in used)


def _with_modes(problem: SplitProblem, more: Sequence[ExecutionMode]) -> SplitProblem:
    """Return a problem with more modes."""
    modes = [list(each) for each in problem.modes]
    for mode in more:
        modes[mode.begin].append(mode)
    return replace(problem, modes=tuple(map(tuple, modes)))


def _without_splits(problem: SplitProblem) -> SplitProblem:
    """Return a problem in which operators run whole, each by itself."""
    modes = (tuple(mode for mode in each if len(mode.pieces) == 1) for each in problem.modes)
    return replace(problem, modes=tuple(modes))


def restricted(problem: SplitProblem, processors: Sequence[int]) -> SplitProblem | None:
    """Return a problem in which only some processors work; None if they cannot."""
    modes = tuple(
        tuple(mode for mode in each if all(p.processor in processors for p in mode.pieces))
        for each in problem.modes
    )
    if not all(any(mode.end == v + 1 for mode in each) for v, each in enumerate(modes)):
        return None
    return replace(problem, modes=modes)


Rules = tuple[str, ...]
"""Rules of which no two concern one operator, so that one model holds all the parts."""


def balanced_rules(
    graph: OperatorGraph, platform: Platform, costs: CostTable, profiles: Sequence[Profile]
) -> tuple[Rules, ...]:
    """Return rules that split each operator by itself, along each axis, for each set of processors.

    The shares are in proportion to the processors' speeds.
    """
    execution_modes = _execution_modes(graph, platform, costs, profiles)
    rules_of_set: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    sets = processor_sets(len(costs.processors), identical_processors(graph, costs))
    for processors, split in execution_modes.in_balance():
        if processors in sets:
            key = (split.ranges[0].axis, processors)
            rules_of_set.setdefault(key, []).append(rule_of(split, graph))
    return tuple(map(tuple, rules_of_set.values()))


def searched_rules(
    graph: OperatorGraph, platform: Platform, costs: CostTable, profiles: Sequence[Profile]
) -> tuple[Rules, ...]:
    """Return the rules of the least latency on each set of processors, by the times so far."""
    execution_modes = _execution_modes(graph, platform, costs, profiles)
    problem = execution_modes.problem()
    rules_of_sets = []
    for processors in processor_sets(len(costs.processors), identical_processors(graph, costs)):
        part = restricted(problem, processors)
        best = part and shortest(part, width=WIDTH)
        if best and (rules := rules_of(best.modes, graph)):
            rules_of_sets.append(rules)
    return tuple(rules_of_sets)


def _execution_modes(
    graph: OperatorGraph, platform: Platform, costs: CostTable, profiles: Sequence[Profile]
) -> ExecutionModes:
    return ExecutionModes(PartPrices(graph, platform, costs, profiles), partition(graph).order)
