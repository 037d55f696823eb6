"""From a placement and an order to a schedule in exact seconds that the verifier accepts.

A transfer is a pure delay, as in equation (4) of the Para-Pipe paper, or keeps its sender, its
receiver or a shared link busy. Once operators are placed, a transfer that occupies something is one
more operator, on the resource that it occupies: `expanded` writes the problem so. The result knows
pure delays only, so that all that replays or orders operators can do the same to transfers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from math import inf, isinf, ulp
from time import perf_counter

from parapipe.errors import MappingError
from parapipe.solvers.paths import arrival_s, inputs_of, list_order
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Certificate, Schedule, Transfer
from parapipe.solvers.verify import verify

# An operator, or a flow on its way to a processor.
Job = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of all operators and of the transfers that keep a resource busy."""

    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    transfers: tuple[Transfer, ...] = ()

    @property
    def makespan_s(self) -> float:
        """Seconds until the last operator has ended."""
        return max(self.end_s)


def replay(problem: MappingProblem, processor: Sequence[int], order: Iterable[Job]) -> Timed:
    """Start every operator, and every transfer that occupies something, as early as it can.

    Parameters
    ----------
    processor
        Of each operator.
    order
        Every operator once, and every such transfer, as (flow, target), or none of them. What
        counts is the order on each processor and link: one global sequence will do as well as
        their sequences one behind the other. If there are only operators, transfers that occupy
        the sender or a link go right after the producer, those that occupy the receiver right
        before their first consumer; on a link, by the time that pure delays give.

    Raises
    ------
    MappingError
        If the order misses or repeats operators or some of the transfers, an operator is on a
        processor that does not support it, or the order makes operators wait for each other in a
        circle.
    """
    sequence = tuple(order)
    operators = [job for job in sequence if isinstance(job, int)]
    if not problem.transfer_resource and len(operators) == len(sequence):
        return _replay_pure(problem, processor, operators)
    expansion = expand_transfers(problem, processor)
    if len(expansion.jobs) > problem.operators and len(operators) == len(sequence):
        sequence = tuple(_merge_transfers(problem, processor, operators))
    number = {job: i for i, job in enumerate(expansion.jobs)}
    if len(sequence) != len(number) or set(sequence) != number.keys():
        wrong = sorted(map(str, number.keys() ^ set(sequence)))
        raise MappingError(
            f"an order must list each of the {problem.operators} operators once, and each "
            f"transfer that occupies something or none; this one misses, repeats or invents {wrong}"
        )
    return expansion.replayed(number[job] for job in sequence)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A placed problem in which occupying transfers are operators of their own.

    Parameters
    ----------
    problem
        On all resources, with pure delays; its operators are `jobs`, in topological order.
    processor
        Resource of each job.
    jobs
        Which operator, or which transfer, each of its operators is.
    """

    problem: MappingProblem
    processor: tuple[int, ...]
    jobs: tuple[Job, ...]

    def replayed(self, order: Iterable[int]) -> Timed:
        """Start every job as early as it can in an order of them, given by their numbers here."""
        times = _replay_pure(self.problem, self.processor, tuple(order))
        spans = dict(zip(self.jobs, zip(times.start_s, times.end_s, strict=True), strict=True))
        operators = [span for job, span in spans.items() if isinstance(job, int)]
        transfers = [Transfer(*job, *span) for job, span in spans.items() if isinstance(job, tuple)]
        transfers.sort(key=lambda t: (t.start_s, t.end_s, t.flow, t.target))
        starts_s, ends_s = zip(*operators, strict=True)
        return Timed(starts_s, ends_s, tuple(transfers))


def needed_transfers(
    problem: MappingProblem, processor: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield flow and target of every transfer that a placement needs and that occupies something.

    Flow by flow, targets ascending.
    """
    for f, flow in enumerate(problem.flows):
        source = source_of(flow, processor)
        for q in sorted({processor[v] for v in flow.consumers}):
            if problem.resource_of(source, q) is not None:
                yield f, q


def source_of(flow: Flow, processor: Sequence[int]) -> int:
    """Processor that a flow comes from."""
    if flow.producer is not None:
        return processor[flow.producer]
    assert flow.location is not None
    return flow.location


def expand_transfers(problem: MappingProblem, processor: Sequence[int]) -> Expanded:
    """Make every occupying transfer of a placement an operator of its own."""
    behind: dict[int | None, list[Job]] = {}
    for f, q in needed_transfers(problem, processor):
        behind.setdefault(problem.flows[f].producer, []).append((f, q))
    jobs = list(behind.get(None, ()))
    for v in range(problem.operators):
        jobs += [v, *behind.get(v, ())]
    spans: list[tuple[int, float]] = []  # resource and seconds of each job
    for job in jobs:
        if isinstance(job, int):
            spans.append((processor[job], problem.time_s[job][processor[job]]))
        else:
            flow, q = problem.flows[job[0]], job[1]
            source = source_of(flow, processor)
            resource = problem.resource_of(source, q)
            assert resource is not None
            spans.append((resource, flow.transfer_s[source][q]))
    count = problem.resources
    rows = tuple(tuple(s if r == own else inf for r in range(count)) for own, s in spans)
    flows = tuple(_job_flows(problem, processor, {job: i for i, job in enumerate(jobs)}))
    job_problem = MappingProblem(rows, flows, tuple(range(len(jobs))))
    return Expanded(job_problem, tuple(own for own, _ in spans), tuple(jobs))


def _job_flows(
    problem: MappingProblem, processor: Sequence[int], number: dict[Job, int]
) -> Iterator[Flow]:
    """Yield what operators and transfers read from each other."""
    count = problem.resources
    at_once = ((0.0,) * count,) * count
    rest = (0.0,) * (count - problem.processors)
    for f, flow in enumerate(problem.flows):
        producer = None if flow.producer is None else number[flow.producer]
        direct: list[int] = []
        by_transfer: dict[int, list[int]] = {}
        for v in flow.consumers:
            transfer = number.get((f, processor[v]))
            (direct if transfer is None else by_transfer.setdefault(transfer, [])).append(number[v])
        if direct:
            delay_s = tuple((*row, *rest) for row in flow.transfer_s)
            delay_s += ((0.0,) * count,) * len(rest)
            yield Flow(producer, tuple(direct), delay_s, flow.location)
        for transfer, readers in by_transfer.items():
            if producer is not None:
                yield Flow(producer, (transfer,), at_once)
            yield Flow(transfer, tuple(readers), at_once)


def _replay_pure(
    problem: MappingProblem, processor: Sequence[int], sequence: Sequence[int]
) -> Timed:
    """Start every operator as early as it can, all transfers being pure delays."""
    _check(problem, processor, sequence)
    inputs = inputs_of(problem)
    before: dict[int, int] = {}
    last: dict[int, int] = {}
    for v in sequence:
        if processor[v] in last:
            before[v] = last[processor[v]]
        last[processor[v]] = v
    waits = {
        v: {f.producer for f in inputs[v] if f.producer is not None} | {before.get(v, v)} - {v}
        for v in sequence
    }
    start_s = [0.0] * len(sequence)
    end_s = [0.0] * len(sequence)
    place = {v: i for i, v in enumerate(sequence)}
    sorted_already = all(place[u] < place[v] for v, some in waits.items() for u in some)
    try:
        for v in sequence if sorted_already else TopologicalSorter(waits).static_order():
            free_s = end_s[before[v]] if v in before else 0.0
            start_s[v] = max(free_s, arrival_s(inputs[v], processor[v], processor, end_s))
            end_s[v] = start_s[v] + problem.time_s[v][processor[v]]
    except CycleError as error:
        raise MappingError(
            f"the order on the processors makes operators {sorted(set(error.args[1]))} wait for "
            "each other in a circle; list producers before their consumers"
        ) from None
    return Timed(tuple(start_s), tuple(end_s))


def order_by_start(start: Sequence[float], end: Sequence[float]) -> tuple[int, ...]:
    """Operators by start; of equal starts those that take no time first, then producers first."""
    return tuple(sorted(range(len(start)), key=lambda v: (start[v], end[v], v)))


def time_placement(
    problem: MappingProblem, processor: Sequence[int], order: Sequence[int]
) -> Timed:
    """Find good times for operators that were placed and ordered by pure delays.

    The better of two: the same order, transfers put into it by the rule of `replay`; and
    list scheduling of operators and transfers together, which keeps the order only among those
    that could start at the same time. Where no transfer occupies anything, the order is replayed.
    """
    if not problem.transfer_resource:
        return _replay_pure(problem, processor, order)
    expansion = expand_transfers(problem, processor)
    if len(expansion.jobs) == problem.operators:
        return expansion.replayed(order)
    number = {job: i for i, job in enumerate(expansion.jobs)}
    sequence = [number[job] for job in _merge_transfers(problem, processor, order)]
    priority = sorted(range(len(sequence)), key=sequence.__getitem__)
    listed = expansion.replayed(list_order(expansion.problem, expansion.processor, priority))
    return min(expansion.replayed(sequence), listed, key=lambda times: times.makespan_s)


def one_at_a_time(problem: MappingProblem, processor: Sequence[int]) -> Timed:
    """Run operators one at a time in the problem's order, as early as they can.

    Transfers go where the rule of `replay` puts them.
    """
    expansion = expand_transfers(problem, processor)
    number = {job: i for i, job in enumerate(expansion.jobs)}
    at_once = ((0.0,) * expansion.problem.processors,) * expansion.problem.processors
    chain = [Flow(number[v], (number[v + 1],), at_once) for v in range(problem.operators - 1)]
    chained = replace(expansion.problem, flows=(*expansion.problem.flows, *chain))
    order = _place_transfers(problem, processor, range(problem.operators))
    return replace(expansion, problem=chained).replayed(number[job] for job in order)


def _merge_transfers(
    problem: MappingProblem, processor: Sequence[int], order: Sequence[int]
) -> Iterator[Job]:
    """Put the transfers into the processors' orders, merged by the times that pure delays give."""
    delayed = _replay_pure(problem, processor, order)
    return _place_transfers(problem, processor, order_by_start(delayed.start_s, delayed.end_s))


def _place_transfers(
    problem: MappingProblem, processor: Sequence[int], sequence: Sequence[int]
) -> Iterator[Job]:
    """Put the transfers into a topological order of operators; nothing waits in a circle then."""
    rank = {v: i for i, v in enumerate(sequence)}
    at_first: list[tuple[int, int, int]] = []
    behind: dict[int, list[tuple[int, int, int]]] = {}
    ahead: dict[int, list[tuple[int, int]]] = {}
    for f, q in needed_transfers(problem, processor):
        flow = problem.flows[f]
        first = min((v for v in flow.consumers if processor[v] == q), key=rank.__getitem__)
        if problem.resource_of(source_of(flow, processor), q) == q:
            ahead.setdefault(first, []).append((f, q))
        elif flow.producer is None:
            at_first.append((rank[first], f, q))
        else:
            behind.setdefault(flow.producer, []).append((rank[first], f, q))
    yield from ((f, q) for _, f, q in sorted(at_first))
    for v in sequence:
        yield from ahead.get(v, ())
        yield v
        yield from ((f, q) for _, f, q in sorted(behind.get(v, ())))


def _check(problem: MappingProblem, processor: Sequence[int], sequence: Sequence[int]) -> None:
    if len(processor) != problem.operators:
        raise MappingError(
            f"{problem.operators} operators were given {len(processor)} processors; name one each"
        )
    if sorted(sequence) != list(range(problem.operators)):
        counts = Counter(sequence)
        expected = range(problem.operators)
        wrong = sorted(v for v in {*counts, *expected} if counts[v] != 1 or v not in expected)
        raise MappingError(
            f"an order must list each of the {problem.operators} operators once, and this one "
            f"misses, repeats or invents {wrong}"
        )
    unable = [
        v
        for v, p in enumerate(processor)
        if not 0 <= p < problem.processors or isinf(problem.time_s[v][p])
    ]
    if unable:
        raise MappingError(
            f"operators {unable} were put on processors that do not support them; choose others"
        )


def certified(
    problem: MappingProblem,
    processor: Sequence[int],
    times: Timed,
    *,
    bound_s: float,
    proves: str = "makespan",
    objective_s: float | None = None,
    proven: bool | None = None,
    solver: str,
    seed: int,
    began_s: float,
) -> Schedule:
    """Return the verified schedule; its certificate's objective is the latest end unless given.

    Parameters
    ----------
    bound_s
        Lower bound on what `proves` names; it is cut to the objective.
    proven
        If not given, it is proven if the bound meets the objective, to one unit in the last place
        for each operator: both are sums of doubles, added up in different orders.
    began_s
        When the mapper was called, on the clock of `time.perf_counter`.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule.
    """
    objective_s = times.makespan_s if objective_s is None else objective_s
    certificate = Certificate(
        proves=proves,
        objective_s=objective_s,
        bound_s=min(bound_s, objective_s),
        proven=is_as_short(problem, objective_s, bound_s) if proven is None else proven,
        wall_s=perf_counter() - began_s,
        seed=seed,
        solver=solver,
    )
    schedule = Schedule(tuple(processor), times.start_s, times.end_s, certificate, times.transfers)
    verify(problem, schedule)
    return schedule


def with_transfers(problem: MappingProblem, processor: Sequence[int], times: Timed) -> Timed:
    """Return new times, from those of pure delays, where transfers occupy something."""
    if not problem.transfer_resource:
        return times
    return time_placement(problem, processor, order_by_start(times.start_s, times.end_s))


def is_as_short(problem: MappingProblem, makespan_s: float, other_s: float) -> bool:
    """Compare sums of doubles that were added up in different orders."""
    return makespan_s <= other_s + (problem.operators + 2) * ulp(other_s)
