"""What mappings take under sampled costs, how sure that is, and how often each is the best one.

Operators keep their processors, their frame lags and the order on each processor and link, and
start as early as that allows. Of stages, each begins with its first operator, as in `evaluate`. Of
a mapping made for a period, that grows as the longest cycle of its event graph does; operators
keep their place in it, or start later if they have to wait.

Figures are those of the mapping times what they change by: where a mapping leaves a gap that no
operator needs (a subgraph waits for the one before it), the gap grows like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.files.progress import ALONE
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.part_marks import origins
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import Evaluated, work_by_processor
from parapipe.mappings.event_graph import (
    PICOSECONDS,
    Arc,
    Execution,
    execution_of,
    gaining_cycle,
    picoseconds,
    ranks,
)
from parapipe.mappings.mapping import Mapping
from parapipe.pareto import TIE
from parapipe.processes.shared_work import shared_work
from parapipe.uncertainty.causes import Array, Draws, SampledCosts, uncertain_costs

TOLERANCE = 1e-9  # of the period, by which starts may be too early
PASSES = 3  # over all arcs, before cycles are looked for
AT_ONCE = 4  # draws in which they are


@dataclass(frozen=True, slots=True)
class SampledFigures:
    """What a mapping takes: a number for each draw, the stated costs first."""

    latency_s: Array
    period_s: Array
    energy_j: Array


def figures_at_costs(
    mapping: Mapping, costs: SampledCosts, *, latency_s: float, period_s: float
) -> SampledFigures:
    """Return what a mapping takes under drawn costs.

    Parameters
    ----------
    latency_s, period_s
        What it takes by the stated costs.
    costs
        The first draw is the stated costs.
    """
    execution = execution_of(mapping)
    events_s = np.stack(
        [
            costs.time_s[first]
            if first >= 0
            else mapping.transfers[-1 - first].time_s * costs.moves
            for first, *_ in execution.works
        ]
    )
    times = _of_plain_stages if mapping.period_s is None else _of_period
    latencies_s, periods_s = times(mapping, execution, events_s, costs.moves)
    if latency_s > costs.memory_s:
        latencies_s *= latency_s / latencies_s[0]
    if period_s > max(costs.memory_s, costs.power_s):
        periods_s *= period_s / periods_s[0]
    latencies_s = np.maximum(latencies_s, costs.memory_s)
    periods_s = np.maximum(periods_s, max(costs.memory_s, costs.power_s))
    frames_s = np.maximum(periods_s, costs.arrival_s)
    return SampledFigures(latencies_s, periods_s, costs.dynamic_j + frames_s * costs.static_w)


def _of_plain_stages(
    mapping: Mapping, execution: Execution, events_s: Array, moves: Array
) -> tuple[Array, Array]:
    """Return latency and period of stages, each of which starts with its first inputs."""
    graph, count = execution.graph, len(events_s)
    behind: dict[int, list[tuple[int, float]]] = {v: [] for v in range(count)}
    floor = [0.0] * count
    for order in graph.orders:
        for lag in {graph.lag[v] for v in order}:
            for u, v in pairwise(v for v in order if graph.lag[v] == lag):
                behind[v].append((u, 0.0))
    for u, v, delay_ps in graph.waits:
        delay_s = delay_ps / PICOSECONDS
        if graph.lag[u] == graph.lag[v]:
            behind[v].append((u, delay_s))
        else:  # counted from the start of the stage that reads
            floor[v] = max(floor[v], delay_s)
    end_s = np.empty_like(events_s)
    rank = ranks(count, [(u, v, 0) for v, some in behind.items() for u, _ in some])
    for v in sorted(range(count), key=rank.__getitem__):
        start_s = floor[v] * moves
        for u, delay_s in behind[v]:
            start_s = np.maximum(start_s, end_s[u] + delay_s * moves if delay_s else end_s[u])
        end_s[v] = start_s + events_s[v]
    ends = {lag: np.zeros(len(moves)) for lag in (stage.lag for stage in mapping.stages)}
    for v, (first, *_) in enumerate(execution.works):
        if first >= 0:
            ends[graph.lag[v]] = np.maximum(ends[graph.lag[v]], end_s[v])
    times_s = list(ends.values())
    work_s = work_by_processor(mapping.stages, times_s).values()
    return np.sum(times_s, axis=0), np.max(list(work_s), axis=0)


def _of_period(
    mapping: Mapping, execution: Execution, events_s: Array, moves: Array
) -> tuple[Array, Array]:
    """Return latency and period where processors take turns on frames."""
    assert mapping.period_s is not None
    planned_s = np.array(list(_planned_starts_s(mapping, execution)))
    arcs = sorted(execution.graph.arcs(), key=lambda arc: planned_s[arc.tail])
    graph = _SampledGraph.of(arcs, execution, events_s, moves)
    work_s = events_s.sum(axis=0)
    ratio_s = graph.longest_cycles(execution, planned_s[:, None] * (work_s / work_s[0]))
    stretched = ratio_s / ratio_s[0]
    period_s = mapping.period_s * stretched
    start_s = planned_s[:, None] * stretched
    graph.relax(start_s, period_s, len(events_s))
    placed = [v for v, (first, *_) in enumerate(execution.works) if first >= 0]
    ends_s = start_s[placed] + events_s[placed]
    return ends_s.max(axis=0) - start_s[placed].min(axis=0), period_s


def _planned_starts_s(mapping: Mapping, execution: Execution) -> Iterator[float]:
    """Yield when each event starts for the frame that enters in period 0."""
    assert mapping.period_s is not None
    for first, *_ in execution.works:
        at = mapping.at[first] if first >= 0 else mapping.transfers[-1 - first]
        yield at.lag * mapping.period_s + at.start_s


@dataclass(frozen=True, slots=True)
class _SampledGraph:
    """An event graph under drawn times.

    Parameters
    ----------
    ends
        Tail and head of each arc.
    events_s
        Of each event, [event, draw].
    time_s
        Of each arc, likewise.
    tokens
        Of each arc.
    """

    ends: Sequence[tuple[int, int]]
    events_s: Array
    time_s: Array
    tokens: Array

    @classmethod
    def of(
        cls, arcs: Sequence[Arc], execution: Execution, events_s: Array, moves: Array
    ) -> _SampledGraph:
        """Return the net of an event graph."""
        tails = [arc.tail for arc in arcs]
        stated_ps = execution.graph.time_ps
        delay_s = np.array([(arc.time_ps - stated_ps[arc.tail]) / PICOSECONDS for arc in arcs])
        tokens = np.array([float(arc.tokens) for arc in arcs])
        ends = [(arc.tail, arc.head) for arc in arcs]
        return cls(ends, events_s, events_s[tails] + delay_s[:, None] * moves, tokens)

    def longest_cycles(self, execution: Execution, start_s: Array) -> Array:
        """Return the maximum cycle ratio of each draw, in seconds.

        A cycle that is found in one draw is tried on all that are not done: many have the same
        longest one.

        Parameters
        ----------
        start_s
            Starts of the events to begin with: the nearer to possible ones, the sooner it ends.
        """
        ratio_s = np.zeros(self.time_s.shape[1])
        for order, count in execution.graph.rows:  # each resource is a cycle itself
            work_s = self.events_s[list(order)].sum(axis=0) / count
            np.maximum(ratio_s, work_s, out=ratio_s)
        left, start_s = np.arange(len(ratio_s)), start_s.copy()
        while len(left := left[self._relax_some(start_s, left, ratio_s)]):
            for draw in left[:: -(-len(left) // AT_ONCE)]:
                if cycle := self._longer_cycle(draw, ratio_s[draw]):
                    taken_s = self.time_s[cycle][:, left].sum(axis=0) / self.tokens[cycle].sum()
                    ratio_s[left] = np.maximum(ratio_s[left], taken_s)
                else:  # more passes were all that it took
                    left = left[left != draw]
        return ratio_s

    def _relax_some(
        self, start_s: Array, draws: NDArray[np.intp], ratio_s: Array
    ) -> NDArray[np.bool_]:
        """Relax some draws for a few passes; tell which of them are not done."""
        own_s = start_s[:, draws]
        graph = replace(self, events_s=self.events_s[:, draws], time_s=self.time_s[:, draws])
        moved = graph.relax(own_s, ratio_s[draws], PASSES)
        start_s[:, draws] = own_s
        return moved

    def _longer_cycle(self, draw: int, ratio_s: float) -> Sequence[int]:
        """Return the arcs of a cycle with a larger ratio in a draw, if there is one."""
        times_ps = np.rint(self.time_s[:, draw] * PICOSECONDS)
        # A picosecond for each event is rounding: so what is known is not found again.
        ratio_ps = picoseconds(ratio_s * (1 + TOLERANCE)) + len(self.events_s)
        gains = (times_ps - self.tokens * ratio_ps).astype(np.int64).tolist()
        return gaining_cycle(gains, self.ends, len(self.events_s))

    def relax(self, start_s: Array, period_s: Array, passes: int) -> NDArray[np.bool_]:
        """Move starts behind what they wait for; tell which draws are not done after the passes."""
        gains_s = self.time_s - self.tokens[:, None] * period_s
        least_s, bound_s = TOLERANCE * period_s, np.empty_like(period_s)
        steps = [
            (start_s[tail], start_s[head], gain_s)
            for (tail, head), gain_s in zip(self.ends, gains_s, strict=True)
        ]
        moved = np.zeros(len(period_s), bool)
        for _ in range(passes):
            before_s = start_s.copy()
            for tail_s, head_s, gain_s in steps:
                np.add(tail_s, gain_s, out=bound_s)
                np.maximum(head_s, bound_s, out=head_s)
            np.any(start_s > before_s + least_s, axis=0, out=moved)
            if not moved.any():
                break
        return moved


INTERVAL = 0.9
"""Share of the draws that lie in an interval, as many below as above."""


@dataclass(frozen=True, slots=True)
class SampledFront:
    """What configurations take in each draw: arrays [configuration, draw]."""

    latency_s: Array
    period_s: Array
    energy_j: Array

    @property
    def count(self) -> int:
        """Number of draws."""
        return int(self.latency_s.shape[1])


_Priced = tuple[Mapping, Evaluated, CostTable, Sequence[str]]


def sampled_front(
    configurations: Sequence[Configuration],
    graph: OperatorGraph,
    costs_of: Callable[[Configuration], CostTable],
    draws: Draws,
    jobs: int = ALONE,
) -> SampledFront:
    """Return what configurations take in each draw; the same cost has the same draws in all.

    Parameters
    ----------
    graph
        The model as it is; parts of an operator err together.
    jobs
        Processes at most.
    """
    ids = tuple(operator.id for operator in graph.operators)
    priced: list[_Priced] = []
    for each in configurations:
        names: Sequence[str] = ids
        if each.split:
            origin = origins(each.split.graph.operators, set(ids))
            names = [origin[operator.id] for operator in each.split.graph.operators]
        priced.append((each.mapping, each.evaluated, costs_of(each), names))
    figures = dict(shared_work(partial(_sampled_all, draws), priced, jobs))
    return front_of_samples([figures[number] for number in range(len(priced))])


def _sampled_all(draws: Draws, priced: Iterable[_Priced]) -> Iterator[SampledFigures]:
    for each in priced:
        yield figures_in_draws(*each, draws)


def figures_in_draws(
    mapping: Mapping, evaluated: Evaluated, costs: CostTable, names: Sequence[str], draws: Draws
) -> SampledFigures:
    """Return what a mapping takes in draws of its costs, the stated ones first.

    Parameters
    ----------
    names
        Of the operators, as for `uncertain`.
    """
    by_causes = uncertain_costs(mapping, costs, names)
    return figures_at_costs(
        mapping,
        by_causes.costs(draws.of(by_causes.causes)),
        latency_s=evaluated.latency_s,
        period_s=evaluated.period_s,
    )


def front_of_samples(figures: Sequence[SampledFigures]) -> SampledFront:
    """Return what each of several mappings takes, the stated costs left out."""
    return SampledFront(
        np.array([each.latency_s[1:] for each in figures]),
        np.array([each.period_s[1:] for each in figures]),
        np.array([each.energy_j[1:] for each in figures]),
    )


def interval(values: Array) -> tuple[float, float]:
    """Return the ends of the interval that holds `INTERVAL` of the draws."""
    low, high = np.quantile(values, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return float(low), float(high)


def at_quantile(values: Array, share: float) -> float:
    """Return the least of the draws that is not exceeded in a share of them."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def pareto_chances(figures: Sequence[Array]) -> list[float]:
    """Return in which share of the draws no other configuration beats each one.

    One beats another that is no better than it in any objective, and worse in one by more than
    rounding.

    Parameters
    ----------
    figures
        Of each objective, [configuration, draw], less being better.
    """
    chances = []
    for i in range(len(figures[0])):
        no_worse = np.logical_and.reduce([each <= each[i] * (1 + TIE) for each in figures])
        better = np.logical_or.reduce([each * (1 + TIE) < each[i] for each in figures])
        chances.append(1 - float((no_worse & better).any(axis=0).mean()))
    return chances


def least_chances(figure: Array, among: Iterable[int], tie: float = TIE) -> dict[int, float]:
    """Return in which share of the draws each of some configurations has the least of a figure.

    Those equal to within `tie` all have it.
    """
    rows = list(among)
    limit = figure[rows].min(axis=0) * (1 + tie)
    return {i: float((figure[i] <= limit).mean()) for i in rows}
