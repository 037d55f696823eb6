"""Problems and schedules with nothing between them, as one, and one as several.

A pattern's operators are those of the first model's frames, one frame after the other, then those
of the next model's. No flow joins two frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parapipe.mapping.interleaved.cyclic import ModuloSchedule, whole
from parapipe.mapping.problem import Flow, MappingProblem


def part(problem: MappingProblem, begin: int, end: int) -> MappingProblem:
    """Return a range of operators that no flow joins to others, as a problem of its own."""
    flows = tuple(
        _renumbered(flow, -begin)
        for flow in problem.flows
        if begin <= (flow.consumers[0] if flow.producer is None else flow.producer) < end
    )
    return replace(
        problem,
        time_s=problem.time_s[begin:end],
        flows=flows,
        structure=tuple(range(end - begin)),
    )


def joined_problem(problems: Sequence[MappingProblem], counts: Sequence[int]) -> MappingProblem:
    """Return so many frames of each problem as one problem; all are of the same processors."""
    rows: list[tuple[float, ...]] = []
    flows: list[Flow] = []
    for problem, count in zip(problems, counts, strict=True):
        for _ in range(count):
            flows += (_renumbered(flow, len(rows)) for flow in problem.flows)
            rows += problem.time_s
    return replace(
        problems[0], time_s=tuple(rows), flows=tuple(flows), structure=tuple(range(len(rows)))
    )


def _renumbered(flow: Flow, by: int) -> Flow:
    return replace(
        flow,
        producer=None if flow.producer is None else flow.producer + by,
        consumers=tuple(v + by for v in flow.consumers),
    )


def joined_schedule(
    parts: Sequence[tuple[MappingProblem, ModuloSchedule]], period: int
) -> ModuloSchedule:
    """Return schedules of problems as one schedule of a period, in nanoseconds."""
    place: list[int] = []
    start: list[int] = []
    end: list[int] = []
    moved: list[tuple[tuple[int, int], int]] = []
    flows = 0
    for problem, each in parts:
        place += each.processor
        start += each.start
        end += (
            at + max(1, whole(row[p]))
            for row, at, p in zip(problem.time_s, each.start, each.processor, strict=True)
        )
        moved += (((flow + flows, q), at) for (flow, q), at in each.moved)
        flows += len(problem.flows)
    return ModuloSchedule(period, tuple(place), tuple(start), tuple(moved), max(end) - min(start))


def repeated(
    problems: Sequence[MappingProblem],
    counts: Sequence[int],
    schedule: ModuloSchedule,
    times: int,
) -> ModuloSchedule:
    """Return the schedule of a pattern, several times one after the other, as of a longer one.

    Parameters
    ----------
    problems, counts
        A frame of each model, and how many of them the schedule has.
    """
    parts: list[tuple[MappingProblem, ModuloSchedule]] = []
    begin = flows = 0
    for problem, count in zip(problems, counts, strict=True):
        frames = []
        for _ in range(count):
            frames.append(_part_of(schedule, problem, begin, flows))
            begin += problem.operators
            flows += len(problem.flows)
        parts += (
            (problem, _later(frame, turn * schedule.period))
            for turn in range(times)
            for frame in frames
        )
    return joined_schedule(parts, times * schedule.period)


def _part_of(
    schedule: ModuloSchedule, problem: MappingProblem, begin: int, flows: int
) -> ModuloSchedule:
    """Return what a schedule says of one frame, given its first operator and its first flow."""
    end, beyond = begin + problem.operators, flows + len(problem.flows)
    return replace(
        schedule,
        processor=schedule.processor[begin:end],
        start=schedule.start[begin:end],
        moved=tuple(
            ((flow - flows, q), at) for (flow, q), at in schedule.moved if flows <= flow < beyond
        ),
    )


def _later(schedule: ModuloSchedule, by: int) -> ModuloSchedule:
    return replace(
        schedule,
        start=tuple(at + by for at in schedule.start),
        moved=tuple((route, at + by) for route, at in schedule.moved),
    )
