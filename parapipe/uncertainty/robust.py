"""A robust front: what no other configuration beats at a quantile of its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated

from pydantic import Field

from parapipe.cost.cost_table import CostTable
from parapipe.files.progress import Progress
from parapipe.files.record import Row
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.restriction import Restriction
from parapipe.pareto import ENERGY_TIE, least, nondominated, on_front, thin_front
from parapipe.problems.solve import Reporter
from parapipe.processes.deadline import Deadline, search_s
from parapipe.search.candidate_selection import mark_fronts, names_among
from parapipe.search.contract import Moment, Search, SearchProblem
from parapipe.search.exploration_result import Exploration
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import configure
from parapipe.uncertainty.causes import Draws
from parapipe.uncertainty.samples import SampledFront, at_quantile, sampled_front

Figures = tuple[float, float, float]  # latency, period, energy
ROBUST = {"robust-L": 0, "robust-T": 1, "robust-E": 2}
"""Names of what is best at the quantile: in which figure."""


class RobustRow(Row):
    """How the robust front was found."""

    quantile: Annotated[float, Field(gt=0, lt=1)]
    """Of latency, period and energy that it is the front of."""
    scenarios: int
    """Draws of the costs in which the search was repeated."""
    added: int
    """Configurations that the search with the stated costs did not list."""

    def tell(self, asked: int, note: Callable[[str], None]) -> None:
        """Say if fewer scenarios were searched than asked for."""
        if self.scenarios < asked:
            note(
                f"the robust front rests on {self.scenarios} of {asked} searches with drawn costs: "
                "the rest was ended early"
            )


def with_robust(
    exploration: Exploration,
    graph: OperatorGraph,
    partition: Partition,
    tables: Sequence[CostTable],
    options: MapOptions,
    *,
    costs_of: Callable[[Configuration], CostTable],
    searches: Sequence[Search],
    gone_s: float = 0.0,
) -> tuple[Exploration, SampledFront, RobustRow]:
    """Add what no other configuration beats at the quantile that the options ask for.

    The search is repeated under some draws of the costs. All that was found, there or by the stated
    costs, is then drawn as every front is; what was found by the stated costs stays.

    Parameters
    ----------
    tables
        The stated costs.
    costs_of
        Gives those that a configuration rests on.
    searches
        Those with drawn costs are run.
    gone_s
        Seconds of the budget, if there is one, that have gone by. Searches get half of it at most.

    Returns
    -------
    The exploration, by ascending latency; what its configurations take in each draw; what was done.
    """
    assert options.robust is not None
    most_s = inf if options.budget_s is None else options.budget_s / 2
    left_s = search_s(options.budget_s) - gone_s
    deadline = Deadline(min(most_s, left_s), interruptible=True)
    searched = 0

    def count(progress: Progress) -> None:
        nonlocal searched
        searched += progress.done

    problem = SearchProblem(
        graph,
        partition,
        tables,
        identical=[()] * len(tables),
        options=options,
        schedules=tuple,
        reporter=lambda phase: Reporter(phase, count),
        left_out=lambda _sentence: None,
        lacking={},
    )
    configurations = [*exploration.found]
    if not (exploration.interrupted or deadline.over):
        for search in searches:
            if search.moment is Moment.DRAWS:
                candidates = search.run(problem, [*configurations], deadline)
                more = [configure(each, graph, tables) for each in candidates]
                configurations += Restriction(options.max_stages, options.rate_fps).allowed(more)
    draws = Draws(options.draws, options.seed)
    sampled = sampled_front(configurations, graph, costs_of, draws, options.workers)

    def objectives(figures: Sequence[Figures]) -> list[tuple[float, ...]]:
        """Add the peak of memory, which has no doubt, if it is an objective."""
        if not options.memory:
            return [each[: 2 + options.energy] for each in figures]
        return [
            (*figure[: 2 + options.energy], float(each.memory_bytes))
            for figure, each in zip(figures, configurations, strict=True)
        ]

    stated = [each.objectives for each in configurations]
    front = RobustFront(
        objectives(stated), objectives(quantiles(sampled, options.robust)), options.energy
    )
    shown = front.shown(len(exploration.found), exploration.resolution)
    shown.sort(key=lambda i: (stated[i], front.stated[i]))
    return (
        replace(
            exploration,
            found=front.marked(configurations, shown, tables[0].processors, memory=options.memory),
        ),
        SampledFront(sampled.latency_s[shown], sampled.period_s[shown], sampled.energy_j[shown]),
        RobustRow(
            quantile=options.robust, scenarios=searched, added=len(shown) - len(exploration.found)
        ),
    )


def quantiles(sampled: SampledFront, share: float) -> list[Figures]:
    """Return what latency, period and energy each configuration keeps in a share of the draws."""
    figures = zip(sampled.latency_s, sampled.period_s, sampled.energy_j, strict=True)
    return [
        (at_quantile(a, share), at_quantile(b, share), at_quantile(c, share)) for a, b, c in figures
    ]


@dataclass(frozen=True, slots=True)
class RobustFront:
    """Objectives of some configurations, by the stated costs and at a quantile.

    Parameters
    ----------
    energy
        Whether energy is among them; latency and period come first.
    """

    stated: Sequence[Sequence[float]]
    at_quantile: Sequence[Sequence[float]]
    energy: bool

    def shown(self, incumbents: int, resolution: float) -> list[int]:
        """Return which configurations to show: the known ones, and what the quantile's front adds.

        Parameters
        ----------
        incumbents
            How many of the first are there anyway.
        resolution
            Of others, those are left out that one shown matches to within this share in every
            objective; the best in an objective stays.
        """
        front = nondominated(range(len(self.at_quantile)), lambda i: self.at_quantile[i])
        stay = dict.fromkeys(
            [*range(incumbents), *(self._best_in(front, of) for of in self._shown_names.values())]
        )
        return thin_front(front, lambda i: self.at_quantile[i], resolution, stay)

    def marked(
        self,
        every: Sequence[Configuration],
        shown: Sequence[int],
        processors: Sequence[str],
        *,
        memory: bool,
    ) -> tuple[Configuration, ...]:
        """Return what is shown, with its names and the fronts that it is on among all of it.

        Parameters
        ----------
        shown
            Ascending by stated figures.
        processors, memory
            As for `names_among`.
        """
        some, stated = [every[i] for i in shown], [self.stated[i] for i in shown]
        at_quantile = [self.at_quantile[i] for i in shown]
        robust = on_front(at_quantile)
        best = {name: self._best_in(shown, of) for name, of in self._shown_names.items()}
        of_stated = names_among(some, stated, processors, memory=memory)

        def names(places: Sequence[int], front: Sequence[int]) -> dict[int, tuple[str, ...]]:
            stated_names = of_stated(places, front)
            robust_names = {
                i: tuple(n for n, winner in best.items() if winner == shown[i]) for i in places
            }
            return {
                i: (*stated_names.get(i, ()), *robust_names[i])
                for i in places
                if i in stated_names or robust_names[i]
            }

        configurations = mark_fronts(some, stated, names, stay=range(len(some)))
        return tuple(
            replace(each, robust=on) for each, on in zip(configurations, robust, strict=True)
        )

    @property
    def _shown_names(self) -> dict[str, int]:
        return {name: of for name, of in ROBUST.items() if of < 2 + self.energy}

    def _best_in(self, front: Sequence[int], of: int) -> int:
        """Return the one that is least in an objective, then in the others."""
        ties = (ENERGY_TIE,) if of == ROBUST["robust-E"] else ()
        return least(front, lambda i: (self.at_quantile[i][of], *self.at_quantile[i]), ties)
