"""The configurations that keep a limit of memory, or trade it, out of all that searches find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import MemoryLimit, PeakMemory, peaks_of
from parapipe.memory_search.low_memory import FewerFrames, cheap_cuts, moves, variants
from parapipe.pareto import nondominated, thin_front
from parapipe.processes.deadline import Deadline
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import Candidate, StageCandidate, configure
from parapipe.search.stages.options import Options
from parapipe.search.stages.search import FEW_CUTS, search
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.unit_schedules import options_lookup, unit_options

MOST_CHANGED = 100_000  # operators of the configurations that are changed, all together
LARGEST = 3  # tensors at the peak whose operators are moved
LEAST_CHANGED = 10  # configurations, however large
MOST_INTERLEAVED = 12  # configurations whose frames are made fewer


class LessMemorySearch:
    """The search for configurations that need less memory than those found by the others."""

    name = "less-memory"
    moment = Moment.MEMORY

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield configurations with their memory: the incumbents, and others that need less.

        With a limit, of the first ones that do not keep it, those on the front of what was found
        are changed; without a limit, those on the front. Incumbents that come to nothing are left
        out.
        """
        options = problem.options
        limit, sizer = MemoryLimit(options.max_memory_bytes), _Sizer(problem.graph, problem.tables)
        choices = options_lookup(unit_options(problem.schedules(), problem.tables[0]))
        some: list[Candidate] = [*incumbents]
        for cuts in cheap_cuts(problem.graph, problem.partition):
            if deadline.over:
                break
            some += _search_at_cuts(cuts, choices, problem, deadline)
        every: list[Configuration] = []

        def recorded(configurations: Iterable[Configuration]) -> Iterator[Configuration]:
            for each in configurations:
                every.append(each)
                yield each

        yield from recorded(_sized_candidates(some, sizer, limit, options))
        changed = _worth_changing(every, problem.graph, limit, options.resolution)
        for each in changed:
            yield from recorded(sizer.variants(each))
        own = (each for each in incumbents if isinstance(each, Configuration))
        least_s = {id(each.split): each.least.period_s for each in own if each.least}
        yield from recorded(
            _fewer_frames(changed, every, least_s, sizer=sizer, options=options, deadline=deadline)
        )
        if limit.size_bytes is not None:
            yield from _with_moved_operators(
                changed, sizer, limit, MOST_CHANGED // len(problem.graph.operators)
            )


def _search_at_cuts(
    cuts: Sequence[int], choices: Options, problem: SearchProblem, deadline: Deadline
) -> list[StageCandidate]:
    """Search stages that begin and end at some boundaries alone; if these are many, times."""
    costs = problem.tables[0]
    trades = problem.options.energy and len(cuts) <= FEW_CUTS
    return search(
        len(cuts) - 1,
        StageTable(choices, energy=trades).at_cuts(cuts),
        costs.static_power_w,
        identical=problem.identical[0],
        most_stages=problem.options.max_stages,
        arrival_s=costs.least_frame_s,
        deadline=deadline,
    )


def _sized_candidates(
    candidates: Iterable[Candidate], sizer: _Sizer, limit: MemoryLimit, options: MapOptions
) -> Iterator[Configuration]:
    """Yield candidates with their memory, but for those that come to nothing.

    That is, with a limit alone, what one of its kind that keeps the limit beats; and what another
    one of the same stages matches to within the resolution, for it needs about the same memory.
    """
    alone = limit.size_bytes is not None and not options.memory
    fronts: dict[object, list[tuple[float, ...]]] = {}
    share = 1 + options.resolution
    for each in sorted(candidates, key=lambda each: each.nano_objectives):
        one = each.kind == "sequential"
        kind, stages = (each.kind, one and each.processors), (each.table, *_stage_key(each))
        if alone and _beaten(each.nano_objectives, fronts.get(kind, ()), 1.0):
            continue
        if _beaten(each.nano_objectives, fronts.get(stages, ()), share):
            continue
        yield (sized := sizer.sized(each))
        fronts.setdefault(stages, []).append(each.nano_objectives)
        if limit.fits(sized):
            fronts.setdefault(kind, []).append(each.nano_objectives)


def _stage_key(candidate: Candidate) -> tuple[object, ...]:
    """Return what runs in which stage, as its table counts; of other searches, itself."""
    if not isinstance(candidate, StageCandidate):
        return (id(candidate),)
    return id(candidate.stage_table), *(stage.shape for stage in candidate.stages)


def _beaten(figures: tuple[float, ...], front: Iterable[tuple[float, ...]], share: float) -> bool:
    """Tell whether figures are matched to within a share by some on a front."""
    return any(all(a <= b * share for a, b in zip(other, figures, strict=True)) for other in front)


class _Sizer:
    """Finds the memory of configurations."""

    def __init__(self, graph: OperatorGraph, tables: Sequence[CostTable]) -> None:
        self.graph, self.tables = graph, tables
        self.peak_of: Callable[[Configuration], PeakMemory]
        self.peak_of = peaks_of(graph, lambda configuration: tables[configuration.table])

    def sized(self, candidate: Candidate) -> Configuration:
        return self.measured(configure(candidate, self.graph, self.tables))

    def measured(self, configuration: Configuration) -> Configuration:
        return replace(configuration, peak=self.peak_of(configuration))

    def variants(self, each: Configuration) -> Iterator[Configuration]:
        """Yield the same placement in other ways that may need less memory."""
        return map(self.measured, variants(each, *self.basis(each)))

    def moves(self, each: Configuration, tensors: Sequence[str]) -> Iterator[Configuration]:
        """Yield the configuration with an operator of the tensors elsewhere."""
        others = moves(each, tensors, *self.basis(each))
        return map(self.measured, others)

    def basis(self, configuration: Configuration) -> tuple[OperatorGraph, CostTable]:
        """Return the graph and the costs that a configuration is of."""
        if configuration.split:
            return configuration.split.graph, configuration.split.costs
        return self.graph, self.tables[configuration.table]


def _fewer_frames(
    changed: Iterable[Configuration],
    every: Iterable[Configuration],
    least_s: Mapping[int, float],
    *,
    sizer: _Sizer,
    options: MapOptions,
    deadline: Deadline,
) -> Iterator[Configuration]:
    """Yield configurations made for a period with orders, or at periods, that need less memory.

    Parameters
    ----------
    every
        What is known: of periods as long as those that fit there is no use.
    least_s
        The bound of the period, by the identity of the split model, or of None.
    """
    limit = MemoryLimit(options.max_memory_bytes)
    fitting_s = [each.evaluated.period_s for each in every if limit.fits(each)]
    longest_s = min(fitting_s, default=inf)
    of_graph: dict[int, FewerFrames] = {}
    mine = [each for each in changed if each.mapping.period_s is not None]
    for each in sorted(mine, key=lambda each: each.nano_objectives[1])[:MOST_INTERLEAVED]:
        split = id(each.split)
        if split not in of_graph:
            graph, costs = sizer.basis(each)
            of_graph[split] = FewerFrames(
                Storage.of(graph, costs), costs, limit, least_s[split], sizer.measured, options.seed
            )
        frames = of_graph[split]
        for configuration in frames.like(each, longest_s):
            if deadline.over:
                return
            yield configuration
            if limit.fits(configuration):
                longest_s = min(longest_s, configuration.evaluated.period_s)


def _with_moved_operators(
    every: Iterable[Configuration], sizer: _Sizer, limit: MemoryLimit, most: int
) -> Iterator[Configuration]:
    """Yield what comes of moving operators, one by one, as long as that brings less memory.

    Parameters
    ----------
    most
        Configurations that are looked at, all together.
    """
    for each in every:
        best = each
        while most > 0 and not limit.fits(best):
            alive = limit.worst(best).alive[:LARGEST]
            others = [*sizer.moves(best, [tensor.name for tensor in alive])]
            most -= len(others)
            if not others:
                break
            nearest = limit.nearest(others)
            yield from filter(limit.fits, others)
            if limit.share(nearest) >= limit.share(best):
                break
            best = nearest


def _worth_changing(
    every: Iterable[Configuration], graph: OperatorGraph, limit: MemoryLimit, resolution: float
) -> list[Configuration]:
    """Return those worth changing: on the front of those that keep no limit, a bounded number."""
    without = limit.size_bytes is None
    candidates = [each for each in every if without or not limit.fits(each)]
    front = nondominated(candidates, lambda each: each.nano_objectives)
    alone = [each for each in candidates if each.kind == "sequential"]
    few = thin_front(front, lambda each: each.nano_objectives, resolution, alone)
    return few[: max(LEAST_CHANGED, MOST_CHANGED // len(graph.operators))]
