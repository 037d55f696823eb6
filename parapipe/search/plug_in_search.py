"""A search of another package: what it yields is timed anew, so that its figures are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.errors import AssignmentError, MappingError
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.contract import Moment, Search, SearchProblem
from parapipe.search.registry import SEARCHES, check_search, memory_counts

if TYPE_CHECKING:
    from parapipe.mappings.mapping import Mapping
    from parapipe.search.stages.candidates import Candidate

ROUNDED = 1e-5  # share by which figures of incumbents may be off: they count nanoseconds


@dataclass(frozen=True, slots=True)
class PlugInSearch:
    """A search of another package."""

    name: str
    moment: Moment
    search: Search

    @classmethod
    def of(cls, name: str) -> PlugInSearch:
        """Make the search of that name; MappingError if there is none, or it cannot be made."""
        check_search(name)
        with SEARCHES.failures_of(name):
            search = SEARCHES.load(name)()
        return cls(name, search.moment, search)

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield what it yields, as stages of whole operators that start as early as they can.

        Of each configuration count its cost table, and where its operators run: stages, processors
        and their orders. Times and figures follow from these; nothing is proven of them. One that
        an incumbent of the same processors matches is left out, unless memory counts.

        Raises
        ------
        MappingError
            It fails, or yields what maps the model wrongly.
        """
        with SEARCHES.failures_of(self.name, passing=OverError):
            for each in self.search.run(problem, incumbents, deadline):
                configuration = self._time_anew(each, problem)
                if memory_counts(problem.options) or not _is_matched(configuration, incumbents):
                    yield configuration

    def _time_anew(self, item: object, problem: SearchProblem) -> Configuration:
        wrong = f"the search {SEARCHES.label(self.name)} yields a"
        if not isinstance(item, Configuration) or not 0 <= item.table < len(problem.tables):
            raise MappingError(f"{wrong} {type(item).__name__} that is no configuration")
        graph, costs = problem.graph, problem.tables[item.table]
        if why := _violation(item, problem):
            raise MappingError(f"{wrong} configuration that {why}")
        try:
            mapping = mapping_of(graph, None, costs, assignment_of(item.mapping))
        except AssignmentError as error:
            raise MappingError(f"{wrong} configuration that is none: {error}") from error
        evaluated = evaluate(mapping, graph, costs)
        return Configuration(mapping, evaluated, proven=False, gap=1.0, table=item.table)


def _is_matched(configuration: Configuration, incumbents: Sequence[Candidate]) -> bool:
    """Tell whether an incumbent of the same processors is at least as good, within rounding."""
    most = [figure * (1 + ROUNDED) for figure in configuration.nano_objectives]
    return any(
        old.processors == configuration.processors
        and all(a <= b for a, b in zip(old.nano_objectives, most, strict=True))
        for old in incumbents
    )


def _violation(configuration: Configuration, problem: SearchProblem) -> str:
    """Say what is wrong with a configuration; empty if nothing is."""
    mapping, graph = configuration.mapping, problem.graph
    processors = range(len(problem.tables[configuration.table].processors))
    if configuration.split or mapping.replicated or mapping.period_s is not None:
        return "is not of stages of whole operators, on one processor each"
    if sorted(each.operator for each in mapping.placements) != [*range(len(graph.operators))]:
        return "does not have each operator once"
    if any(each.processor not in processors for each in mapping.placements):
        return "has an operator on a processor that there is not"
    return next(_list_backward_reads(mapping, problem), "")


def _list_backward_reads(mapping: Mapping, problem: SearchProblem) -> Iterator[str]:
    """Yield operators that run before what they read is there."""
    operators = problem.graph.operators
    rank = {
        at.operator: (at.lag, i)
        for stage in mapping.stages
        for i, at in enumerate(stage.placements)
    }
    for v, operator in enumerate(operators):
        for u in problem.graph.predecessors(v):
            if rank[u] > rank[v]:
                yield f"runs '{operator.name}' before '{operators[u].name}', which it reads"
