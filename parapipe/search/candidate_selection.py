"""Which candidates of the searches are worth showing: those on a front, and those with a name.

A search counts in whole nanoseconds, and a schedule may turn out shorter than it said. So what is
chosen is marked afterwards, by the exact figures that front.json states: `marked`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from parapipe.errors import MappingError
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.mapping import Kind
from parapipe.mappings.memory import MemoryLimit, megabytes, no_fit_message
from parapipe.mappings.segments import LimitedSegments
from parapipe.pareto import (
    ENERGY_TIE,
    TIE,
    equal,
    least,
    most_balanced,
    nondominated,
    on_front,
    thin_front,
)
from parapipe.search.stages.candidates import Candidate, configure
from parapipe.solvers.problem import NANO

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.mappings.restriction import Restriction
    from parapipe.processes.deadline import Deadline
    from parapipe.search.contract import SearchProblem
    from parapipe.search.options import MapOptions

BEST_OF_KIND: Mapping[str, tuple[Kind, Literal["latency", "throughput"]]] = {
    "sequential": ("sequential", "latency"),
    "pipe-only": ("pipe-only", "throughput"),
    "para-only": ("para-only", "latency"),
    "hybrid-L": ("hybrid", "latency"),
    "hybrid-T": ("hybrid", "throughput"),
    "interleaved-T": ("interleaved", "throughput"),
    "replicated-T": ("replicated", "throughput"),
}
"""Names of configurations: best of which kind, and in what first."""


Names = Callable[[Sequence[int], Sequence[int]], Mapping[int, tuple[str, ...]]]
"""Gives the names of some, by their numbers; the second ones are those of them on the front."""


def select_candidates(
    candidates: Sequence[Candidate],
    processors: Sequence[str],
    *,
    energy: bool,
    resolution: float,
    large: bool = False,
    memory: bool = False,
) -> list[Candidate]:
    """Return the candidates worth showing, by ascending latency.

    What would be shown of those of the first cost table alone is shown, or something at least as
    good in every objective, whatever the resolution.

    Parameters
    ----------
    candidates
        All of them; of those equal in all objectives, the first is shown.
    processors
        Names, in the platform's order.
    energy, resolution
        As for `explore`.
    large
        Whether the resolution holds for the front of latency and throughput, too.
    memory
        Whether peak memory is an objective, too: that of all candidates is then known.
    """
    selection = _Selection(candidates, processors, energy, resolution, large, memory)
    first = [i for i, candidate in enumerate(candidates) if candidate.table == 0]
    alone = selection.select(first, ())
    if len(first) == len(candidates):
        return alone
    return selection.select(range(len(candidates)), alone)


def mark_fronts(
    every: Sequence[Configuration],
    objectives: Sequence[Sequence[float]],
    names: Names,
    *,
    without_energy: int = 2,
    resolution: float = 0.0,
    stay: Collection[int] = (),
) -> list[Configuration]:
    """Return configurations with their names and the fronts that they are on, by ascending latency.

    One with the figures and the processors of another one is left out. So is one without a name
    that others beat, or that another one matches in all objectives.

    Parameters
    ----------
    objectives
        What the front trades, of each: exact, and to be least.
    names
        Says which have names.
    without_energy
        How many of the first objectives the front of latency and throughput trades.
    resolution
        Share within which one matches another; at least `TIE`.
    stay
        Places of those that are left in.
    """
    order = sorted(range(len(every)), key=lambda i: (every[i].objectives, objectives[i]))
    left: list[int] = []
    seen: dict[tuple[int, Kind, tuple[int, ...]], list[tuple[float, ...]]] = {}
    for i in order:
        each, figures = every[i], (*every[i].objectives, *objectives[i])
        others = seen.setdefault((each.table, each.kind, each.processors), [])
        if i in stay or not any(equal(figures, other) for other in others):
            left.append(i)
            others.append(figures)
    unbeaten = on_front([objectives[i] for i in left])
    front = [i for i, on in zip(left, unbeaten, strict=True) if on]
    named = names(left, front)
    best = [i for i in left if i in named or i in stay]
    keep = [i for i in best if i in front]
    among = {*thin_front(front, lambda i: objectives[i], max(resolution, TIE), keep), *best}
    shown = [i for i in left if i in among]
    pareto = on_front([objectives[i] for i in shown])
    paper = on_front([objectives[i][:without_energy] for i in shown])
    return [
        replace(every[i], names=named.get(i, ()), pareto=on, pareto_latency_throughput=on_paper)
        for i, on, on_paper in zip(shown, pareto, paper, strict=True)
    ]


def names_of(
    some: Mapping[int, Candidate],
    processors: Sequence[str],
    figures: Callable[[int], tuple[float, float, float]],
    *,
    front: Sequence[int],
    memory_bytes: Mapping[int, float] | None = None,
    smallest: float = 1.0,
) -> dict[int, tuple[str, ...]]:
    """Return the names of those that have some: each is the lexicographic best of its kind.

    Figures within `TIE` are equal, and energies within `ENERGY_TIE`.

    Parameters
    ----------
    some
        What may have a name, by numbers.
    figures
        Gives latency, period and energy of each, all in one unit or another.
    front
        Numbers of what no other one beats; the balanced one is of these.
    memory_bytes
        Peaks, if memory is an objective.
    smallest
        As for `most_balanced`.
    """
    of_kind: dict[Kind, list[int]] = {}
    for i, each in some.items():
        of_kind.setdefault(each.kind, []).append(i)

    def reordered(*order: int) -> Callable[[int], tuple[float, ...]]:
        return lambda i: tuple(figures(i)[place] for place in order)

    first = {"latency": figures, "throughput": reordered(1, 0, 2)}
    best = {
        name: least(of_kind[kind], first[objective])
        for name, (kind, objective) in BEST_OF_KIND.items()
        if kind in of_kind
    }
    best["balanced"] = most_balanced(front, figures, smallest)
    best["most-efficient"] = least(some, reordered(2, 0, 1), (ENERGY_TIE,))
    if memory_bytes is not None:
        best["least-memory"] = least(some, lambda i: (memory_bytes[i], *figures(i)))
    for p, processor in enumerate(processors):
        alone = [i for i in of_kind.get("sequential", ()) if some[i].processors == (1 << p,)]
        if alone:
            best[f"{processor}-alone"] = least(alone, figures)
    names: dict[int, list[str]] = {}
    for name, i in best.items():
        names.setdefault(i, []).append(name)
    return {i: tuple(each) for i, each in names.items()}


def names_among(
    every: Sequence[Configuration],
    objectives: Sequence[Sequence[float]],
    processors: Sequence[str],
    *,
    memory: bool,
) -> Names:
    """Return what names some of these configurations; parameters as for `marked`."""

    def names(some: Sequence[int], front: Sequence[int]) -> dict[int, tuple[str, ...]]:
        return names_of(
            {i: every[i] for i in some},
            processors,
            lambda i: every[i].objectives,
            front=front,
            memory_bytes={i: objectives[i][-1] for i in some} if memory else None,
            smallest=1 / NANO,
        )

    return names


def as_configurations(
    chosen: Sequence[Candidate],
    graph: OperatorGraph,
    tables: Sequence[CostTable],
    options: MapOptions,
) -> tuple[Configuration, ...]:
    """Return what was chosen in exact seconds, with its names and the fronts that it is on."""
    every = [configure(each, graph, tables) for each in chosen]
    figures = [each.objectives[: 2 + options.energy] for each in every]
    if options.memory:
        figures = [(*some, each.memory_bytes) for some, each in zip(figures, every, strict=True)]
    names = names_among(every, figures, tables[0].processors, memory=options.memory)
    return tuple(mark_fronts(every, figures, names))


@dataclass(frozen=True, slots=True)
class _Selection:
    """Chooses among candidates, which go by their numbers."""

    candidates: Sequence[Candidate]
    processors: Sequence[str]
    energy: bool
    resolution: float
    large: bool
    memory: bool

    def select(self, numbers: Sequence[int], wanted: Sequence[Candidate]) -> list[Candidate]:
        """Choose among some; `wanted`: what something is to be shown for that is as good."""
        front = nondominated(numbers, self.objectives)
        best = dict.fromkeys(
            names_of(
                {i: self.candidates[i] for i in numbers},
                self.processors,
                self.latency_first,
                front=front,
                memory_bytes={i: self.objectives(i)[-1] for i in numbers} if self.memory else None,
            )
        )
        if not self.large:
            best |= dict.fromkeys(nondominated(front, lambda i: self.objectives(i)[:2]))
        best |= dict.fromkeys(self.list_as_good(numbers, wanted))
        on_front = set(front)
        # What is named but beaten, or of a kind that equals another in all figures, replaces
        # nothing.
        keep = dict.fromkeys(i for i in best if i in on_front)
        if self.energy:  # what is called the most efficient may take a little more than the least
            keep |= {min(front, key=lambda i: self.latency_first(i)[::-1]): None}
        beaten = [i for i in best if i not in on_front]
        shown = [*thin_front(front, self.objectives, self.resolution, keep), *beaten]
        return [self.candidates[i] for i in sorted(shown, key=self.latency_first)]

    def list_as_good(self, numbers: Sequence[int], wanted: Sequence[Candidate]) -> Iterator[int]:
        """Yield, for each one wanted, one that it is no better than, that of least energy."""
        front = nondominated(numbers, self.objectives) if wanted else []
        for each in wanted:
            figures = self.figures(each)
            yield min(
                (
                    i
                    for i in front
                    if all(a <= b for a, b in zip(self.objectives(i), figures, strict=True))
                ),
                key=lambda i: self.latency_first(i)[::-1],
            )

    def objectives(self, i: int) -> tuple[float, ...]:
        """Return what the front trades."""
        return self.figures(self.candidates[i])

    def figures(self, candidate: Candidate) -> tuple[float, ...]:
        """Return the same of a candidate."""
        figures = candidate.nano_objectives[: 3 if self.energy else 2]
        if self.memory and isinstance(candidate, Configuration):
            return (*figures, candidate.memory_bytes)
        return figures

    def latency_first(self, i: int) -> tuple[float, float, float]:
        """Return latency, period, energy."""
        return self.candidates[i].nano_objectives


def exact_near_rate(
    candidates: Iterable[Candidate],
    restriction: Restriction,
    graph: OperatorGraph,
    tables: Sequence[CostTable],
) -> Iterator[Candidate]:
    """Yield candidates, in exact seconds if those decide whether they reach a rate."""
    for each in candidates:
        yield configure(each, graph, tables) if restriction.is_near(each) else each


def within_limit(
    every: Sequence[Configuration], problem: SearchProblem, deadline: Deadline
) -> list[Configuration]:
    """Return the configurations that keep the limit of memory: all, if there is none.

    The kinds that there are, of which none keeps it, are told with the reason.

    Raises
    ------
    MappingError
        None keeps the limit; says how little would do, and what stands in the way.
    """
    limit = MemoryLimit(problem.options.max_memory_bytes)
    fitting = [each for each in every if limit.fits(each)]
    if deadline.interrupted and not fitting:
        raise KeyboardInterrupt
    names = problem.tables[0].processors
    if not fitting:
        least = min(Storage.of(problem.graph, each).least_bytes(each) for each in problem.tables)
        kind = " of whole operators" if problem.options.split == "auto" else ""
        bound = f"no mapping{kind} needs less than {megabytes(least)}"
        model = problem.graph.source.name
        raise MappingError(no_fit_message(model, limit, limit.nearest(every), names, bound))
    unfit_kinds = {each.kind for each in every} - {each.kind for each in fitting}
    for kind in sorted(unfit_kinds, key=get_args(Kind).index):
        nearest = limit.nearest(each for each in every if each.kind == kind)
        problem.lacking[kind] = f"the least memory found is {limit.told(nearest)}"
    return fitting


def within_segments(every: Sequence[Configuration], problem: SearchProblem) -> list[Configuration]:
    """Return the configurations that keep the limit of segments.

    The kinds that there are, of which none keeps it, are told with the reason.

    Raises
    ------
    MappingError
        None keeps the limit; says how many segments the nearest has, and where.
    """
    limit = LimitedSegments(problem.options.max_segments, problem.graph, problem.tables)
    fitting = [each for each in every if limit.fits(each)]
    if not fitting:
        nearest = limit.nearest(every)
        names = problem.tables[nearest.table].processors
        where = " │ ".join(
            "+".join(names[p] for p in stage.processors) for stage in nearest.mapping.stages
        )
        raise MappingError(
            f"no mapping of '{problem.graph.source.name}' was found with so few segments: the "
            f"nearest, on {where}, has {limit.told(nearest)}; allow more with `max_segments`, or "
            "let a processor that runs the whole model take part"
        )
    unfit_kinds = {each.kind for each in every} - {each.kind for each in fitting}
    for kind in sorted(unfit_kinds, key=get_args(Kind).index):
        nearest = limit.nearest(each for each in every if each.kind == kind)
        problem.lacking[kind] = f"the fewest segments found are {limit.told(nearest)}"
    return fitting
