"""Discrete-event replay: when each task of each frame starts and ends.

Every resource takes its tasks in their order. Nothing is chosen, so there is no queue of events:
time goes on to the next end of a running task, or to the next moment at which a waiting one has all
it needs. Times are whole picoseconds, and exact as long as tasks do not slow each other down. Where
they do, a task goes on at another rate whenever a resource becomes busy or idle: what is left of
its work is then rounded to the picosecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TypeAlias

from parapipe.mappings.event_graph import EventGraph

Picoseconds: TypeAlias = int
# Picoseconds of a task's work, or of a wait's delay, in a frame; asked frame after frame.
SampledTime: TypeAlias = Callable[[int, int], int]
# A task that runs, and the number of the one that runs it of those that take turns.
RunningTask: TypeAlias = tuple[int, int]
# How many times as long each of the tasks that run at the same time takes.
Slowdown: TypeAlias = Callable[[Sequence[RunningTask]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Admission:
    """How frames are admitted.

    Parameters
    ----------
    first
        Tasks that wait for a frame's arrival.
    interval_ps
        Picoseconds between frames, each admitted at the next whole one; None admits them as fast as
        they are taken.
    waiting
        Then so many frames are admitted that no task has begun.
    """

    first: frozenset[int]
    interval_ps: Fraction | int | None
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
    """A resource and its next task, or the one that runs until `end_ps` if that is known.

    Parameters
    ----------
    turn
        Its number among those that take turns.
    left_ps, since_ps
        Picoseconds alone that the task still took at a moment.
    """

    todo: Iterator[tuple[int, int]]
    turn: int
    next: tuple[int, int] | None
    end_ps: Picoseconds | None = None
    slowdown: float = 1.0
    left_ps: Picoseconds = 0
    since_ps: Picoseconds = 0

    def state(self, frame: int, now_ps: Picoseconds) -> tuple[float, ...]:
        """Return what it does, counted from a frame and a moment."""
        if self.next is None:
            return ()
        task, number = self.next[0], self.next[1] - frame
        if self.end_ps is None:
            return task, number
        return task, number, self.left_ps, now_ps - self.since_ps, self.slowdown


class Replay:
    """Frames on their way through a plan's tasks: what has started and ended at a moment.

    Parameters
    ----------
    work, delay
        Picoseconds of a task, and of the delay of one of the graph's waits, in a frame; as the
        graph has them if not given.
    slowdown
        If not given, tasks do not slow each other down.
    """

    def __init__(
        self,
        graph: EventGraph,
        frames: int,
        admission: Admission,
        *,
        work: SampledTime | None = None,
        delay: SampledTime | None = None,
        slowdown: Slowdown | None = None,
    ) -> None:
        tasks = range(len(graph.time_ps))
        self.graph, self.frames, self.admission = graph, frames, admission
        self.work = work or (lambda task, _: graph.time_ps[task])
        self.delay = delay or (lambda wait, _: graph.waits[wait][2])
        self.slowdown = slowdown
        self.changed = False
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
        self.fed_back: dict[int, list[tuple[int, int, int]]] = {}
        for u, v, delay_ps, count in graph.feedback:
            self.fed_back.setdefault(v, []).append((u, delay_ps, count))
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
        return _Resource(todo, number, next(todo, None))

    def advance(self) -> bool:
        """Go to the next moment at which something happens; return whether there is one left."""
        if self._start_ready_tasks() or self.changed:
            self._update_ends()
        if all(each.next is None for each in self.resources):
            return False
        self.now_ps = self._next_event_ps()
        self.changed = self._end_due_tasks()
        return True

    def run(self) -> ReplayTimes:
        """Go on to the end.

        Raises
        ------
        StuckError
            If tasks wait for each other in a circle, since a channel has too few slots.
        """
        while self.advance():
            pass
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
                each.left_ps, each.since_ps = self.work(task, frame), self.now_ps
                each.end_ps, each.slowdown = self.now_ps + each.left_ps, 1.0
                for wait in self.waits_for.get(task, ()):
                    del self.arrival_ps[wait][frame]
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
        for maker, delay_ps, frames in self.fed_back.get(task, ()):
            if frame >= frames:
                if frame - frames not in self.end_ps[maker]:
                    return None
                ready_ps = max(ready_ps, self.end_ps[maker][frame - frames] + delay_ps)
        if task in self.admission.first:
            admitted_ps = self._admitted_ps(frame)
            return None if admitted_ps is None else max(ready_ps, admitted_ps)
        return ready_ps

    def _admitted_ps(self, frame: int) -> Picoseconds | None:
        if self.admission.interval_ps is not None:
            return ceil(frame * self.admission.interval_ps)
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
        factors = self.slowdown([(each.next[0], each.turn) for each in running if each.next])
        for each, factor in zip(running, factors, strict=True):
            if factor != each.slowdown:
                done_ps = round((self.now_ps - each.since_ps) / each.slowdown)
                each.left_ps = max(0, each.left_ps - done_ps)
                each.since_ps, each.slowdown = self.now_ps, factor
                each.end_ps = self.now_ps + round(each.left_ps * factor)

    @property
    def in_full_rounds(self) -> bool:
        """Whether all resources do all that their orders say: nothing fills or empties."""
        lags = self.graph.lag
        return all(
            each.next is not None and max(lags) <= each.next[1] + lags[each.next[0]] < self.frames
            for each in self.resources
        )

    def state(self, frame: int) -> tuple[object, ...]:
        """Return all that decides what happens from now on, counted from now and from a frame.

        What has ended follows from where each resource is in its order; when a frame was begun or
        admitted in the past does not matter.
        """
        now_ps, admission = self.now_ps, self.admission
        resources = tuple(each.state(frame, now_ps) for each in self.resources)
        arrivals = tuple(
            tuple((n - frame, max(0, at - now_ps)) for n, at in sorted(some.items()))
            for some in self.arrival_ps
        )
        fed_back = tuple(
            (n - frame, max(0, end_ps + delay_ps - now_ps))
            for v, some in self.fed_back.items()
            for u, delay_ps, count in some
            for n, end_ps in self.end_ps[u].items()
            if n + count not in self.start_ps[v]
        )
        interval_ps = admission.interval_ps
        phase_ps = 0 if interval_ps is None else now_ps - frame * interval_ps
        return resources, arrivals, fed_back, phase_ps, self.changed


def _positions_by(table: Sequence[tuple[int, int, int]], key: int) -> dict[int, list[int]]:
    """Positions of the rows by one of their entries."""
    positions: dict[int, list[int]] = {}
    for position, row in enumerate(table):
        positions.setdefault(row[key], []).append(position)
    return positions
