"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.registry import trades_energy
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.choices import Choice, options_of
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.configure import configure
from parapipe.pipeline.front import nondominated, thinned
from parapipe.pipeline.infeasible import absent
from parapipe.pipeline.method import Method
from parapipe.pipeline.named import winners
from parapipe.pipeline.problems import Request, requests
from parapipe.pipeline.runs import Runs
from parapipe.pipeline.search import Candidate, search
from parapipe.pipeline.solve import Progress, solve
from parapipe.pipeline.solve_trade_offs import Answered
from parapipe.pipeline.trade_energy import Traded, trade_energy


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that is worth showing.

    Parameters
    ----------
    names
        Names it carries ("hybrid-L", ...), in a fixed order; may be empty.
    pareto
        Whether it is on the front of latency, throughput and energy.
    pareto_latency_throughput
        Whether it is on the paper's front, of latency and throughput alone.
    """

    configuration: Configuration
    names: tuple[str, ...]
    pareto: bool
    pareto_latency_throughput: bool


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
        chose from the mapper's schedules alone.
    """

    found: tuple[Found, ...]
    schedules: Mapping[MappingProblem, Schedule]
    absent: Mapping[str, str]
    cached: frozenset[MappingProblem]
    asked: tuple[Request, ...]
    traded: Answered
    energy_resolution: float | None


def explore(
    graph: OperatorGraph,
    partition: Partition,
    costs: CostTable,
    mapper: str,
    *,
    time_limit_s: float,
    seed: int,
    jobs: int = 1,
    deterministic: bool = False,
    cache: Cache | None = None,
    executor: Executor | None = None,
    energy: bool = True,
    resolution: float = 0.0,
    energy_resolution: float = 0.0,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Map every subgraph on every set of processors, then search all stages built from them.

    Parameters
    ----------
    mapper, jobs, deterministic, cache, executor
        As for `solve`.
    energy
        False: the front trades latency and throughput only.
    resolution
        Configurations of the front that another one matches to within this share in every
        objective are left out, unless they have a name or are on the paper's front.
    energy_resolution
        With energy as an objective and a mapper that proves its schedules shortest, units may also
        run longer and take less energy. The front then is that of all schedules, to within this
        share in every objective; what concerns latency and throughput alone stays exact.

    Raises
    ------
    MappingError
        No configuration exists.
    """
    count = range(len(costs.processors))
    if not any(costs.time_s(v, p) for v in range(len(graph.operators)) for p in count):
        raise MappingError(
            f"'{graph.source.name}' has no operator that takes time: there is nothing to map"
        )
    asked = list(requests(graph, partition, costs))
    trades = energy and trades_energy(mapper)
    solved = solve(
        [request.problem for request in asked],
        mapper,
        time_limit_s=time_limit_s,
        seed=seed,
        jobs=jobs,
        deterministic=deterministic,
        cache=cache,
        executor=executor,
        progress=progress,
    )
    fastest = [
        Choice(request, schedule, schedule.certificate)
        for request in asked
        for schedule in [solved.schedules[request.problem]]
    ]
    options = options_of(fastest, costs)
    runs = Runs(lambda unit, homes: options.get((unit, homes), ()), energy=energy)
    units = len(partition.units)
    candidates = search(units, runs, costs.static_power_w, _searching(progress, units))
    if not candidates:
        raise MappingError(
            f"no mapping of '{graph.source.name}' exists on this platform: some operators have no "
            "common processor with their neighbours; see the operator support of its processors"
        )
    traded = Traded((), runs, fastest, Answered({}, frozenset()), 0.0)
    if trades:
        traded = trade_energy(
            fastest,
            partition,
            costs,
            Method(mapper, time_limit_s, seed, deterministic),
            resolution=energy_resolution,
            jobs=jobs,
            cache=cache,
            executor=executor,
            tell=_trading(progress),
        )
    runs_of = {id(candidate): runs for candidate in candidates}

    def configured(candidate: Candidate) -> Configuration:
        return configure(
            candidate,
            runs=runs_of.get(id(candidate), traded.runs),
            graph=graph,
            costs=costs,
            choices=traded.choices,
        )

    every = [*candidates, *traded.candidates]
    return Exploration(
        tuple(_name(every, configured, costs.processors, energy, resolution)),
        solved.schedules,
        absent(candidates, graph, partition, costs),
        solved.cached,
        tuple(asked),
        traded.answered,
        traded.resolution if trades else None,
    )


def _searching(progress: Callable[[Progress], None] | None, units: int) -> Callable[[int], None]:
    """Return what tells how far a search has come that begins now."""
    began_s = perf_counter()

    def tell(unit: int) -> None:
        if progress is not None:
            elapsed_s = perf_counter() - began_s
            progress(Progress(unit + 1, units, 0.0, elapsed_s, phase="searching"))

    return tell


def _trading(progress: Callable[[Progress], None] | None) -> Callable[[int, int], None]:
    """Return what tells how many sets of schedules there are, of those that are looked for."""
    began_s = perf_counter()

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, total, 0.0, perf_counter() - began_s, phase="trading"))

    return tell


def _name(
    candidates: Sequence[Candidate],
    configured: Callable[[Candidate], Configuration],
    processors: Sequence[str],
    energy: bool,
    resolution: float,
) -> list[Found]:
    def objectives(candidate: Candidate) -> Sequence[float]:
        return candidate.objectives if energy else candidate.objectives[:2]

    front = nondominated(candidates, objectives)
    paper = nondominated(front, lambda candidate: candidate.objectives[:2])
    names: dict[int, list[str]] = {}
    named = winners(candidates, front, processors)
    for name, candidate in named.items():
        names.setdefault(id(candidate), []).append(name)
    best = {id(candidate): candidate for candidate in (*named.values(), *paper)}
    on_front = {id(candidate) for candidate in front}
    on_paper = {id(candidate) for candidate in paper}
    # What is named but beaten, or of a kind that equals another in all figures, replaces nothing.
    beaten = [candidate for key, candidate in best.items() if key not in on_front]
    keep = [candidate for key, candidate in best.items() if key in on_front]
    shown = [*thinned(front, objectives, resolution, keep), *beaten]
    return [
        Found(
            configured(candidate),
            tuple(names.get(id(candidate), ())),
            id(candidate) in on_front,
            id(candidate) in on_paper,
        )
        for candidate in sorted(shown, key=lambda candidate: candidate.objectives)
    ]
