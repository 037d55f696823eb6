"""The search for patterns of several models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate, served, with_all_loaded
from parapipe.mappings.mapping import Mapping
from parapipe.processes.deadline import Deadline
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.stages.candidates import Candidate
from parapipe.several_models.patterns import Patterns, Reached


@dataclass(frozen=True, slots=True)
class PatternSources:
    """What it takes to find patterns of several models.

    Parameters
    ----------
    patterns
        Of the length that is searched.
    reached
        How long such a pattern takes at least.
    contention
        Lengthening of work per byte a second that other processors move; 0 if it is not known.
    times
        As long as the shortest pattern is each one.
    shortest
        The shortest patterns and how long they take at least, if the search is in longer ones;
        else None.
    """

    patterns: Patterns
    reached: Reached
    contention: float
    times: int = 1
    shortest: tuple[Patterns, Reached] | None = None


class SeveralSearch:
    """The search for patterns of several models on shared processors, or each on its own."""

    name = "several"
    moment = Moment.PATTERNS

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield patterns, with what each model gets; some may keep no deadline.

        There are no incumbents, and the patterns know the deadline.
        """
        del incumbents, deadline
        sources = problem.patterns
        assert isinstance(sources, PatternSources), "it is for several models"
        graph, costs, bound_s = problem.graph, problem.tables[0], sources.reached.bound_s
        for mapping in _mappings(problem, sources):
            taken = with_all_loaded(evaluate(mapping, graph, costs), mapping, graph, costs)
            got = served(
                mapping, taken, graph, costs, contention=sources.contention, bound_s=bound_s
            )
            gap = max(0.0, 1 - got.rate_factor / got.bound)
            yield Configuration(mapping, taken, proven=False, gap=gap, table=0, several=got)


def _mappings(problem: SearchProblem, sources: PatternSources) -> Iterator[Mapping]:
    """Yield patterns; in longer ones, first the shortest ones repeated, if they keep the rates."""
    energy, tell = problem.options.energy, problem.reporter("interleaving")
    patterns, reached = sources.patterns, sources.reached
    if sources.shortest is None:
        return patterns.found(reached, energy=energy, tell=tell)
    shortest, of_shortest = sources.shortest
    if of_shortest.shared.period_s > shortest.period_s:
        return patterns.found(reached, energy=energy, tell=tell, below_s=inf)
    shorter = shortest.schedules(of_shortest, energy=energy, tell=tell)
    below_s = sources.times * of_shortest.shared.period_s
    return chain(
        patterns.mappings_of(shorter, sources.times),
        patterns.found(reached, energy=energy, tell=tell, below_s=below_s),
    )
