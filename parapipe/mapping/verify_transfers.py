"""The verifier's rules on transfers that keep a resource busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite

from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Schedule, Transfer

# start, end, what it is called
_Busy = tuple[float, float, str]


def transfer_violations(
    problem: MappingProblem, schedule: Schedule, sound: frozenset[int], tolerance_s: float
) -> Iterator[str]:
    """Yield what is wrong with the transfers of a schedule.

    Parameters
    ----------
    sound
        Operators on a processor that supports them, with finite times; of others nothing is said.
    """
    needed = set(_needed(problem, schedule, sound))
    given = Counter((moved.flow, moved.target) for moved in schedule.transfers)
    if len(sound) == problem.operators:
        for f, q in sorted(given.keys() - needed):
            yield f"it moves flow {f} to processor {q}, which is not needed or occupies nothing"
    for f, q in sorted(needed):
        if given[f, q] != 1:
            yield f"flow {f} must be moved to processor {q} once, and is {given[f, q]} times"
    known = [moved for moved in schedule.transfers if (moved.flow, moved.target) in needed]
    finite = [moved for moved in known if isfinite(moved.start_s) and isfinite(moved.end_s)]
    for moved in known:
        if moved in finite:
            yield from _timing(problem, schedule, moved, sound, tolerance_s)
        else:
            yield f"{_called(moved)} goes from {moved.start_s} s to {moved.end_s} s, not finite"
    yield from _overlaps(problem, schedule, finite, sound, tolerance_s)


def _needed(
    problem: MappingProblem, schedule: Schedule, sound: frozenset[int]
) -> Iterator[tuple[int, int]]:
    for f, flow in enumerate(problem.flows):
        if flow.producer is None or flow.producer in sound:
            source = _source(problem, schedule, f)
            for v in sound.intersection(flow.consumers):
                q = schedule.processor[v]
                if q != source and problem.carrier and problem.carrier[source][q] is not None:
                    yield f, q


def _source(problem: MappingProblem, schedule: Schedule, f: int) -> int:
    flow = problem.flows[f]
    if flow.producer is not None:
        return schedule.processor[flow.producer]
    return -1 if flow.home is None else flow.home


def _called(moved: Transfer) -> str:
    return f"the transfer of flow {moved.flow} to processor {moved.target}"


def _timing(
    problem: MappingProblem,
    schedule: Schedule,
    moved: Transfer,
    sound: frozenset[int],
    tolerance_s: float,
) -> Iterator[str]:
    flow = problem.flows[moved.flow]
    needed_s = flow.transfer_s[_source(problem, schedule, moved.flow)][moved.target]
    if abs(moved.end_s - moved.start_s - needed_s) > tolerance_s:
        lasts_s = moved.end_s - moved.start_s
        yield f"{_called(moved)} takes {lasts_s:.9g} s where it needs {needed_s:.9g} s"
    made_s = 0.0 if flow.producer is None else schedule.end_s[flow.producer]
    if moved.start_s < made_s - tolerance_s:
        yield (
            f"{_called(moved)} starts at {moved.start_s:.9g} s, and the tensor is made at "
            f"{made_s:.9g} s"
        )
    for v in sorted(sound.intersection(flow.consumers)):
        if (
            schedule.processor[v] == moved.target
            and schedule.start_s[v] < moved.end_s - tolerance_s
        ):
            yield (
                f"operator {v} starts at {schedule.start_s[v]:.9g} s, and {_called(moved)} ends "
                f"at {moved.end_s:.9g} s"
            )


def _overlaps(
    problem: MappingProblem,
    schedule: Schedule,
    transfers: list[Transfer],
    sound: frozenset[int],
    tolerance_s: float,
) -> Iterator[str]:
    """Compare transfers with all else on their resource; operators among themselves do not count.

    Of two transfers of one resource, and of an operator and a transfer, one has to end first.
    """
    carried: dict[int, list[_Busy]] = {}
    for moved in transfers:
        source = _source(problem, schedule, moved.flow)
        resource = problem.carrier[source][moved.target]
        assert resource is not None
        carried.setdefault(resource, []).append((moved.start_s, moved.end_s, _called(moved)))
    for resource, busy in sorted(carried.items()):
        operators = [
            (schedule.start_s[v], schedule.end_s[v], f"operator {v}")
            for v in sound
            if schedule.processor[v] == resource
        ]
        for i, one in enumerate(busy):
            for other in (*busy[i + 1 :], *operators):
                overlap_s = min(one[1], other[1]) - max(one[0], other[0])
                inside = max(one[0], other[0]) < min(one[1], other[1])
                if inside and overlap_s > tolerance_s:
                    yield f"{one[2]} and {other[2]} are on resource {resource} at the same time"
