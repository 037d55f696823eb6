"""Configurations that the search for modulo schedules finds.

Processors take turns on several frames in most of them. In others each processor serves one stage,
and hand-overs keep nobody waiting, where stages that follow each other count them in their times.
Or a frame ends before the next one begins: that is a single stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assemble, hand_overs_of
from parapipe.mappings.configuration import CLOSE, Configuration, Least, SplitModel
from parapipe.mappings.evaluate import evaluate, keep_bandwidth
from parapipe.mappings.feedback import keep_loops
from parapipe.mappings.mapping import Mapping, Placement, Transfer
from parapipe.mappings.power_budget import may_exceed
from parapipe.modulo.cyclic_problem import CyclicProblem, ModuloSchedule, ceil_ns
from parapipe.modulo.latency_curve import LatencyFloors, least_period_of, low_latency_schedules
from parapipe.modulo.least_energy import bound_j, energy_front
from parapipe.modulo.least_period import LeastPeriod
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.problems.problems import whole_problem
from parapipe.processes.deadline import Deadline
from parapipe.processes.shared_work import run_beside
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.infeasible import ENDED, no_turns_reason
from parapipe.search.mapping_bounds import least_known_period_s
from parapipe.search.stages.candidates import Candidate, evaluate_candidate
from parapipe.solvers.problem import NANO, MappingProblem

RESOLUTION = 0.1  # share by which the periods grow of which the least energy is asked
LIMIT_S = 0.1  # of counted work for each
MOST_PROCESSORS = 4  # whose sets are all looked at
FLOORS = (0.004, 0.02, 0.06, 0.15, 0.3, 0.6)  # shares above the least period with high bounds
ROOM = 0.03  # share of a period that makes a schedule with less latency possible


class InterleavedSearch:
    """The search with frames interleaved, of the model and then of the fastest split model, too."""

    name = "interleaved"
    moment = Moment.LATER

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield configurations with more throughput than stages, and such with less energy."""
        graph, costs = problem.graph, problem.tables[0]
        if graph.states:
            incumbents = [evaluate_candidate(each, graph, problem.tables) for each in incumbents]
        if reason := no_turns_reason(graph, problem.partition, costs):
            problem.lacking[self.name] = reason
        else:
            yield from self._search_models(problem, incumbents, deadline)
        if deadline.over:
            problem.left_out("the search with frames interleaved was ended early")

    def _search_models(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        search = partial(
            interleaved_candidates,
            seed=problem.options.seed,
            incumbents=[each.nano_objectives for each in incumbents],
            deadline=deadline,
            tell=problem.reporter("interleaving"),
        )
        own = (each for each in incumbents if not each.table and not _is_split(each))
        own_s = [each.period_s for each in own if each.kind != "replicated"]
        if own_s and min(own_s) == inf:
            return  # all draw more than the power budget when they do nothing
        yield from search(
            problem.graph,
            problem.tables[0],
            energy=problem.options.energy,
            limited=may_exceed(problem.tables[0]),
            longest_s=min(own_s),
            beside=problem.helped,
            none=partial(problem.lacking.__setitem__, self.name),
        )
        split = (each for each in incumbents if isinstance(each, Configuration) and each.split)
        fast = min(split, key=lambda each: each.evaluated.latency_s, default=None)
        if fast and fast.split:
            for each in search(
                fast.split.graph,
                fast.split.costs,
                energy=False,
                longest_s=fast.evaluated.period_s,
                none=lambda _reason: None,
                split=fast.split,
            ):
                if each.kind == self.name:
                    problem.lacking.pop(self.name, None)
                yield each


def _is_split(candidate: Candidate) -> bool:
    return isinstance(candidate, Configuration) and candidate.split is not None


def interleaved_candidates(
    graph: OperatorGraph,
    costs: CostTable,
    *,
    energy: bool,
    seed: int,
    longest_s: float,
    deadline: Deadline,
    tell: Callable[[int, int], None],
    none: Callable[[str], None],
    incumbents: Sequence[tuple[float, ...]] = (),
    split: SplitModel | None = None,
    beside: bool = False,
    limited: bool = False,
) -> Iterator[Configuration]:
    """Yield configurations with more throughput than stages, and such with less energy.

    Of more throughput are a bounded number, at periods between a known one and the least of all
    mappings, with little latency. With energy as an objective, and on few processors, follow
    those that take the least at their period, to within `RESOLUTION` of the period.

    Parameters
    ----------
    energy
        Whether it is an objective.
    seed
        Of all random choices.
    longest_s
        The shortest period of stages that are known.
    tell
        Called with the numbers of periods that are done and of all.
    none
        Called with the reason if no frames are interleaved.
    incumbents
        Latencies, periods and energies of other configurations, in nanoseconds and nanojoules:
        what has stages and one of them matches is not yielded.
    split
        The model with operators split that graph and costs are of.
    beside
        Whether another process may take a part of the work: the same is found.
    limited
        Whether a power budget may set the period, so that those of little energy count, too.
    """
    problem, any_interleaved = whole_problem(graph, costs), False
    longest_s = max(longest_s, costs.least_period_s)
    shortest_s, numbers = longest_s, 3 if energy else 2
    with ExitStack() as opened:
        if not deadline.over:
            low_energy: Iterable[tuple[ModuloSchedule, float]] = ()
            if energy or limited:
                low_energy = opened.enter_context(
                    _low_energy_beside(problem, costs, seed, deadline, beside=beside)
                )
            least = served_within(least_period_of(problem, seed), costs)
            rounding_s = CyclicProblem(problem).rounding_s
            near_s = [] if split else [least.period_s * (1 + share) for share in FLOORS]
            floors = LatencyFloors(problem, near_s)
            fast = low_latency_schedules(
                problem,
                least,
                min(longest_s, costs.arrival_s or longest_s),
                floors=floors,
                seed=seed,
                over=lambda: deadline.over,
                tell=tell,
            )
            for schedule, least_j in chain(((each, 0.0) for each in fast), low_energy):
                mapping = repeating_mapping(schedule, graph, costs)
                if mapping is None:
                    continue
                taken = evaluate(mapping, graph, costs)
                floor_s = 0.0 if split else floors.at(taken.period_s)
                bounds = Least(least.bound_s, floor_s, least_j if energy else 0.0, rounding_s)
                gap = bounds.gap(taken)
                configuration = Configuration(
                    mapping, taken, proven=not gap, gap=gap, table=0, split=split, least=bounds
                )
                if mapping.kind == "interleaved":
                    any_interleaved = True
                    yield configuration
                elif not _is_matched(
                    configuration.nano_objectives[:numbers], incumbents, len(graph.operators)
                ):
                    shortest_s = min(shortest_s, taken.period_s)
                    yield configuration
    if not any_interleaved:
        none(
            ENDED
            if deadline.over
            else "no schedule in which processors take turns was found that has clearly more "
            f"throughput than stages, whose shortest period is {plain(shortest_s * 1e3)} ms"
        )


def _is_matched(
    figures: Sequence[float], incumbents: Iterable[Sequence[float]], rounding_ns: float
) -> bool:
    """Tell whether some known figures are as good, up to the rounding of each operator's time."""
    return any(
        all(a <= b * (1 + CLOSE) + rounding_ns for a, b in zip(each, figures, strict=False))
        for each in incumbents
    )


def _low_energy_beside(
    problem: MappingProblem, costs: CostTable, seed: int, deadline: Deadline, *, beside: bool
) -> AbstractContextManager[Iterator[tuple[ModuloSchedule, float]]]:
    """Yield what `frugal` does, which another process may be at from now on."""
    schedules = partial(low_energy_schedules, CyclicProblem(problem), costs, seed)
    here = partial(schedules, lambda: deadline.over)
    if beside and len(costs.processors) <= MOST_PROCESSORS:
        return run_beside(schedules, here=here, over=lambda: deadline.over)
    return nullcontext(here())


def low_energy_schedules(
    cyclic: CyclicProblem, costs: CostTable, seed: int, over: Callable[[], bool] = lambda: False
) -> Iterator[tuple[ModuloSchedule, float]]:
    """Yield schedules of assignments of little energy, with a bound of the energy or 0.

    On more than `MOST_PROCESSORS` there are none.
    """
    processors = range(len(costs.processors))
    if len(processors) > MOST_PROCESSORS or over():
        return
    energy_j = tuple(
        tuple(0.0 if costs.unsupported(v, p) else costs.energy_j(v, p) for p in processors)
        for v in range(cyclic.operators)
    )
    front = energy_front(
        cyclic.problem,
        energy_j,
        costs.static_power_w,
        arrival_s=costs.least_frame_s,
        resolution=RESOLUTION,
        time_limit_s=LIMIT_S,
        seed=seed,
        deterministic=True,
        over=over,
    )
    served = ceil_ns(costs.least_period_s)
    for point in front:
        jobs = Jobs.of(cyclic, point.processor)
        shortest = max(served, *cyclic.loads(point.processor))
        for period in (shortest, int(shortest * (1 + ROOM))):
            if schedule := schedule_jobs(jobs, period):
                yield schedule, bound_j(front, period / NANO)


def repeating_mapping(
    schedule: ModuloSchedule, graph: OperatorGraph, costs: CostTable
) -> Mapping | None:
    """Return a modulo schedule as a mapping made for its period, or the least one that is possible.

    That is one in which the memory can serve a frame, and in which states are there in time; None
    if there is none. Where a frame ends before the next one begins, it is a stage, whose time is
    the period.
    """
    if schedule.latency <= schedule.period:
        return replace(mapping_of(schedule, graph, costs), period_s=None)
    mapping = mapping_of(_shift_to_origin(schedule, costs), graph, costs)
    return keep_loops(keep_bandwidth(mapping, costs), graph, costs)


def served_within(least: LeastPeriod, costs: CostTable, frames: float = 1.0) -> LeastPeriod:
    """Return a least period in which the memory can serve all operators, and loops of states end.

    Parameters
    ----------
    frames
        How many times the operators of the costs are in it.
    """
    return replace(
        least,
        period_s=max(least.period_s, frames * costs.least_period_s),
        bound_s=max(least.bound_s, frames * least_known_period_s(costs)),
    )


def _shift_to_origin(schedule: ModuloSchedule, costs: CostTable) -> ModuloSchedule:
    """Return a schedule of several frames at once, counted from where its period begins.

    That is the first start if a processor then serves several lags. Else the stages follow from
    where the period begins: of the moments at which a processor begins, the one that shows that
    there are several frames, then the one that cuts fewest processors and operators.
    """
    period, place = schedule.period, schedule.processor

    def cut_cost(origin: int) -> tuple[bool, int, int]:
        turns = [divmod(at - origin, period) for at in schedule.start]
        lags = {(p, lag) for p, (lag, _) in zip(place, turns, strict=True)}
        running = sum(
            begin + ceil_ns(costs.time_s(v, p)) > period
            for v, (p, (_, begin)) in enumerate(zip(place, turns, strict=True))
        )
        return len({lag for _, lag in lags}) == 1, len(lags) - len({*place}), running

    if cut_cost(0)[1]:
        return schedule
    begins = (min(at for at, q in zip(schedule.start, place, strict=True) if q == p)
              for p in {*place})  # fmt: skip
    later = -min((0, *sorted(at % period for at in begins)), key=cut_cost) % period
    return replace(
        schedule,
        start=tuple(at + later for at in schedule.start),
        moved=tuple((route, at + later) for route, at in schedule.moved),
    )


def mapping_of(schedule: ModuloSchedule, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a modulo schedule as a mapping in seconds: starts within the period, and lags."""
    period, place = schedule.period, schedule.processor
    placements: dict[int, Placement] = {}
    for v, (p, start) in enumerate(zip(place, schedule.start, strict=True)):
        lag, begin = divmod(start, period)
        start_s = begin / NANO
        placements[v] = Placement(v, p, start_s, start_s + costs.time_s(v, p), lag)
    tensors = [name for name in graph.consumers if name in graph.producer]
    busy: dict[tuple[str, int], Transfer] = {}
    for (flow, q), at in schedule.moved:
        name, (lag, begin) = tensors[flow], divmod(at, period)
        start_s, u = begin / NANO, graph.producer[name]
        time_s, resource = costs.transfer_s(name, place[u], q), costs.transfer_resource[place[u]][q]
        times_s = (start_s, start_s + time_s)
        busy[name, q] = Transfer(name, u, place[u], q, lag, time_s, resource, *times_s)
    return assemble(placements, hand_overs_of(placements, graph, costs, busy), period / NANO)


def modulo_schedule_of(mapping: Mapping, graph: OperatorGraph) -> ModuloSchedule:
    """Return a mapping made for a period as a modulo schedule again."""
    assert mapping.period_s is not None
    period = round(mapping.period_s * NANO)

    def when(lag: int, start_s: float) -> int:
        return lag * period + round(start_s * NANO)

    flow = {name: i for i, name in enumerate(n for n in graph.consumers if n in graph.producer)}
    placed = [mapping.at[v] for v in range(len(graph.operators))]
    start = [when(each.lag, each.start_s) for each in placed]
    ends = (when(each.lag, each.end_s) for each in placed)
    moved = (each for each in mapping.transfers if each.resource is not None)
    return ModuloSchedule(
        period,
        tuple(each.processor for each in placed),
        tuple(start),
        tuple(((flow[each.tensor], each.target), when(each.lag, each.start_s)) for each in moved),
        max(ends) - min(start),
    )
