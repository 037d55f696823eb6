"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.files.progress import Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.all_used import all_used
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.registry import proves_shortest
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.choices import Choice, lookup, options_of
from parapipe.pipeline.choose import choose
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.configure import configure
from parapipe.pipeline.identical import identical_processors
from parapipe.pipeline.infeasible import absent
from parapipe.pipeline.method import Method
from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.problems import Request, requests
from parapipe.pipeline.question import Question
from parapipe.pipeline.search import Candidate, search
from parapipe.pipeline.solve import Reporter, Solved, Solver, solve
from parapipe.pipeline.stage_table import StageTable
from parapipe.pipeline.trade_energy import Sets, Traded, sets_of, trade_energy

LONGEST_S = 1e6  # of one frame, all operators one by one on all processors


@dataclass(frozen=True, slots=True)
class Exploration:
    """All configurations worth showing, by ascending latency, and how they were found.

    Parameters
    ----------
    absent
        Kinds of configuration that do not exist here, and processors that cannot run the model
        alone (`<processor>-alone`), with the reason in plain words.
    cached
        Problems that an earlier run has solved.
    asked
        What the problems are there for; an equal problem may be asked for in several places.
    traded
        Schedules that trade time for energy, by problem.
    energy_resolution
        For every configuration that any schedules make there is one that is larger by at most this
        share in latency, period and energy each; infinite if no share is known. None if the search
        chose from the mapper's schedules alone. It is said of the first cost table only.
    energy_timed_out
        Whether time limits kept that share from being less.
    """

    found: tuple[Configuration, ...]
    schedules: Mapping[MappingProblem, Schedule]
    absent: Mapping[str, str]
    cached: frozenset[MappingProblem]
    asked: tuple[Request, ...]
    traded: Solved
    energy_resolution: float | None
    energy_timed_out: bool


def explore(
    graph: OperatorGraph,
    partition: Partition,
    costs: CostTable,
    options: MapOptions,
    *,
    cache: Cache | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    others: Sequence[CostTable] = (),
) -> Exploration:
    """Map every subgraph on every set of processors, then search all stages built from them.

    Parameters
    ----------
    others
        Cost tables of other operating points, that differ from `costs` in their numbers only. A
        configuration rests on one table; the front is that of all together, of the others with
        their shortest schedules only.
    options
        Those that say how the model, the platform and the costs were made are not looked at. With
        energy as an objective and a mapper that proves its schedules shortest, what concerns
        latency and throughput alone stays exact.
    cache, executor
        As for `solve`.

    Raises
    ------
    MappingError
        No configuration exists.
    """
    _check_times(graph, costs)
    tables = (costs, *others)
    asked = [tuple(requests(graph, partition, table)) for table in tables]
    every = tuple(dict.fromkeys(request for each in asked for request in each))
    mapper, energy = options.mapper, options.energy
    method = Method(mapper, options.time_limit_s, options.seed, options.deterministic)
    solver = Solver(method, options.workers, cache, executor)
    solved = solve(
        [Question(request.problem) for request in every], solver, Reporter("mapping", progress)
    )
    fastest = [_fastest(each, solved) for each in asked]
    shortest = proves_shortest(mapper)
    trades = energy and shortest
    sets = Sets((), (), Solved({}, frozenset()))
    if trades:
        sets = sets_of(
            fastest[0],
            costs,
            solver,
            resolution=options.energy_resolution,
            report=Reporter("trading", progress),
        )
        fastest[0] = list(sets.fastest)
    units = len(partition.units)
    report = Reporter("searching", progress)
    identical = [identical_processors(graph, table) for table in tables]
    candidates: list[Candidate] = []
    for i, (table, choices) in enumerate(zip(tables, fastest, strict=True)):
        more = _all_used(choices) if shortest else ()
        candidates += search(
            units,
            StageTable(lookup(options_of([*choices, *more], table)), energy=energy),
            table.static_power_w,
            cost_table=i,
            identical=identical[i],
            tell=partial(_tell, report, i, len(tables)),
        )
    if not candidates:
        raise MappingError(
            f"no mapping of '{graph.source.name}' exists on this platform: some operators have no "
            "common processor with their neighbours; see the operator support of its processors"
        )
    first = sum(candidate.cost_table == 0 for candidate in candidates)
    traded = Traded((), 0.0, timed_out=False)
    if trades:
        traded = trade_energy(
            sets,
            partition,
            costs,
            resolution=options.energy_resolution,
            identical=identical[0],
            known=candidates[:first],
        )
    # of those equal in all objectives the first is shown: better one with its shortest schedules
    every_candidate = [*candidates[:first], *traded.candidates, *candidates[first:]]
    chosen = choose(every_candidate, costs.processors, energy=energy, resolution=options.resolution)
    return Exploration(
        tuple(configure(each, graph, tables[each.candidate.cost_table]) for each in chosen),
        {each.problem: answer.schedules[0] for each, answer in solved.answers.items()},
        absent(candidates, graph, partition, costs),
        frozenset(question.problem for question in solved.cached),
        every,
        sets.solved,
        traded.resolution if trades else None,
        traded.timed_out,
    )


def _check_times(graph: OperatorGraph, costs: CostTable) -> None:
    count = range(len(costs.processors))
    times_s = [costs.time_s(v, p) for v in range(len(graph.operators)) for p in count]
    longest_s = sum(time_s for time_s in times_s if time_s < inf)
    if not any(times_s):
        raise MappingError(
            f"'{graph.source.name}' has no operator that takes time: there is nothing to map"
        )
    if longest_s > LONGEST_S:
        raise MappingError(
            f"'{graph.source.name}' would take up to {longest_s:.3g} s for a frame: check the "
            "sizes given with `dims`, `shapes` and `rules`"
        )


def _tell(report: Reporter, table: int, tables: int, done: int, total: int) -> None:
    report(table * total + done, tables * total)


def _fastest(asked: Sequence[Request], solved: Solved) -> list[Choice]:
    return [
        Choice(request, solved.answers[Question(request.problem)].schedules[0]) for request in asked
    ]


def _all_used(fastest: Sequence[Choice]) -> Iterator[Choice]:
    """Yield schedules that use all processors they may, where the shortest ones do not."""
    found: dict[MappingProblem, Schedule | None] = {}
    for choice in fastest:
        problem = choice.request.problem
        if problem not in found:
            found[problem] = all_used(problem, choice.schedule)
        if schedule := found[problem]:
            yield Choice(choice.request, schedule)
