"""Transfers that keep a resource busy: placed operators together with what has to be moved.

Once operators are placed, a transfer that occupies its sender, its receiver or a shared link is
one more operator, on the resource that it occupies: `spelled_out` writes the problem so. The result
knows pure delays only, so that all that replays or orders operators can do the same to transfers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf

from parapipe.errors import MappingError
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.ranks import readers_of
from parapipe.mapping.replay import list_order, replay
from parapipe.mapping.schedule import Transfer

# An operator, or a flow on its way to a processor.
Job = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of all operators and of the transfers that occupy something."""

    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    transfers: tuple[Transfer, ...]

    @property
    def makespan_s(self) -> float:
        """Seconds until the last operator has ended."""
        return max(self.end_s)


@dataclass(frozen=True, slots=True)
class SpelledOut:
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
        start_s, end_s = replay(self.problem, self.processor, order)
        operators = [i for i, job in enumerate(self.jobs) if isinstance(job, int)]
        transfers = [
            Transfer(*job, start_s[i], end_s[i])
            for i, job in enumerate(self.jobs)
            if isinstance(job, tuple)
        ]
        return Timed(
            tuple(start_s[i] for i in operators),
            tuple(end_s[i] for i in operators),
            tuple(sorted(transfers, key=lambda t: (t.start_s, t.end_s, t.flow, t.target))),
        )


def carried(problem: MappingProblem, processor: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield flow and target of every transfer that a placement needs and that occupies something.

    Flow by flow, targets ascending.
    """
    for f, flow in enumerate(problem.flows):
        source = source_of(flow, processor)
        for q in sorted({processor[v] for v in flow.consumers}):
            if problem.carrier_of(source, q) is not None:
                yield f, q


def source_of(flow: Flow, processor: Sequence[int]) -> int:
    """Processor that a flow comes from."""
    if flow.producer is not None:
        return processor[flow.producer]
    assert flow.home is not None
    return flow.home


def spelled_out(problem: MappingProblem, processor: Sequence[int]) -> SpelledOut:
    """Make every occupying transfer of a placement an operator of its own."""
    needed = list(carried(problem, processor))
    jobs: list[Job] = [job for job in needed if problem.flows[job[0]].producer is None]
    behind: dict[int, list[Job]] = {}
    for f, q in needed:
        producer = problem.flows[f].producer
        if producer is not None:
            behind.setdefault(producer, []).append((f, q))
    for v in range(problem.operators):
        jobs += [v, *behind.get(v, ())]
    number = {job: i for i, job in enumerate(jobs)}
    resource: list[int] = []
    time_s: list[float] = []
    for job in jobs:
        if isinstance(job, int):
            resource.append(processor[job])
            time_s.append(problem.time_s[job][processor[job]])
        else:
            flow, q = problem.flows[job[0]], job[1]
            source = source_of(flow, processor)
            carrier = problem.carrier_of(source, q)
            assert carrier is not None
            resource.append(carrier)
            time_s.append(flow.transfer_s[source][q])
    count = problem.resources
    rows = tuple(
        tuple(s if r == own else inf for r in range(count))
        for s, own in zip(time_s, resource, strict=True)
    )
    flows = tuple(_flows(problem, processor, number))
    return SpelledOut(
        MappingProblem(rows, flows, tuple(range(len(jobs)))), tuple(resource), tuple(jobs)
    )


def _flows(
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
            yield Flow(producer, tuple(direct), delay_s, flow.home)
        for transfer, readers in by_transfer.items():
            if producer is not None:
                yield Flow(producer, (transfer,), at_once)
            yield Flow(transfer, tuple(readers), at_once)


def replay_carried(
    problem: MappingProblem, processor: Sequence[int], order: Iterable[Job]
) -> Timed:
    """Start and end of every operator and of every transfer that occupies something.

    Parameters
    ----------
    processor
        Of each operator.
    order
        Every operator once, and every such transfer, as (flow, target), or none of them. What
        counts is the order on each processor and link. If there are only operators, transfers
        that occupy the sender or a link go right after the producer, those that occupy the
        receiver right before their first consumer; on a link, by the time that pure delays give.

    Raises
    ------
    MappingError
        As for `replay`; also if an order holds some of the transfers and not all.
    """
    sequence = tuple(order)
    whole = spelled_out(problem, processor)
    number = {job: i for i, job in enumerate(whole.jobs)}
    if len(number) > problem.operators and all(isinstance(job, int) for job in sequence):
        operators = [job for job in sequence if isinstance(job, int)]
        merged = tuple(_by_time(problem, processor, operators))
        sequence = tuple(_inserted(problem, processor, merged))
    if len(sequence) != len(number) or set(sequence) != number.keys():
        wrong = sorted(map(str, number.keys() ^ set(sequence)))
        raise MappingError(
            f"an order must list each of the {problem.operators} operators once, and each "
            f"transfer that occupies something or none; this one misses, repeats or invents {wrong}"
        )
    return whole.replayed(number[job] for job in sequence)


def settled(problem: MappingProblem, processor: Sequence[int], order: Sequence[int]) -> Timed:
    """Find good times for operators that were placed and ordered by pure delays.

    The better of two: the order kept, transfers put into it by the rule of `replay_carried`; and
    list scheduling of operators and transfers together, which keeps the order only among those
    that could start at the same time.
    """
    whole = spelled_out(problem, processor)
    number = {job: i for i, job in enumerate(whole.jobs)}
    if len(number) == problem.operators:
        return whole.replayed(order)
    merged = tuple(_by_time(problem, processor, order))
    sequence = [number[job] for job in _inserted(problem, processor, merged)]
    priority = [0] * len(sequence)
    for rank, job in enumerate(sequence):
        priority[job] = rank
    listed = whole.replayed(list_order(whole.problem, whole.processor, priority))
    return min(whole.replayed(sequence), listed, key=lambda timed: timed.makespan_s)


def by_start(start_s: Sequence[float], end_s: Sequence[float]) -> tuple[int, ...]:
    """Operators by start; of equal starts those that take no time first, then producers first."""
    return tuple(sorted(range(len(start_s)), key=lambda v: (start_s[v], end_s[v], v)))


def one_at_a_time(problem: MappingProblem, processor: Sequence[int]) -> Timed:
    """Run operators one at a time in the problem's order, as early as they can.

    Transfers go where the rule of `replay_carried` puts them.
    """
    whole = spelled_out(problem, processor)
    number = {job: i for i, job in enumerate(whole.jobs)}
    at_once = ((0.0,) * whole.problem.processors,) * whole.problem.processors
    chain = [Flow(number[v], (number[v + 1],), at_once) for v in range(problem.operators - 1)]
    chained = replace(whole.problem, flows=(*whole.problem.flows, *chain))
    order = _inserted(problem, processor, range(problem.operators))
    return replace(whole, problem=chained).replayed(number[job] for job in order)


def _by_time(
    problem: MappingProblem, processor: Sequence[int], order: Sequence[int]
) -> Iterator[int]:
    """Merge the processors' orders into a topological one, by the times that pure delays give.

    Operators that take no time are why the times alone don't tell.
    """
    start_s, end_s = replay(problem, processor, order)
    behind: list[set[int]] = [set(readers) for readers in readers_of(problem)]
    last: dict[int, int] = {}
    for v in order:
        if processor[v] in last:
            behind[last[processor[v]]].add(v)
        last[processor[v]] = v
    waits = Counter(w for readers in behind for w in readers)
    ready = [(start_s[v], end_s[v], v) for v in order if not waits[v]]
    heapify(ready)
    while ready:
        v = heappop(ready)[2]
        yield v
        for w in behind[v]:
            waits[w] -= 1
            if not waits[w]:
                heappush(ready, (start_s[w], end_s[w], w))


def _inserted(
    problem: MappingProblem, processor: Sequence[int], sequence: Sequence[int]
) -> Iterator[Job]:
    """Put the transfers into a topological order of operators; nothing waits in a circle then."""
    rank = {v: i for i, v in enumerate(sequence)}
    at_first: list[tuple[int, int, int]] = []
    behind: dict[int, list[tuple[int, int, int]]] = {}
    ahead: dict[int, list[tuple[int, int]]] = {}
    for f, q in carried(problem, processor):
        flow = problem.flows[f]
        first = min((v for v in flow.consumers if processor[v] == q), key=rank.__getitem__)
        if problem.carrier_of(source_of(flow, processor), q) == q:
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
