"""The independent verifier: nobody sees a schedule that it has not read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from math import isfinite, ulp

from parapipe.errors import VerificationError
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.verify_transfers import transfer_violations


def verify(problem: MappingProblem, schedule: Schedule) -> None:
    """Check a schedule against its problem; return if every rule holds.

    The rules: every operator has one processor, which supports it; it runs for the time that the
    processor needs; it starts at 0 or later; a processor runs one operator at a time; an operator
    starts when its inputs have arrived, a tensor made on p or at home on p arriving on q
    `transfer_s[p][q]` later; every transfer that occupies a resource stands there once, and none
    else, lasts as long, begins when the tensor is made or later, ends before its consumers start,
    and shares its resource with no operator and no other transfer; all numbers are finite; a
    certificate claims no bound above its objective, nor above the makespan if it speaks of that.

    Times are sums of doubles, and different orders of summation round differently: comparisons
    allow one unit in the last place of the largest number involved for each operator, far below a
    picosecond in practice.

    Raises
    ------
    VerificationError
        If a rule is broken; lists every violation.
    """
    counts = {len(schedule.processor), len(schedule.start_s), len(schedule.end_s)}
    if counts != {problem.operators}:
        found = [
            (
                f"it gives {len(schedule.processor)} processors, {len(schedule.start_s)} starts "
                f"and {len(schedule.end_s)} ends for {problem.operators} operators"
            )
        ]
    else:
        tolerance_s = _tolerance_s(problem, schedule)
        reasons = {v: _malformed(problem, schedule, v) for v in range(problem.operators)}
        malformed = {v: reason for v, reason in reasons.items() if reason}
        sound = frozenset(range(problem.operators)) - malformed.keys()
        found = [
            *malformed.values(),
            *_durations(problem, schedule, sound, tolerance_s),
            *_overlaps(schedule, sound, tolerance_s),
            *_precedence(problem, schedule, sound, tolerance_s),
            *transfer_violations(problem, schedule, sound, tolerance_s),
            *_certificate(schedule, not malformed, tolerance_s),
        ]
    if found:
        raise VerificationError(f"the schedule is wrong: {'; '.join(found)}", found)


def _tolerance_s(problem: MappingProblem, schedule: Schedule) -> float:
    times = chain(
        schedule.start_s,
        schedule.end_s,
        (t for flow in problem.flows for row in flow.transfer_s for t in row),
        (t for moved in schedule.transfers for t in (moved.start_s, moved.end_s)),
    )
    largest = max((abs(t) for t in times if isfinite(t)), default=0.0)
    return (problem.operators + len(schedule.transfers) + 2) * ulp(largest)


def _malformed(problem: MappingProblem, schedule: Schedule, v: int) -> str | None:
    """Return why nothing else can be said of operator v, if so."""
    p, start_s, end_s = schedule.processor[v], schedule.start_s[v], schedule.end_s[v]
    if not 0 <= p < problem.processors:
        return f"operator {v} runs on processor {p}, and there are {problem.processors}"
    if not isfinite(problem.time_s[v][p]):
        return f"operator {v} runs on processor {p}, which does not support it"
    if not (isfinite(start_s) and isfinite(end_s)):
        return f"operator {v} runs from {start_s} s to {end_s} s, which are not both finite"
    return None


def _durations(
    problem: MappingProblem, schedule: Schedule, sound: frozenset[int], tolerance_s: float
) -> Iterator[str]:
    for v in sorted(sound):
        start_s, end_s = schedule.start_s[v], schedule.end_s[v]
        needed_s = problem.time_s[v][schedule.processor[v]]
        if start_s < -tolerance_s:
            yield f"operator {v} starts at {start_s:.9g} s, before 0"
        if abs(end_s - start_s - needed_s) > tolerance_s:
            yield (
                f"operator {v} runs for {end_s - start_s:.9g} s where processor "
                f"{schedule.processor[v]} needs {needed_s:.9g} s"
            )


def _overlaps(schedule: Schedule, sound: frozenset[int], tolerance_s: float) -> Iterator[str]:
    last: dict[int, int] = {}
    for v in sorted(sound, key=lambda v: (schedule.start_s[v], schedule.end_s[v])):
        p = schedule.processor[v]
        if p in last and schedule.start_s[v] < schedule.end_s[last[p]] - tolerance_s:
            yield (
                f"operator {v} starts at {schedule.start_s[v]:.9g} s on processor {p}, which runs "
                f"operator {last[p]} until {schedule.end_s[last[p]]:.9g} s"
            )
        if p not in last or schedule.end_s[v] > schedule.end_s[last[p]]:
            last[p] = v


def _precedence(
    problem: MappingProblem, schedule: Schedule, sound: frozenset[int], tolerance_s: float
) -> Iterator[str]:
    for flow in problem.flows:
        if flow.producer is not None and flow.producer not in sound:
            continue
        if flow.producer is not None:
            origin, made_s = schedule.processor[flow.producer], schedule.end_s[flow.producer]
            source = f"the output of operator {flow.producer}"
        elif flow.home is not None:
            origin, made_s = flow.home, 0.0
            source = f"a tensor at home on processor {flow.home}"
        for v in sorted(sound.intersection(flow.consumers)):
            p = schedule.processor[v]
            arrival_s = made_s + flow.transfer_s[origin][p]
            if schedule.start_s[v] < arrival_s - tolerance_s:
                yield (
                    f"operator {v} starts at {schedule.start_s[v]:.9g} s, and {source} arrives on "
                    f"processor {p} at {arrival_s:.9g} s"
                )


def _certificate(schedule: Schedule, timed: bool, tolerance_s: float) -> Iterator[str]:
    claim = schedule.certificate
    if not (isfinite(claim.objective_s) and isfinite(claim.bound_s) and isfinite(claim.wall_s)):
        yield (
            f"its certificate's objective {claim.objective_s} s, bound {claim.bound_s} s and wall "
            f"time {claim.wall_s} s are not all finite"
        )
        return
    if claim.bound_s > claim.objective_s + tolerance_s:
        yield f"its bound {claim.bound_s:.9g} s lies above its objective {claim.objective_s:.9g} s"
    if timed and claim.proves == "makespan" and claim.bound_s > schedule.makespan_s + tolerance_s:
        yield f"its makespan {schedule.makespan_s:.9g} s lies below its bound {claim.bound_s:.9g} s"
