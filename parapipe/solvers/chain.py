"""Operators one after the other: the least time to run them, by a shortest path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from parapipe.solvers.paths import arrival_s, inputs_of
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import Timed, replay, time_placement
from parapipe.solvers.schedule import Certificate, Schedule


@dataclass(frozen=True, slots=True)
class Run:
    """Operators of a series between two parallel parts, placed.

    Parameters
    ----------
    processor
        Of each of the operators, in the order in which they run.
    end_s
        Second at which the last of them ends.
    """

    operators: tuple[int, ...]
    processor: tuple[int, ...]
    end_s: float


def is_chain(problem: MappingProblem, run: Sequence[int]) -> bool:
    """Whether each operator reads its predecessor in the run and none further back."""
    place = {v: i for i, v in enumerate(run)}
    pairs = {
        (place[flow.producer], place[v])
        for flow in problem.flows
        if flow.producer in place
        for v in flow.consumers
        if v in place
    }
    return pairs == {(i, i + 1) for i in range(len(run) - 1)}


def only_schedule(problem: MappingProblem, seed: int) -> Schedule | None:
    """Return the schedule of a chain that one processor alone may run; None for other problems.

    Each operator starts when its inputs are there, which no schedule can beat. It is what every
    mapper answers, without one.

    Parameters
    ----------
    seed
        Stands in the certificate.
    """
    first = problem.time_s[0]
    able = [p for p, time_s in enumerate(first) if time_s < inf]
    if len(able) != 1:
        return None
    count, processor = problem.operators, able[0]
    if count == 1 and not problem.transfer_resource:
        start_s = arrival_s(inputs_of(problem)[0], processor, (), ())
        times = Timed((start_s,), (start_s + first[processor],))
    elif count == 1:
        times = time_placement(problem, (processor,), (0,))
    elif problem.transfer_resource or not _only_on(problem, processor):
        return None
    else:
        times = replay(problem, (processor,) * count, range(count))
    makespan_s = times.makespan_s
    certificate = Certificate("makespan", makespan_s, makespan_s, True, 0.0, seed, "shortest path")
    return Schedule((processor,) * count, times.start_s, times.end_s, certificate, times.transfers)


def _only_on(problem: MappingProblem, processor: int) -> bool:
    others = range(problem.processors)
    return all(row[p] == inf for row in problem.time_s for p in others if p != processor) and (
        is_chain(problem, range(problem.operators))
    )


def place_run(
    problem: MappingProblem, run: Sequence[int], placed: Mapping[int, int], *, begin_s: float = 0.0
) -> tuple[Run, ...]:
    """Choose processors for operators that run one after the other, so that they end first.

    A label per processor holds the earliest end of the operators so far with the last of them
    there (Bellman's shortest path, in the order of the run). For a chain it is exact, transfers
    and the arrival of outside tensors included. If an operator reads one further back, its tensor
    counts as if it came from the predecessor's processor.

    Parameters
    ----------
    placed
        Processors of operators placed before, also of some in the run. What they send to the run
        is taken to start at `begin_s`.
    begin_s
        Second before which the run cannot begin.

    Returns
    -------
    tuple of Run
        The best for each processor of the last operator, the earliest end first; to that end
        counts the longest transfer to placed operators behind the run.
    """
    inputs = inputs_of(problem)
    inside = frozenset(run)
    ends: dict[int, float] = {}
    origins: list[dict[int, int]] = []
    for v in run:
        local = [flow for flow in inputs[v] if flow.producer in inside]
        fetched = [flow for flow in inputs[v] if flow.producer not in inside]
        previous, ends = ends, {}
        origin: dict[int, int] = {}
        for p in [placed[v]] if v in placed else range(problem.processors):
            if not isfinite(problem.time_s[v][p]):
                continue
            arrived_s = _last_arrival_s(fetched, p, placed, begin_s)
            if origins:
                reached = {q: end_s + _transfer_s(local, q, p) for q, end_s in previous.items()}
                origin[p] = min(reached, key=lambda q: (reached[q], q != p, q))
                arrived_s = max(arrived_s, reached[origin[p]])
            ends[p] = arrived_s + problem.time_s[v][p]
        origins.append(origin)
    order = sorted(ends, key=lambda p: (ends[p] + _delivery_s(problem, inside, p, placed), p))
    return tuple(Run(tuple(run), _walk_back(origins, last), ends[last]) for last in order)


def _walk_back(origins: Sequence[Mapping[int, int]], last: int) -> tuple[int, ...]:
    """Walk back from the last operator's processor to the first's."""
    processor = [last]
    for origin in reversed(origins[1:]):
        processor.append(origin[processor[-1]])
    return tuple(reversed(processor))


def _transfer_s(flows: Iterable[Flow], source: int, target: int) -> float:
    return max((flow.transfer_s[source][target] for flow in flows), default=0.0)


def _last_arrival_s(
    flows: Iterable[Flow], target: int, placed: Mapping[int, int], begin_s: float
) -> float:
    """Second at which the last tensor from outside the run has arrived, at least `begin_s`."""
    latest_s = begin_s
    for flow in flows:
        if flow.location is not None:
            latest_s = max(latest_s, flow.transfer_s[flow.location][target])
        elif flow.producer is not None and flow.producer in placed:
            latest_s = max(latest_s, begin_s + flow.transfer_s[placed[flow.producer]][target])
    return latest_s


def _delivery_s(
    problem: MappingProblem, inside: frozenset[int], source: int, placed: Mapping[int, int]
) -> float:
    """Seconds of the longest transfer to placed operators outside the run."""
    return max(
        (
            flow.transfer_s[source][placed[v]]
            for flow in problem.flows
            if flow.producer in inside
            for v in flow.consumers
            if v in placed and v not in inside
        ),
        default=0.0,
    )
