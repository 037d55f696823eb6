"""What every search for configurations is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.profile import Profile
    from parapipe.files.progress import Phase
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.graph.partition import Partition
    from parapipe.platform.platform import Platform
    from parapipe.problems.solve import Reporter
    from parapipe.processes.deadline import Deadline
    from parapipe.search.loaded_costs import ExpectedLoad
    from parapipe.search.options import MapOptions
    from parapipe.search.stages.candidates import Candidate
    from parapipe.search.stages.stage_search import StageProblems
    from parapipe.search.stages.unit_schedules import Choice


class Moment(Enum):
    """When an exploration runs a search; those of one moment run in the order of the registry."""

    FIRST = "before all others, with all time but the share that is kept for later ones"
    STAGES = "behind the search over stages, with what it has left of its time"
    LATER = "behind those, with a share of the budget that is kept for it"
    SEGMENTS = "behind those, if segments are limited"
    MEMORY = "behind all others, if memory is limited or an objective"
    DRAWS = "behind a whole exploration, with drawn costs"
    PATTERNS = "alone, for several models together"


@dataclass(frozen=True, slots=True)
class SplitSources:
    """What it takes to make a model with other operators, and to price it.

    Parameters
    ----------
    splitter
        Returns the model's graph with operators split as rules of `parapipe split` say.
    load
        If costs are those under an expected load: what parts take longer by.
    """

    platform: Platform
    profiles: Sequence[Profile] | None
    splitter: Callable[[Sequence[str]], OperatorGraph]
    load: ExpectedLoad | None = None


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """What is to be mapped, and what is known of it so far.

    Parameters
    ----------
    tables
        Cost tables; the number of a configuration's table counts from 0.
    identical
        Of each cost table, groups of processors of which it does not matter which one is used;
        none are looked for before searches of the moments `DRAWS` and `PATTERNS`.
    schedules
        Returns the schedules of units by the first cost table that were found so far, on all sets
        of processors; none at these moments.
    reporter
        Returns what takes the numbers of steps of a phase that are done, and of all.
    left_out
        Takes a sentence for each thing that the search did not look at, or cannot make.
    lacking
        Takes, by the kind of configuration, the reason why none was found.
    helped
        Whether another process may take a part of the work: the same is found.
    sources
        For searches that split operators; None if none was asked for.
    stages
        For the search over stages, which keeps here what it has solved; None if there is none.
    patterns
        What a search for patterns of several models is given by its front, `PatternSources`; None
        if it is one model.
    """

    graph: OperatorGraph
    partition: Partition
    tables: Sequence[CostTable]
    identical: Sequence[Sequence[Sequence[int]]]
    options: MapOptions
    schedules: Callable[[], Sequence[Choice]]
    reporter: Callable[[Phase], Reporter]
    left_out: Callable[[str], None]
    lacking: MutableMapping[str, str]
    helped: bool = False
    sources: SplitSources | None = None
    stages: StageProblems | None = None
    patterns: object = None

    @property
    def splitting(self) -> SplitSources:
        """The sources, for a search that cannot do without."""
        assert self.sources is not None, "a search that splits operators needs sources"
        return self.sources


class Search(Protocol):
    """A search for configurations.

    `name` is its name in the registry, see `search.registry`, and `moment` says when it runs.
    """

    @property
    def name(self) -> str:
        """Its name in the registry."""

    @property
    def moment(self) -> Moment:
        """When it is run."""

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Candidate]:
        """Yield configurations that may be better than the incumbents in some figure.

        Of stages there are very many: candidates stand for them, in whole nanoseconds, and
        `configure` makes those that are chosen.

        Parameters
        ----------
        incumbents
            What was found so far by the searches before, by ascending number of the cost table if
            it is of stages; the same more than once does no harm.
        deadline
            When to end with what has been found. What was yielded by then is kept, and if the
            search is interrupted, too.
        """
