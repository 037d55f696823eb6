"""Which segment may begin which frame, and the tensors in between, under one lock.

Segments take frames in order, so one number for each says what it has done (where processors take
turns on a segment, how many frames have ended without a gap): a segment may begin
frame n when the segments that it reads from have ended n, and when those that read from it have
ended n less the slots of the queue between them. The source admits frames, the sink takes results
out; both count like segments.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from queue import SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple

from .arena import SOURCE, arena_waits
from .document import Segment
from .folder import Folder
from .in_step import BufferedBytes, step_waits
from .segment_waits import SINK, reader_slots, segment_producers
from .states import States
from .views import sources

Arrays = Mapping[str, Any]


class Abandoned(Exception):  # noqa: N818 - it tells a thread to leave, nothing went wrong in it
    """The run is over before its time."""


class Doing(NamedTuple):  # one is made for every segment and frame
    """What a processor's thread is about, and since when."""

    segment: str
    frame: int
    waits: bool
    since_s: float


class Flow:
    """Frames on their way through the segments of a folder.

    A thread that has to wait parks: it says what for and takes a lock of its own that is locked
    already. Who makes that come true unlocks it, after it has left the common lock.

    Parameters
    ----------
    queue
        Frames that may wait to be begun, and results that may wait to be taken.
    remembered
        Frames of which it is remembered when they were admitted.
    in_step
        Whether segments begin in the plan's order on all processors together.
    """

    def __init__(
        self, folder: Folder, queue: int, remembered: int, *, in_step: bool = False
    ) -> None:
        self.cause: str | None = None
        self.abandoned = False
        self.admitted_s: deque[tuple[int, float]] = deque(maxlen=remembered)
        self.feeding = True  # the source waits for a frame from outside, or for its time
        self._count: int | None = None
        self._queue = queue
        self._outputs = tuple(each.tensor for each in folder.outputs)
        self._makers = {each.segment or SOURCE for each in folder.outputs}
        self._needs, self._room = segment_producers(folder), reader_slots(folder, queue)
        self._steps, self._waits_for = step_waits(folder) if in_step else {}, arena_waits(folder)
        self._states = States(folder)
        self._wakes = _wakes(
            folder, self._needs, self._room, self._states, self._steps, self._waits_for
        )
        self._first = tuple(name for name, needs in self._needs.items() if SOURCE in needs)
        self._began = dict.fromkeys(self._needs, 0)
        self._ended = dict.fromkeys([*self._needs, SOURCE, SINK], 0)
        self._ahead: dict[str, set[int]] = {name: set() for name in self._ended}
        self._sources = sources(folder)
        self._readers = Counter(name for names in self._sources.values() for name in names)
        self.bytes = BufferedBytes(folder, dict(self._readers))
        self._readers.update(self._outputs)
        self._buffered: dict[str, dict[int, list[Any]]] = {name: {} for name in self._readers}
        self._runs: dict[str, Doing] = {}
        self._parked: dict[str, Doing] = {}
        threads = (*(each.name for each in folder.processors), SOURCE)
        self._gates = {name: threading.Lock() for name in threads}
        for gate in self._gates.values():
            gate.acquire()
        self._lock = threading.Lock()
        self._finished: SimpleQueue[None] = SimpleQueue()

    # The processors' threads

    def begin(self, segment: Segment, frame: int, processor: str) -> Arrays | None:
        """Wait until a segment may begin a frame; return what it reads, None if there is none."""
        name = segment.id
        while True:
            with self._lock:
                if self._is_past(frame):
                    self._runs.pop(processor, None)
                    return None
                if self._may_begin(name, frame):
                    self._runs[processor] = Doing(name, frame, False, perf_counter())
                    self._began[name] = max(self._began[name], frame + 1)
                    self.bytes.begin(name, frame)
                    inputs = {each: self._buffered[each][frame][0] for each in self._sources[name]}
                    woken = self._wake((SOURCE,)) if name in self._first else ()
                    break
                self._runs.pop(processor, None)
                self._parked[processor] = Doing(name, frame, True, perf_counter())
            self._gates[processor].acquire()
        self._unpark(woken)
        return inputs

    def end(self, segment: Segment, frame: int, arrays: Iterable[Any]) -> None:
        """Hand out what a segment has made of a frame."""
        made = [*arrays]
        following = [*self._states.next_inputs(segment.id, segment.outputs, made)]
        with self._lock:
            for name, array in zip(segment.outputs, made, strict=True):
                self._put(name, frame, array)
            for name, array in following:
                self._put(name, frame + self._states.frames, array)
            for name in self._sources[segment.id]:
                self._drop(name, frame)
            self.bytes.end(segment.id, frame)
            woken = self._advance(segment.id, frame)
        self._unpark(woken)

    # The source

    def admit(
        self, arrays: Arrays, due_s: float, load: Callable[[int, Arrays], Arrays] | None = None
    ) -> None:
        """Admit the next frame, not before its time and not before there is room.

        Parameters
        ----------
        load
            Takes a frame's number and arrays, and returns those that are to be read.

        Raises
        ------
        Abandoned
            If no frame is wanted any more.
        """
        frame = self._ended[SOURCE]
        while True:
            with self._lock:
                if self._is_past(frame):
                    raise Abandoned
                early_s = due_s - perf_counter()
                self.feeding = early_s > 0
                if early_s <= 0 and self._may_admit(frame):
                    admitted_s = perf_counter()
                    break
                self._parked[SOURCE] = Doing(SOURCE, frame, True, 0.0)
            self._sleep(early_s if early_s > 0 else -1)
        arrays = self._states.entering(frame, arrays)
        loaded = load(frame, arrays) if load else arrays
        with self._lock:
            self.feeding = True
            for name, array in loaded.items():
                self._put(name, frame, array)
            self.admitted_s.append((frame, admitted_s))
            woken = self._advance(SOURCE, frame)
        self._unpark(woken)

    def close(self) -> None:
        """Say that no more frames will come."""
        self.feeding = False
        self._end_before(self._ended[SOURCE])

    # The sink

    def result(self, frame: int, timeout_s: float) -> Arrays | None:
        """Wait for the results of a frame; return nothing if there is no such frame.

        Raises
        ------
        queue.Empty
            If the time is over.
        Abandoned
            If the run was given up before the frame was through.
        """
        while not self._is_through(frame):
            if self.abandoned:
                raise Abandoned
            if self._is_past(frame):
                return None
            self._finished.get(timeout=timeout_s)
        with self._locked(timeout_s):
            arrays = {name: self._buffered[name][frame][0] for name in self._outputs}
            for name in self._outputs:
                self._drop(name, frame)
            woken = self._advance(SINK, frame)
        self._unpark(woken)
        return arrays

    def _locked(self, _timeout_s: float) -> AbstractContextManager[object]:
        """Hold the lock, which nobody else does for long."""
        return self._lock

    # Ends before their time; the first cause stands

    def fail(self, frame: int, cause: str) -> None:
        """End the run before a frame; those before it still go through."""
        with self._lock:
            self.cause = self.cause or cause
        self._end_before(frame)

    def abandon(self, cause: str) -> None:
        """End the run at once."""
        with self._lock:
            self.cause = self.cause or cause
            self.abandoned = True
        self._end_before(0)

    # What a watchdog looks at

    @property
    def steps(self) -> int:
        """How often anything has been begun, ended, admitted or taken out."""
        return sum(self._began.values()) + sum(self._ended.values())

    @property
    def is_starved(self) -> bool:
        """Whether nothing runs, and a frame is yet to come."""
        return self.feeding and not self._runs

    def doing(self) -> dict[str, Doing]:
        """Return what each processor is about."""
        with self._lock:
            doing = self._runs | self._parked
        doing.pop(SOURCE, None)
        return doing

    def missing(self, segment: str, frame: int) -> str:
        """Say what a segment that waits has not got."""
        lacking = [p or "the source" for p in self._needs[segment] if self._ended[p] <= frame]
        before = frame - self._states.frames
        lacking += [f"{p}'s state" for p in self._states.waits[segment] if self._ended[p] <= before]
        full = [r for r, slots in self._room[segment] if self._ended[r] <= frame - slots]
        waits_for = [f"for {each}" for each in lacking]
        waits_for += [f"for room before {each}" for each in full]
        waits_for += [f"for bytes that {each} uses" for each in self._missing_bytes(segment, frame)]
        return " and ".join(waits_for) or "for its turn"

    def unanswered(self) -> str:
        """Say who has been asked what to run, and has not answered; nothing if nobody is asked."""
        return ""

    # Under the lock

    def _may_begin(self, segment: str, frame: int) -> bool:
        ended = self._ended
        for producer in self._needs[segment]:
            if ended[producer] <= frame:
                return False
        for maker in self._states.waits[segment]:
            if ended[maker] <= frame - self._states.frames:
                return False
        for reader, slots in self._room[segment]:
            if ended[reader] <= frame - slots:
                return False
        if self._waits_for and any(self._missing_bytes(segment, frame)):
            return False
        return not self._steps or self._is_in_step(segment, frame)

    def _missing_bytes(self, segment: str, frame: int) -> Iterator[str]:
        """Yield segments that still use the bytes that a segment writes to, or will before it."""
        for other, ahead in self._waits_for.get(segment, ()):
            if self._ended[other] <= frame + ahead and not self._is_past(frame + ahead):
                yield other

    def _is_in_step(self, segment: str, frame: int) -> bool:
        """Tell whether all has ended that has before in the plan, of frames that are there."""
        ended = self._ended
        there = ended[SOURCE] if self._count is None else min(ended[SOURCE], self._count)
        steps = self._steps[segment]
        return not any(ended[other] <= frame + ahead < there for other, ahead in steps)

    def _may_admit(self, frame: int) -> bool:
        begun = max((self._began[name] for name in self._first), default=frame)
        return begun > frame - self._queue and not any(self._missing_bytes(SOURCE, frame))

    def _may_go(self, processor: str) -> bool:
        """Tell whether what a parked thread waits for has come true."""
        at = self._parked[processor]
        if self._is_past(at.frame):
            return True
        if processor == SOURCE:
            return not self.feeding and self._may_admit(at.frame)
        return self._may_begin(at.segment, at.frame)

    def _is_through(self, frame: int) -> bool:
        return all(self._ended[maker] > frame for maker in self._makers)

    def _is_past(self, frame: int) -> bool:
        return self._count is not None and frame >= self._count

    def _put(self, name: str, frame: int, array: Any) -> None:  # noqa: ANN401 - any dtype
        if name in self._buffered:
            self._buffered[name][frame] = [array, self._readers[name]]

    def _drop(self, name: str, frame: int) -> None:
        """Let a tensor go when the last of its readers has done with it."""
        entry = self._buffered[name][frame]
        entry[1] -= 1
        if not entry[1]:
            del self._buffered[name][frame]

    def _advance(self, name: str, frame: int) -> Sequence[str]:
        """Count a frame as ended; return whose threads may go on."""
        ahead = self._ahead[name]
        ahead.add(frame)
        while self._ended[name] in ahead:
            ahead.remove(self._ended[name])
            self._ended[name] += 1
        if name in self._makers and self._is_through(self._ended[SINK]):
            self._notify_sink()
        return self._wake(self._wakes[name])

    def _wake(self, threads: Iterable[str]) -> Sequence[str]:
        """Return those of some parked threads that may go on; they are parked no more."""
        woken = [name for name in threads if name in self._parked and self._may_go(name)]
        for name in woken:
            del self._parked[name]
        return woken

    # Without the lock

    def _unpark(self, processors: Iterable[str]) -> None:
        for processor in processors:
            self._gates[processor].release()

    def _sleep(self, timeout_s: float) -> None:
        """Let the source sleep until it may go on, or so long; below 0 without an end."""
        if self._gates[SOURCE].acquire(timeout=timeout_s):
            return
        with self._lock:
            alone = self._parked.pop(SOURCE, None) is not None
        if not alone:  # somebody unlocks it just now
            self._gates[SOURCE].acquire()

    def _end_before(self, frame: int) -> None:
        with self._lock:
            self._count = frame if self._count is None else min(self._count, frame)
            woken = self._wake(tuple(self._parked))
            self._notify_sink()
        self._unpark(woken)

    def _notify_sink(self) -> None:
        if self._finished.empty():  # one is enough, and more would pile up
            self._finished.put(None)


def _wakes(
    folder: Folder,
    producers: Mapping[str, tuple[str, ...]],
    readers: Mapping[str, tuple[tuple[str, int], ...]],
    states: States,
    *orders: Mapping[str, tuple[tuple[str, int], ...]],
) -> dict[str, tuple[str, ...]]:
    """Processors whose threads may wait for what a segment, the source or the sink does."""
    wakes: dict[str, dict[str, None]] = {name: {} for name in (*producers, SOURCE, SINK)}
    processor_of = {segment.id: segment.processor for segment in folder.segments}
    turns = {each.name: each.turns or (each.name,) for each in folder.processors}
    for segment in folder.segments:
        threads = turns[segment.processor]
        others = (*readers[segment.id], *(each for o in orders for each in o.get(segment.id, ())))
        waits = states.waits[segment.id]
        for other in (*producers[segment.id], *waits, *(name for name, _ in others)):
            if processor_of.get(other) != segment.processor or len(threads) > 1:
                wakes[other].update(dict.fromkeys(threads))
    for name, _ in (each for order in orders for each in order.get(SOURCE, ())):
        wakes[name][SOURCE] = None
    return {name: tuple(processors) for name, processors in wakes.items()}
