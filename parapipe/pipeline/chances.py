"""How sure the figures of configurations are, and how often each is the best one, by draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.files.worker_counts import ALONE
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.parts.origins import origins
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.dominance import TIE
from parapipe.pipeline.drawn import DrawnFigures, drawn_figures
from parapipe.pipeline.evaluate import Evaluated
from parapipe.pipeline.mapping import Mapping
from parapipe.pipeline.shared_work import shared_work
from parapipe.pipeline.uncertain import Array, Draws, uncertain

INTERVAL = 0.9
"""Share of the draws that lie in an interval, as many below as above."""


@dataclass(frozen=True, slots=True)
class DrawnFront:
    """What configurations take in each draw: arrays [configuration, draw]."""

    latency_s: Array
    period_s: Array
    energy_j: Array

    @property
    def count(self) -> int:
        """Number of draws."""
        return int(self.latency_s.shape[1])


@dataclass(frozen=True, slots=True)
class _Priced:
    """A mapping, what it takes by the stated costs, and the names of its operators' causes."""

    mapping: Mapping
    evaluated: Evaluated
    costs: CostTable
    names: Sequence[str]


def drawn_front(
    found: Sequence[Configuration],
    graph: OperatorGraph,
    costs_of: Callable[[Configuration], CostTable],
    draws: Draws,
    jobs: int = ALONE,
) -> DrawnFront:
    """Return what configurations take in each draw; the same cost has the same draws in all.

    Parameters
    ----------
    graph
        The model as it is; parts of an operator err together.
    jobs
        Processes at most.
    """
    whole = tuple(operator.id for operator in graph.operators)
    priced = []
    for each in found:
        names: Sequence[str] = whole
        if each.split:
            origin = origins(each.split.graph.operators, set(whole))
            names = [origin[operator.id] for operator in each.split.graph.operators]
        priced.append(_Priced(each.mapping, each.evaluated, costs_of(each), names))
    figures = dict(shared_work(partial(_drawn, draws), priced, jobs))
    return joined([figures[number] for number in range(len(priced))])


def _drawn(draws: Draws, priced: Iterable[_Priced]) -> Iterator[DrawnFigures]:
    for each in priced:
        yield drawn(each.mapping, each.evaluated, each.costs, each.names, draws)


def drawn(
    mapping: Mapping,
    evaluated: Evaluated,
    costs: CostTable,
    names: Sequence[str],
    draws: Draws,
) -> DrawnFigures:
    """Return what a mapping takes in draws of its costs, the stated ones first.

    Parameters
    ----------
    names
        Of the operators, as for `uncertain`.
    """
    known = uncertain(mapping, costs, names)
    return drawn_figures(
        mapping,
        known.costs(draws.of(known.causes)),
        latency_s=evaluated.latency_s,
        period_s=evaluated.period_s,
    )


def joined(figures: Sequence[DrawnFigures]) -> DrawnFront:
    """Return what each of several mappings takes, the stated costs left out."""
    return DrawnFront(
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
    some = list(among)
    most = figure[some].min(axis=0) * (1 + tie)
    return {i: float((figure[i] <= most).mean()) for i in some}
