"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.configure import configure
from parapipe.pipeline.front import nondominated, thinned
from parapipe.pipeline.infeasible import absent
from parapipe.pipeline.named import winners
from parapipe.pipeline.problems import Request, requests
from parapipe.pipeline.runs import Homes, Option, Runs
from parapipe.pipeline.search import Candidate, search
from parapipe.pipeline.solve import Progress, solve

NANO = 1e9


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
    """

    found: tuple[Found, ...]
    schedules: Mapping[MappingProblem, Schedule]
    absent: Mapping[str, str]
    cached: frozenset[MappingProblem]
    asked: tuple[Request, ...]


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
    schedules = solved.schedules
    options = _options(asked, schedules, costs)
    runs = Runs(lambda unit, homes: options.get((unit, homes), ()), energy=energy)
    units = len(partition.units)
    candidates = search(units, runs, costs.static_power_w, _searching(progress, units))
    if not candidates:
        raise MappingError(
            f"no mapping of '{graph.source.name}' exists on this platform: some operators have no "
            "common processor with their neighbours; see the operator support of its processors"
        )
    configured = partial(
        configure,
        runs=runs,
        graph=graph,
        costs=costs,
        asked=asked,
        schedules=schedules,
    )
    return Exploration(
        tuple(_name(candidates, configured, costs.processors, energy, resolution)),
        schedules,
        absent(candidates, graph, partition, costs),
        solved.cached,
        tuple(asked),
    )


def _searching(progress: Callable[[Progress], None] | None, units: int) -> Callable[[int], None]:
    """Return what tells how far a search has come that begins now."""
    began_s = perf_counter()

    def tell(unit: int) -> None:
        if progress is not None:
            elapsed_s = perf_counter() - began_s
            progress(Progress(unit + 1, units, 0.0, elapsed_s, phase="searching"))

    return tell


def _options(
    asked: Sequence[Request],
    schedules: Mapping[MappingProblem, Schedule],
    costs: CostTable,
) -> dict[tuple[int, Homes], list[Option]]:
    """Options of every unit by the homes before it, dominated ones left out."""
    every: dict[tuple[int, Homes], list[Option]] = {}
    for choice, request in enumerate(asked):
        schedule = schedules[request.problem]
        energy_j = sum(
            costs.energy_j(v, p) for v, p in zip(request.operators, schedule.processor, strict=True)
        )
        option = Option(
            sum(1 << p for p in schedule.used),
            request.homes_out,
            round(schedule.makespan_s * NANO),
            round(energy_j * NANO),
            choice,
            request.end - request.begin,
        )
        every.setdefault((request.begin, request.homes_in), []).append(option)
    return {key: _undominated(options) for key, options in every.items()}


def _undominated(options: Sequence[Option]) -> list[Option]:
    alike: dict[tuple[int, int, Homes], list[Option]] = {}
    for option in options:
        alike.setdefault((option.units, option.processors, option.homes), []).append(option)
    return [
        option
        for group in alike.values()
        for option in nondominated(group, lambda option: (option.time_ns, option.energy_nj))
    ]


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
