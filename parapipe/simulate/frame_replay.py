"""Discrete-event replay: when each task of each frame starts and ends, until it repeats.

Every resource takes its tasks in their order. Nothing is chosen, so there is no queue of events:
time goes on to the next end of a running task, or to the next moment at which a waiting one has all
it needs. Times are whole picoseconds and exact as long as tasks do not slow each other down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from parapipe.mappings.event_graph import EventGraph

Picoseconds: TypeAlias = int | float
# Picoseconds of a task's work, or of a wait's delay, in a frame; asked frame after frame.
SampledTime: TypeAlias = Callable[[int, int], int]
# How many times longer each of the tasks that run at the same time takes.
Slowdown: TypeAlias = Callable[[Sequence[int]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Admission:
    """How frames are admitted.

    Parameters
    ----------
    first
        Tasks that wait for a frame's arrival.
    interval_ps
        Picoseconds between frames; None admits them as fast as they are taken.
    waiting
        Then so many frames are admitted that no task has begun.
    """

    first: frozenset[int]
    interval_ps: int | None
    waiting: int


@dataclass(frozen=True, slots=True)
class ReplayTimes:
    """Picoseconds by task and frame, and by frame when it was admitted."""

    start_ps: Sequence[Sequence[Picoseconds]]
    end_ps: Sequence[Sequence[Picoseconds]]
    admitted_ps: Sequence[Picoseconds]


class StuckError(Exception):
    """Tasks wait for each other in a circle; `waiting` has the task and frame of each resource."""

    def __init__(self, waiting: Sequence[tuple[int, int]]) -> None:
        super().__init__(waiting)
        self.waiting = waiting


@dataclass(slots=True)
class _Resource:
    """A resource and its next task, or the one that runs until `end_ps` if that is known."""

    todo: Iterator[tuple[int, int]]
    next: tuple[int, int] | None
    end_ps: Picoseconds | None = None
    slowdown: float = 1.0


def replay(
    graph: EventGraph,
    frames: int,
    admission: Admission,
    *,
    work: SampledTime | None = None,
    delay: SampledTime | None = None,
    slowdown: Slowdown | None = None,
) -> ReplayTimes:
    """Send frames through a plan's tasks.

    Parameters
    ----------
    work, delay
        Picoseconds of a task, and of the delay of one of the graph's waits, in a frame; as the
        graph has them if not given.
    slowdown
        If not given, tasks do not slow each other down.

    Raises
    ------
    StuckError
        If tasks wait for each other in a circle, since a channel has too few slots.
    """
    state = _Replay(graph, frames, admission, work=work, delay=delay, slowdown=slowdown)
    return state.run()


class _Replay:
    """The state at a moment: what has started and ended, and what each resource does."""

    def __init__(
        self,
        graph: EventGraph,
        frames: int,
        admission: Admission,
        *,
        work: SampledTime | None,
        delay: SampledTime | None,
        slowdown: Slowdown | None,
    ) -> None:
        tasks = range(len(graph.time_ps))
        self.graph, self.frames, self.admission = graph, frames, admission
        self.work = work or (lambda task, _: graph.time_ps[task])
        self.delay = delay or (lambda wait, _: graph.waits[wait][2])
        self.slowdown = slowdown
        self.now_ps: Picoseconds = 0
        # By frame: where processors take turns, frames may not start and end in order
        self.start_ps: list[dict[int, Picoseconds]] = [{} for _ in tasks]
        self.end_ps: list[dict[int, Picoseconds]] = [{} for _ in tasks]
        self.begun_ps: dict[int, Picoseconds] = {}
        self.arrival_ps: list[dict[int, Picoseconds]] = [{} for _ in graph.waits]
        self.waits_for = _positions_by(graph.waits, key=1)
        self.sends = _positions_by(graph.waits, key=0)
        self.room: Mapping[int, list[tuple[int, int]]] = {
            u: [graph.channels[i][1:] for i in some]
            for u, some in _positions_by(graph.channels, key=0).items()
        }
        self.resources = [
            self._make_resource(order, number, count)
            for order, count in graph.rows
            for number in range(count)
        ]

    def _make_resource(self, order: Sequence[int], number: int, count: int) -> _Resource:
        """Return one of those that do what an order says: every count-th frame from its number."""
        lags = self.graph.lag
        todo = (
            (v, r - lags[v])
            for r in range(self.frames + max(lags[v] for v in order))
            for v in order
            if 0 <= r - lags[v] < self.frames and (r - lags[v]) % count == number
        )
        return _Resource(todo, next(todo, None))

    def run(self) -> ReplayTimes:
        while any(each.next is not None for each in self.resources):
            if self._start_ready_tasks():
                self._update_ends()
            self.now_ps = self._next_event_ps()
            if self._end_due_tasks():
                self._update_ends()
        admitted = [self._admitted_ps(n) for n in range(self.frames)]
        every = range(self.frames)
        return ReplayTimes(
            [[of_task[n] for n in every] for of_task in self.start_ps],
            [[of_task[n] for n in every] for of_task in self.end_ps],
            [at for at in admitted if at is not None],
        )

    def _start_ready_tasks(self) -> bool:
        """Start every waiting task that has all it needs."""
        started = False
        for each in self.resources:
            if each.next is None or each.end_ps is not None:
                continue
            ready_ps = self._ready_ps(*each.next)
            if ready_ps is not None and ready_ps <= self.now_ps:
                task, frame = each.next
                self.start_ps[task][frame] = self.now_ps
                self.begun_ps.setdefault(frame, self.now_ps)
                each.end_ps = self.now_ps + self.work(task, frame)
                each.slowdown = 1.0
                started = True
        return started

    def _ready_ps(self, task: int, frame: int) -> Picoseconds | None:
        """Return when a task has all it needs; None if that is not known yet."""
        ready_ps: Picoseconds = 0
        for wait in self.waits_for.get(task, ()):
            if frame not in self.arrival_ps[wait]:
                return None
            ready_ps = max(ready_ps, self.arrival_ps[wait][frame])
        for reader, slots in self.room.get(task, ()):
            if frame >= slots and frame - slots not in self.end_ps[reader]:
                return None
        if task in self.admission.first:
            admitted_ps = self._admitted_ps(frame)
            return None if admitted_ps is None else max(ready_ps, admitted_ps)
        return ready_ps

    def _admitted_ps(self, frame: int) -> Picoseconds | None:
        if self.admission.interval_ps is not None:
            return frame * self.admission.interval_ps
        before = frame - self.admission.waiting
        return 0 if before < 0 else self.begun_ps.get(before)

    def _next_event_ps(self) -> Picoseconds:
        """Return when the next thing happens."""
        moments = []
        for each in self.resources:
            if each.end_ps is not None:
                moments.append(each.end_ps)
            elif each.next is not None and (ready_ps := self._ready_ps(*each.next)) is not None:
                moments.append(max(ready_ps, self.now_ps))
        if not moments:
            raise StuckError([each.next for each in self.resources if each.next is not None])
        return min(moments)

    def _end_due_tasks(self) -> bool:
        """End every task whose time has come."""
        ended = False
        for each in self.resources:
            if each.next is None or each.end_ps is None or each.end_ps > self.now_ps:
                continue
            task, frame = each.next
            self.end_ps[task][frame] = each.end_ps
            for wait in self.sends.get(task, ()):
                self.arrival_ps[wait][frame] = each.end_ps + self.delay(wait, frame)
            each.end_ps, each.next = None, next(each.todo, None)
            ended = True
        return ended

    def _update_ends(self) -> None:
        """Reckon anew when running tasks end, now that others run beside them."""
        if self.slowdown is None:
            return
        running = [each for each in self.resources if each.end_ps is not None]
        factors = self.slowdown([each.next[0] for each in running if each.next is not None])
        for each, factor in zip(running, factors, strict=True):
            assert each.end_ps is not None
            left_ps = (each.end_ps - self.now_ps) / each.slowdown
            each.end_ps = self.now_ps + left_ps * factor
            each.slowdown = factor


def _positions_by(table: Sequence[tuple[int, int, int]], key: int) -> dict[int, list[int]]:
    """Positions of the rows by one of their entries."""
    positions: dict[int, list[int]] = {}
    for position, row in enumerate(table):
        positions.setdefault(row[key], []).append(position)
    return positions


@dataclass(frozen=True, slots=True)
class Steady:
    """How frames follow each other for ever.

    Parameters
    ----------
    period_ps
        Picoseconds between frames.
    frames
        After so many frames all waits recur.
    since
        Number of the frame from which on they do.
    """

    period_ps: Fraction
    frames: int
    since: int


def steady(graph: EventGraph, start_ps: Sequence[Sequence[Picoseconds]]) -> Steady | None:
    """Return the state that a replay has reached, or None if it has not shown to recur yet.

    When a task starts is decided by what was started in the last few rounds. So if the starts of
    that many rounds occur again, each later by the same time, all that follows occurs again. Parts
    of the network that no tensor joins go at their own paces; the slowest is that of the frames.

    Parameters
    ----------
    start_ps
        By task and frame, of a saturated replay without jitter and contention.
    """
    import networkx as nx

    joined: nx.Graph[int] = nx.Graph()
    joined.add_nodes_from(range(len(graph.time_ps)))
    for resource in graph.orders:
        nx.add_path(joined, resource)
    joined.add_edges_from((u, v) for u, v, _ in graph.waits)
    parts = nx.connected_components(joined)
    part_states = [_steady_state_of_part(graph, sorted(part), start_ps) for part in parts]
    steady_parts = [each for each in part_states if each is not None]
    if len(steady_parts) < len(part_states):
        return None
    return max(steady_parts, key=lambda each: (each.period_ps, each.since))


def _steady_state_of_part(
    graph: EventGraph, part: Sequence[int], start_ps: Sequence[Sequence[Picoseconds]]
) -> Steady | None:
    lags = {v: graph.lag[v] for v in part}
    latest = max(lags.values())
    behind = [k + lags[u] - lags[v] for u, v, k in graph.channels if u in lags]
    ahead = [lags[v] - lags[u] for u, v, _ in graph.waits if v in lags]
    replicas = [count for order, count in graph.rows if order[0] in lags]
    memory = max([1, *behind, *ahead, *replicas])  # rounds that a start can depend on
    rounds = [
        [start_ps[v][r - lags[v]] for v in part]
        for r in range(latest, min(len(start_ps[v]) + lags[v] for v in part))
    ]
    seen: dict[tuple[Picoseconds, ...], int] = {}
    for now in range(memory, len(rounds) + 1):
        origin = rounds[now - 1][0]
        state = tuple(at - origin for row in rounds[now - memory : now] for at in row)
        before = seen.setdefault(state, now)
        if before < now:
            took = Fraction(origin) - Fraction(rounds[before - 1][0])
            return Steady(took / (now - before), now - before, before - 1)
    return None


def slowest_pace(graph: EventGraph, start_ps: Sequence[Sequence[Picoseconds]]) -> Fraction | None:
    """Return picoseconds from frame to frame of the slowest task; None if no two rounds show them.

    Tasks may differ in their paces for thousands of frames, while a queue fills, or what the first
    frames left in one is used up. In the end all go at the pace of the slowest. It is that of the
    second half of the rounds in which every task runs: not while the pipeline empties.

    Parameters
    ----------
    start_ps
        By task and frame, of a saturated replay without jitter and contention.
    """
    latest, frames = max(graph.lag), len(start_ps[0])
    rounds = range(latest + (frames - latest) // 2, frames)
    if len(rounds) < 2:
        return None
    starts = ([row[r - lag] for r in rounds] for row, lag in zip(start_ps, graph.lag, strict=True))
    return max(map(_mean_step_ps, starts))


def _mean_step_ps(starts_ps: Sequence[Picoseconds]) -> Fraction:
    """Return the mean step, over a whole number of those in which steps recur if they do."""
    steps = [later - one for one, later in pairwise(starts_ps)]
    every = _recurrence_length(steps)
    if 2 * every > len(steps):
        every = len(steps)
    return Fraction(starts_ps[-1] - starts_ps[-1 - every]) / every


def _recurrence_length(steps: Sequence[Picoseconds]) -> int:
    """Return the least distance at which all steps are equal (Knuth, Morris and Pratt, 1977)."""
    border = [0] * len(steps)
    length = 0
    for i in range(1, len(steps)):
        while length and steps[i] != steps[length]:
            length = border[length - 1]
        length += steps[i] == steps[length]
        border[i] = length
    return len(steps) - border[-1]
