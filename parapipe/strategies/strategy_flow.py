"""Frames on their way through segments, each run by the processor that a strategy gives it to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from math import inf
from queue import Empty
from threading import TIMEOUT_MAX, get_ident
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from parapipe.errors import StrategyError
from parapipe.runtime.arena import SOURCE
from parapipe.runtime.flow import Abandoned, Doing, Flow
from parapipe.runtime.folder import Folder
from parapipe.runtime.segment_waits import SINK
from parapipe.strategies.engine import Engine
from parapipe.strategies.failures import end_thread, unusable_sentence
from parapipe.strategies.folder_work import Slices
from parapipe.strategies.work import Job, Replace, Running


class Piece(NamedTuple):
    """A task of a frame, or of neighbouring micro-batches of it that are run as one.

    Parameters
    ----------
    size
        How much of the batch that is.
    into
        Of a split frame: by name, what it is to write to.
    """

    task: int
    frame: int
    size: int
    into: Mapping[str, Any] | None


class Assignment(NamedTuple):
    """What a processor is to run: pieces in this order, and what they read that is there."""

    pieces: tuple[Piece, ...]
    inputs: dict[str, Any]
    replace: Replace | None


ANSWER_S = 1.0
"""So long the end of a run waits for a strategy that is being asked."""

Outputs: TypeAlias = Sequence[tuple[Piece, Mapping[str, Any]]]


class StrategyFlow(Flow):
    """As `Flow`, with an engine that says who runs what.

    A processor's thread asks the strategy when it has ended a segment, or is woken for that, and
    wakes those that have been given something.

    Parameters
    ----------
    engine
        Its work is that of the folder.
    slices
        Which part of every tensor belongs to a micro-batch.
    """

    def __init__(
        self, folder: Folder, queue: int, remembered: int, engine: Engine, slices: Slices
    ) -> None:
        super().__init__(folder, queue, remembered)
        self._engine, self._slices = engine, slices
        self.batch = engine.state.work.batch
        self._segments = folder.segments
        self._names = tuple(each.name for each in folder.processors)
        self._reads = tuple(
            tuple((name, self._buffered[name]) for name in self._sources[each.id])
            for each in folder.segments
        )
        makers = {segment.id: i for i, segment in enumerate(folder.segments)}
        self._output_tasks = tuple(makers[each] for each in self._makers if each != SOURCE)
        self._assigned: set[int] = set()  # processors that are yet to begin what they were given
        self._running: dict[int, tuple[int, int, float]] = {}  # task, frame, since when
        self._newest = 0  # frames up to the last one of which anything has begun
        self._called_since_s: float | None = None  # since when the strategy is being asked
        self._calling_thread = 0  # the thread that has asked it last
        self._timed: set[int] = set()  # processors that wait until they are to ask again
        self._turns = 0
        self._begin_s = perf_counter()

    # The processors' threads

    def turn(self, processor: int, outputs: Outputs | None) -> Assignment | None:
        """Hand out what a processor has made, if anything; return what it runs next.

        It waits until there is something, and asks again when the strategy wants that; None at the
        end.
        """
        happened = True
        while True:
            with self._lock:
                self._turns += happened
                now_s = perf_counter()
                assignment, woken = self._end_and_begin(processor, outputs, now_s)
                outputs = None
                waits = assignment is None and not self._is_over()
                ask_s = self._engine.state.ask_s
                if waits:
                    self._parked[self._names[processor]] = Doing("", 0, True, now_s)
                    if ask_s < inf:
                        self._timed.add(processor)
                elif ask_s < inf and not self._timed:
                    woken = (*woken, *self._next_caller())  # it waits for that time
            if woken:
                self._unpark(woken)
            if not waits:
                return assignment
            happened = self._wait(processor, ask_s)

    def _wait(self, processor: int, ask_s: float) -> bool:
        """Wait until a processor is woken; return whether it was before it is to ask again."""
        name = self._names[processor]
        gate = self._gates[name]
        if ask_s == inf:
            return gate.acquire()
        left_s = self._begin_s + ask_s - perf_counter()
        in_time = gate.acquire(timeout=min(max(0.0, left_s), TIMEOUT_MAX))
        with self._lock:
            self._timed.discard(processor)
            if in_time or self._parked.pop(name, None) is not None:
                return in_time
        return gate.acquire()  # who has woken it meanwhile says so

    def give_up(self, processor: int) -> None:
        """Say that what a processor was given went wrong."""
        with self._lock:
            self._running.pop(processor, None)
            self._engine.give_up(processor)

    def needed_outputs(self, pieces: Sequence[Piece]) -> set[str]:
        """Return what pieces make that others read, or that leaves the network."""
        outputs = {
            n for each in pieces for n in self._segments[each.task].outputs if n in self._buffered
        }
        read = Counter(n for each in pieces for n, _ in self._reads[each.task])
        return {name for name in outputs if self._readers[name] > read[name]}

    # What a watchdog looks at

    @property
    def steps(self) -> int:
        """How often anything has happened."""
        return self._turns

    @property
    def is_starved(self) -> bool:
        """Whether nothing runs, nobody is asked, and a frame is yet to come."""
        return self.feeding and not self._running and self._called_since_s is None

    def unanswered(self) -> str:
        """Say since when the strategy is being asked, if it is."""
        if (since_s := self._called_since_s) is None:
            return ""
        for_s = perf_counter() - since_s
        return f"strategy '{self._engine.name}' does not return (asked {for_s:.1f} s ago)"

    def abandon(self, cause: str) -> None:
        """End the run at once, even if the strategy does not return."""
        self.cause = self.cause or cause
        self.abandoned = True  # from now on, it is not asked any more
        if self._lock.acquire(timeout=ANSWER_S):
            self._lock.release()
            self._end_before(0)
        else:  # whoever asks it wakes the others, if that ends at last
            self._count = 0
            end_thread(self._calling_thread)
            self._notify_sink()

    @contextmanager
    def _locked(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock, unless a strategy keeps it for too long."""
        if not self._lock.acquire(timeout=timeout_s):
            raise Abandoned if self.abandoned else Empty
        try:
            yield
        finally:
            self._lock.release()

    def doing(self) -> dict[str, Doing]:
        """Return what each processor is about; who waits, for what comes next in the plan.

        Nothing as long as a strategy does not return.
        """
        with suppress(Empty), self._locked(ANSWER_S):
            does, parked = dict(self._running), dict(self._parked)
            doing = {}
            for number, name in enumerate(self._names):
                if number in does:
                    task, frame, since_s = does[number]
                    doing[name] = Doing(self._segments[task].id, frame, False, since_s)
                elif name in parked:
                    task, frame, _ = self._engine.state.planned_next(number) or Job(0, 0)
                    doing[name] = parked[name]._replace(
                        segment=self._segments[task].id, frame=frame
                    )
            return doing
        return {}

    def missing(self, segment: str, frame: int) -> str:
        """Say what a segment that waits has not got."""
        task = next(i for i, each in enumerate(self._segments) if each.id == segment)
        return " and ".join(self._engine.missing(Job(task, frame))) or (
            f"for strategy '{self._engine.name}' to give it out"
        )

    # Under the lock

    def _end_and_begin(
        self, processor: int, outputs: Outputs | None, now_s: float
    ) -> tuple[Assignment | None, Sequence[str]]:
        """Return what a processor runs next, if there is anything, and whose threads may go on."""
        try:
            if outputs is not None:
                self._end_assignment(processor, outputs, now_s)
            asks = processor not in self._assigned and not self.abandoned
            woken = self._call_strategy(now_s) if asks else ()
            return self._begin_assignment(processor, now_s), woken
        except Exception as error:  # noqa: BLE001 - whatever comes of a state that was changed
            return None, self._give_up_unusable(error)

    def _give_up_unusable(self, error: Exception) -> Sequence[str]:
        return self._give_up_run(f"strategy '{self._engine.name}' {unusable_sentence(error)}")

    def _give_up_run(self, cause: str) -> Sequence[str]:
        """End the run; return whose threads may go on."""
        self.cause = self.cause or cause
        self.abandoned = True
        self._notify_sink()
        return self._wake(tuple(self._parked))

    def _is_over(self) -> bool:
        return self.abandoned or self._engine.is_all_begun

    def _call_strategy(self, now_s: float) -> Sequence[str]:
        """Ask the strategy; return whose threads may go on."""
        self._called_since_s, self._calling_thread = now_s, get_ident()
        try:
            processors = self._engine.decide(now_s - self._begin_s)
        except StrategyError as error:
            return self._give_up_run(f"{error}")
        finally:
            self._called_since_s = None
        if self.abandoned:
            return self._give_up_run(self.cause or "")
        if not processors:
            return ()
        running = self._engine.state.running
        for processor in processors:
            self._assigned.add(processor)
            frame = running[processor].job.frame  # type: ignore[union-attr] # it was given it
            self._newest = max(self._newest, frame + 1)
        return self._wake(tuple(self._parked)) if self._parked else ()

    def _begin_assignment(self, processor: int, now_s: float) -> Assignment | None:
        if processor not in self._assigned or self.abandoned:
            return None
        self._assigned.remove(processor)
        running = self._engine.state.running[processor]
        assert running is not None
        task, frame, _ = running.jobs[0]
        self._running[processor] = task, frame, now_s
        if len(running.jobs) > 1 or self._engine.state.is_split(frame):
            return self._begin_several(running)
        inputs = {name: buffers[frame][0] for name, buffers in self._reads[task]}
        return Assignment((Piece(task, frame, self.batch, None),), inputs, running.replace)

    def _begin_several(self, running: Running) -> Assignment:
        """Begin several pieces, or one of a micro-batch."""
        frame = running.job.frame
        sizes = self._engine.state.sizes(frame)
        pieces, inputs = list[Piece](), dict[str, Any]()
        for task, run in groupby(running.jobs, key=lambda job: job.task):
            micros = [job.micro for job in run]
            begin, size = sum(sizes[: micros[0]]), sum(sizes[micro] for micro in micros)
            into = self._output_slices(task, frame, begin, size) if len(sizes) > 1 else None
            pieces.append(Piece(task, frame, size, into))
            for name, buffers in self._reads[task]:
                if frame in buffers:  # else a piece before makes it
                    inputs[name] = self._slices.of(name, buffers[frame][0], begin, size)
        return Assignment(tuple(pieces), inputs, running.replace)

    def _output_slices(self, task: int, frame: int, begin: int, size: int) -> dict[str, Any]:
        """Return where a piece writes: slices of buffers, which the first piece allocates."""
        slices = {}
        for name in self._segments[task].outputs:
            if name in self._buffered and self._slices.is_cut(name):
                if frame not in self._buffered[name]:
                    self._put(name, frame, self._slices.buffer(name, lent=name in self._outputs))
                slices[name] = self._slices.of(name, self._buffered[name][frame][0], begin, size)
        return slices

    def _end_assignment(self, processor: int, outputs: Outputs, now_s: float) -> None:
        through = False
        del self._running[processor]
        for (task, frame, size, into), arrays in outputs:
            for name, array in arrays.items():
                if into is None or (name not in into and frame not in self._buffered.get(name, ())):
                    self._put(name, frame, array)
            for name, buffers in self._reads[task]:
                if frame in buffers:  # else a replaced piece would have made it
                    self._release(name, frame, size)
            through = through or task in self._output_tasks
        self._engine.end(processor, now_s - self._begin_s)
        if through and self._is_through(self._ended[SINK]):
            self._notify_sink()

    def _put(self, name: str, frame: int, array: Any) -> None:  # noqa: ANN401 - any dtype
        if name in self._buffered:
            self._buffered[name][frame] = [array, self._readers[name] * self.batch]

    def _drop(self, name: str, frame: int) -> None:
        self._release(name, frame, self.batch)

    def _release(self, name: str, frame: int, size: int) -> None:
        """Let a tensor go when the last of its readers has read the whole batch."""
        entry = self._buffered[name][frame]
        entry[1] -= size
        if not entry[1]:
            del self._buffered[name][frame]
            self._slices.free(name, entry[0])

    def _advance(self, name: str, frame: int) -> Sequence[str]:
        """Count a frame as admitted or its results as taken; return whose threads may go on."""
        self._turns += 1
        self._ended[name] = frame + 1
        now_s = perf_counter() - self._begin_s
        try:
            if name == SOURCE:
                self._engine.admit(now_s)
                if SOURCE in self._makers:
                    self._notify_sink()
            else:
                assert name == SINK
                self._engine.take_results(now_s)
            return self._next_caller()
        except Exception as error:  # noqa: BLE001 - whatever comes of a state that was changed
            return self._give_up_unusable(error)

    def _next_caller(self) -> Sequence[str]:
        """Return a parked processor that is to ask the strategy, if there is anything to decide.

        Whoever admits frames or takes results does not: a strategy that never returns would keep
        the caller's own thread.
        """
        state = self._engine.state
        if not (state.free and state.ready_by):
            return ()
        planned = self._names[state.work.planned(next(reversed(state.ready_by)))]
        asks = next((name for name in (planned, *self._names) if name in self._parked), None)
        if asks is None:
            return ()  # those who are free have yet to take their turn
        del self._parked[asks]
        return (asks,)

    def _may_admit(self, frame: int) -> bool:
        return frame < self._newest + self._queue

    def _may_go(self, processor: str) -> bool:
        if processor == SOURCE:
            return super()._may_go(processor)
        return self._names.index(processor) in self._assigned or self._is_over()

    def _is_through(self, frame: int) -> bool:
        ended = self._engine.state.ended
        there = SOURCE not in self._makers or self._ended[SOURCE] > frame
        return there and all(ended[task].below > frame for task in self._output_tasks)

    def _end_before(self, frame: int) -> None:
        with self._lock:
            self._engine.end_before(frame)
        super()._end_before(frame)
