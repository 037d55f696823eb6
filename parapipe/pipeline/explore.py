"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.files.progress import Progress
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.all_used import all_used
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.registry import proves_shortest
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.choices import Choice, options_of
from parapipe.pipeline.found import Found, Searched, Table, spelled_out
from parapipe.pipeline.infeasible import absent
from parapipe.pipeline.method import Method
from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.problems import Request, requests
from parapipe.pipeline.runs import Runs
from parapipe.pipeline.search import search
from parapipe.pipeline.solve import solve
from parapipe.pipeline.solve_trade_offs import Answered
from parapipe.pipeline.trade_energy import Traded, trade_energy

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

    found: tuple[Found, ...]
    schedules: Mapping[MappingProblem, Schedule]
    absent: Mapping[str, str]
    cached: frozenset[MappingProblem]
    asked: tuple[Request, ...]
    traded: Answered
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
    progress: Callable[[Progress], None] | None = None,
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
    trades = energy and proves_shortest(mapper)
    solved = solve(
        [request.problem for request in every],
        mapper,
        time_limit_s=options.time_limit_s,
        seed=options.seed,
        jobs=options.workers,
        deterministic=options.deterministic,
        cache=cache,
        executor=executor,
        progress=progress,
    )
    fastest = [_fastest(each, solved.schedules) for each in asked]
    units = len(partition.units)
    tell = _searching(progress, units, len(tables))
    parallel = proves_shortest(mapper)
    searched = [
        _search(units, choices, Table(i, table), energy, partial(tell, i))
        for i, (table, fast) in enumerate(zip(tables, fastest, strict=True))
        for choices in [[*fast, *_all_used(fast)] if parallel else fast]
    ]
    found = [candidate for each in searched for candidate in each.candidates]
    if not found:
        raise MappingError(
            f"no mapping of '{graph.source.name}' exists on this platform: some operators have no "
            "common processor with their neighbours; see the operator support of its processors"
        )
    traded = Traded(
        (), searched[0].runs, fastest[0], Answered({}, frozenset()), 0.0, timed_out=False
    )
    if trades:
        traded = trade_energy(
            fastest[0],
            partition,
            costs,
            Method(mapper, options.time_limit_s, options.seed, options.deterministic),
            resolution=options.energy_resolution,
            jobs=options.workers,
            cache=cache,
            executor=executor,
            tell=_trading(progress),
        )
        first = Table(0, costs)
        searched.insert(1, Searched(first, traded.runs, traded.choices, traded.candidates))
    return Exploration(
        spelled_out(searched, graph, energy=energy, resolution=options.resolution),
        solved.schedules,
        absent(found, graph, partition, costs),
        solved.cached,
        every,
        traded.answered,
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
            "sizes given with --dim, --shape and --rules"
        )


def _fastest(
    asked: Sequence[Request], schedules: Mapping[MappingProblem, Schedule]
) -> list[Choice]:
    return [
        Choice(request, schedule, schedule.certificate)
        for request in asked
        for schedule in [schedules[request.problem]]
    ]


def _all_used(fastest: Sequence[Choice]) -> Iterator[Choice]:
    """Yield schedules that use all processors they may, where the shortest ones do not."""
    found: dict[MappingProblem, Schedule | None] = {}
    for choice in fastest:
        problem = choice.request.problem
        if problem not in found:
            found[problem] = all_used(problem, choice.schedule)
        if schedule := found[problem]:
            yield Choice(choice.request, schedule, schedule.certificate)


def _search(
    units: int,
    choices: Sequence[Choice],
    table: Table,
    energy: bool,
    tell: Callable[[int], None],
) -> Searched:
    options = options_of(choices, table.costs)
    runs = Runs(lambda unit, homes: options.get((unit, homes), ()), energy=energy)
    return Searched(table, runs, choices, search(units, runs, table.costs.static_power_w, tell))


def _searching(
    progress: Callable[[Progress], None] | None, units: int, tables: int
) -> Callable[[int, int], None]:
    """Return what tells how far a search has come that begins now, by table and unit."""
    began_s = perf_counter()

    def tell(table: int, unit: int) -> None:
        if progress is not None:
            done, elapsed_s = table * units + unit + 1, perf_counter() - began_s
            progress(Progress(done, units * tables, 0.0, elapsed_s, phase="searching"))

    return tell


def _trading(progress: Callable[[Progress], None] | None) -> Callable[[int, int], None]:
    """Return what tells how many sets of schedules there are, of those that are looked for."""
    began_s = perf_counter()

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, total, 0.0, perf_counter() - began_s, phase="trading"))

    return tell
