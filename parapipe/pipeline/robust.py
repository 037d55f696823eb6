"""A robust front: what no other configuration beats at a quantile of its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.pipeline.chances import DrawnFront, drawn_front
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.dominance import nondominated, thinned
from parapipe.pipeline.exploration import Exploration
from parapipe.pipeline.memory import peaks_of
from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.scenarios import at_stated_costs, scenarios_of, search_scenarios
from parapipe.pipeline.sized import MemoryLimit
from parapipe.pipeline.uncertain import Draws

ROBUST = {"robust-L": 0, "robust-T": 1, "robust-E": 2}
"""Names of what is best at the quantile: in which figure."""


@dataclass(frozen=True, slots=True)
class Robust:
    """What was done for a robust front.

    Parameters
    ----------
    quantile
        Of latency, period and energy.
    scenarios
        How many draws of the costs were searched.
    added
        How many configurations the search with the stated costs did not have.
    """

    quantile: float
    scenarios: int
    added: int


def with_robust(
    exploration: Exploration,
    graph: OperatorGraph,
    partition: Partition,
    tables: Sequence[CostTable],
    options: MapOptions,
    *,
    costs_of: Callable[[Configuration], CostTable],
) -> tuple[Exploration, DrawnFront, Robust]:
    """Add what no other configuration beats at the quantile that the options ask for.

    The search is repeated under some draws of the costs. All that was found, there or by the stated
    costs, is then drawn as every front is; what was found by the stated costs stays.

    Parameters
    ----------
    tables
        The stated costs.
    costs_of
        Gives those that a configuration rests on.

    Returns
    -------
    The exploration, by ascending latency; what its configurations take in each draw; what was done.
    """
    assert options.robust is not None
    scenarios = scenarios_of(graph, tables, options.scenarios, options.seed)
    deadline = Deadline(
        inf if options.budget_s is None else options.budget_s / 2, interruptible=True
    )
    searched = (
        {}
        if exploration.interrupted
        else search_scenarios(scenarios, graph, partition, options, deadline)
    )
    found = at_stated_costs(
        chain.from_iterable(searched.values()), graph, tables, exploration.found
    )
    peak_of = peaks_of(graph, costs_of)
    limit = MemoryLimit(options.max_memory_bytes)
    added = [each for each in found if limit.share(peak_of(each)) <= 1]
    every = [*exploration.found, *added]
    drawn = drawn_front(every, graph, costs_of, Draws(options.draws, options.seed))
    count = 2 + options.energy
    sizes = [(float(peak_of(each).total.size_bytes),) if options.memory else () for each in every]
    at_quantile = [
        (*figures[:count], *size)
        for figures, size in zip(quantiles(drawn, options.robust), sizes, strict=True)
    ]
    shown = robust_choice(at_quantile, len(exploration.found), exploration.resolution)
    stated = [
        (*_figures(each)[:count], *size) for each, size in zip(every, sizes, strict=True)
    ]
    shown.sort(key=lambda i: _figures(every[i]))
    marked = _marked(every, shown, stated, at_quantile, count)
    return (
        replace(exploration, found=tuple(marked)),
        DrawnFront(*(values[shown] for values in (drawn.latency_s, drawn.period_s, drawn.energy_j))),
        Robust(options.robust, len(searched), len(shown) - len(exploration.found)),
    )


def quantiles(drawn: DrawnFront, share: float) -> list[tuple[float, float, float]]:
    """Return for each configuration what latency, period and energy it keeps in a share of draws.

    A figure is the least of the draws that is not exceeded in that share of them.
    """
    figures = (drawn.latency_s, drawn.period_s, drawn.energy_j)
    kept = (np.quantile(each, share, axis=1, method="inverted_cdf") for each in figures)
    return [(float(a), float(b), float(c)) for a, b, c in zip(*kept, strict=True)]


def robust_choice(
    at_quantile: Sequence[Sequence[float]], known: int, resolution: float
) -> list[int]:
    """Return which configurations to show: the known ones, and what is on the quantile's front.

    Parameters
    ----------
    at_quantile
        Objectives of each configuration, the known ones first.
    known
        How many there are; they stay.
    resolution
        Others are left out that one shown matches to within this share in every objective.
    """
    front = nondominated(range(len(at_quantile)), lambda i: at_quantile[i])
    best = [min(front, key=lambda i: at_quantile[i][of]) for of in range(len(at_quantile[0]))]
    stay = [*range(known), *(i for i in dict.fromkeys(best) if i >= known)]
    return thinned(front, lambda i: at_quantile[i], resolution, stay)


def _marked(
    every: Sequence[Configuration],
    shown: Sequence[int],
    stated: Sequence[Sequence[float]],
    at_quantile: Sequence[Sequence[float]],
    count: int,
) -> list[Configuration]:
    """Return what is shown, with its names and the fronts that it is on."""
    robust = nondominated(shown, lambda i: at_quantile[i])
    on_front = set(robust)
    pareto = set(nondominated(shown, lambda i: stated[i]))
    paper = set(nondominated(shown, lambda i: stated[i][:2]))
    names: dict[int, list[str]] = {}
    for name, of in ROBUST.items():
        if of < count:
            figures = (at_quantile[i] for i in robust)
            best = min(zip(figures, robust, strict=True), key=lambda it: (it[0][of], *it[0]))[1]
            names.setdefault(best, []).append(name)
    return [
        replace(
            every[i],
            names=(*every[i].names, *names.get(i, ())),
            pareto=i in pareto,
            pareto_latency_throughput=i in paper and i in pareto,
            robust=i in on_front,
        )
        for i in shown
    ]


def _figures(each: Configuration) -> tuple[float, float, float]:
    made = each.evaluated
    return made.latency_s, made.period_s, made.energy_j
