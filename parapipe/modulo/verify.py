"""The independent check of modulo schedules: nobody sees one that it has not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf

from parapipe.errors import VerificationError
from parapipe.files.mistakes import listed_sentences
from parapipe.modulo.cyclic_problem import ModuloSchedule, ceil_ns
from parapipe.solvers.problem import MappingProblem

Busy = tuple[str, int, int]


def check(problem: MappingProblem, schedule: ModuloSchedule) -> None:
    """Check a modulo schedule against its problem; return if every rule holds.

    The rules: every operator runs on a processor that supports it; it starts when its inputs have
    arrived; every transfer that keeps something busy stands there once, and none else, starts when
    its tensor is made or later, and ends before its first reader starts, at most a period later;
    what keeps a resource busy shares it with nothing, in any period; the latency is right. What
    takes no time counts as a nanosecond.

    Raises
    ------
    VerificationError
        If a rule is broken; lists every violation.
    """
    if wrong := [*_violations(problem, schedule)]:
        raise VerificationError(f"the modulo schedule is wrong: {listed_sentences(wrong)}", wrong)


def _violations(problem: MappingProblem, schedule: ModuloSchedule) -> Iterator[str]:
    place, start = schedule.processor, schedule.start
    time = [max(1, ceil_ns(problem.time_s[v][p])) for v, p in enumerate(place)]
    end = [at + t for at, t in zip(start, time, strict=True)]
    busy: dict[int, list[Busy]] = {}
    for v, p in enumerate(place):
        if problem.time_s[v][p] == inf:
            yield f"operator {v} runs on processor {p}, which does not support it"
        busy.setdefault(p, []).append((f"operator {v}", start[v], time[v]))
    yield from _flow_violations(problem, schedule, end, busy)
    for resource, jobs in busy.items():
        yield from _overlaps(resource, jobs, schedule.period)
    if schedule.latency != max(end) - min(start):
        yield f"the latency is {schedule.latency}, and a frame takes {max(end) - min(start)}"


def _flow_violations(
    problem: MappingProblem,
    schedule: ModuloSchedule,
    end: Sequence[int],
    busy: dict[int, list[Busy]],
) -> Iterator[str]:
    """Yield what is wrong with the flows; add what keeps something busy."""
    place, transfers = schedule.processor, dict(schedule.moved)
    for i, flow in enumerate(problem.flows):
        maker = -1 if flow.producer is None else flow.producer
        for q in sorted({place[v] for v in flow.consumers}) if maker >= 0 else ():
            first = min(schedule.start[v] for v in flow.consumers if place[v] == q)
            delay = ceil_ns(flow.transfer_s[place[maker]][q])
            resource = problem.resource_of(place[maker], q)
            at = transfers.pop((i, q), None) if resource is not None and delay else None
            if resource is None or not delay:
                if first < end[maker] + delay:
                    yield f"flow {i} arrives on {q} at {end[maker] + delay}, and is read at {first}"
            elif at is None:
                yield f"flow {i} has no transfer to {q}"
            else:
                busy.setdefault(resource, []).append((f"flow {i} to {q}", at, delay))
                yield from _transfer_faults(schedule.period, i, (end[maker], at, at + delay, first))
    for route in transfers:
        yield f"the transfer {route} is not needed"


def _transfer_faults(period: int, flow: int, times: tuple[int, int, int, int]) -> Iterator[str]:
    ready, begin, end, first = times
    if not (ready <= begin and end <= first < begin + period):
        yield f"flow {flow}, made at {ready}, moves from {begin} to {end}, and is read at {first}"


def _overlaps(resource: int, jobs: list[Busy], period: int) -> Iterator[str]:
    for name, _, time in jobs:
        if time > period:
            yield f"{name} takes longer than the period"
    for (one, at, time), (other, begin, length) in combinations(jobs, 2):
        if (begin - at) % period < time or (at - begin) % period < length:
            yield f"{one} and {other} keep resource {resource} busy at the same time"
