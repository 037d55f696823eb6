"""The independent check of modulo schedules: nobody sees one that it has not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf

from parapipe.errors import VerificationError
from parapipe.files.mistakes import listed_sentences
from parapipe.modulo.cyclic_problem import ModuloSchedule, whole
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
    if found := [*_violations(problem, schedule)]:
        raise VerificationError(f"the modulo schedule is wrong: {listed_sentences(found)}", found)


def _violations(problem: MappingProblem, schedule: ModuloSchedule) -> Iterator[str]:
    place, start = schedule.processor, schedule.start
    time = [max(1, whole(problem.time_s[v][p])) for v, p in enumerate(place)]
    end = [at + t for at, t in zip(start, time, strict=True)]
    busy: dict[int, list[Busy]] = {}
    for v, p in enumerate(place):
        if problem.time_s[v][p] == inf:
            yield f"operator {v} runs on processor {p}, which does not support it"
        busy.setdefault(p, []).append((f"operator {v}", start[v], time[v]))
    yield from _flows(problem, schedule, end, busy)
    for resource, works in busy.items():
        yield from _meetings(resource, works, schedule.period)
    if schedule.latency != max(end) - min(start):
        yield f"the latency is {schedule.latency}, and a frame takes {max(end) - min(start)}"


def _flows(
    problem: MappingProblem,
    schedule: ModuloSchedule,
    end: Sequence[int],
    busy: dict[int, list[Busy]],
) -> Iterator[str]:
    """Yield what is wrong with the flows; add what keeps something busy."""
    place, moved = schedule.processor, dict(schedule.moved)
    for i, flow in enumerate(problem.flows):
        made = -1 if flow.producer is None else flow.producer
        for q in sorted({place[v] for v in flow.consumers}) if made >= 0 else ():
            first = min(schedule.start[v] for v in flow.consumers if place[v] == q)
            delay = whole(flow.transfer_s[place[made]][q])
            resource = problem.resource_of(place[made], q)
            at = moved.pop((i, q), None) if resource is not None and delay else None
            if resource is None or not delay:
                if first < end[made] + delay:
                    yield f"flow {i} arrives on {q} at {end[made] + delay}, and is read at {first}"
            elif at is None:
                yield f"flow {i} has no transfer to {q}"
            else:
                busy.setdefault(resource, []).append((f"flow {i} to {q}", at, delay))
                yield from _moving(schedule.period, i, (end[made], at, at + delay, first))
    for route in moved:
        yield f"the transfer {route} is not needed"


def _moving(period: int, flow: int, times: tuple[int, int, int, int]) -> Iterator[str]:
    made, begin, end, first = times
    if not (made <= begin and end <= first < begin + period):
        yield f"flow {flow}, made at {made}, moves from {begin} to {end}, and is read at {first}"


def _meetings(resource: int, works: list[Busy], period: int) -> Iterator[str]:
    for name, _, time in works:
        if time > period:
            yield f"{name} takes longer than the period"
    for (one, at, time), (other, begin, length) in combinations(works, 2):
        if (begin - at) % period < time or (at - begin) % period < length:
            yield f"{one} and {other} keep resource {resource} busy at the same time"
