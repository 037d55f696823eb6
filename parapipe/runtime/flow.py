"""Which segment may begin which frame, and the tensors in between, under one lock.

Segments take frames in order, so one number for each says what it has done: a segment may begin
frame n when the segments that it reads from have ended n, and when those that read from it have
ended n less the slots of the queue between them. The source lets frames in, the sink takes results
out; both count like segments.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any

from .folder import Folder, Segment

SOURCE, SINK = "", "results"
Arrays = Mapping[str, Any]


class Abandoned(Exception):  # noqa: N818 - it tells a thread to leave, nothing went wrong in it
    """The run is over before its time."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What a processor's thread is about, and since when."""

    segment: str
    frame: int
    waits: bool
    since_s: float


class Flow:
    """Frames on their way through the segments of a folder.

    Parameters
    ----------
    queue
        Frames that may wait to be begun, and results that may wait to be taken.
    remembered
        Frames of which it is remembered when they were let in.
    """

    def __init__(self, folder: Folder, queue: int, remembered: int) -> None:
        self.cause: str | None = None
        self.abandoned = False
        self.doing: dict[str, Doing] = {}
        self.admitted_s: deque[tuple[int, float]] = deque(maxlen=remembered)
        self.feeding = True  # the source waits for a frame from outside, or for its time
        self._count: int | None = None
        self._queue = queue
        self._outputs = folder.outputs
        self._makers = {maker or SOURCE for maker in folder.outputs.values()}
        self._began: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._arrays: dict[str, dict[int, Any]] = {}
        self._unread: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()
        self._turn = {lane.name: threading.Condition(self._lock) for lane in folder.lanes}
        self._turn[SOURCE] = threading.Condition(self._lock)
        self._finished: SimpleQueue[None] = SimpleQueue()
        self._needs, self._room = _needs(folder), _room(folder, queue)
        self._wakes = _wakes(folder, self._needs, self._room)
        self._readers = Counter(name for segment in folder.segments for name in segment.inputs)
        self._readers.update(list(folder.outputs))

    # The processors' threads

    def begin(self, segment: Segment, frame: int) -> Arrays | None:
        """Wait until a segment may begin a frame; return its inputs, None if there is none such.

        Raises
        ------
        Abandoned
            If the run is given up meanwhile.
        """
        with self._lock:
            self._note(segment, frame, waits=True)
            while not self._is_past(frame) and not self._may_begin(segment.name, frame):
                self._wait(segment.lane)
            if self._is_past(frame):
                del self.doing[segment.lane]
                return None
            self._note(segment, frame, waits=False)
            self._began[segment.name] = frame + 1
            if SOURCE in self._needs[segment.name]:
                self._turn[SOURCE].notify()
            return {name: self._arrays[name][frame] for name in segment.inputs}

    def end(self, segment: Segment, frame: int, arrays: Iterable[Any]) -> None:
        """Hand out what a segment has made of a frame."""
        with self._lock:
            for name, array in zip(segment.outputs, arrays, strict=True):
                self._put(name, frame, array)
            for name in segment.inputs:
                self._drop(name, frame)
            self._advance(segment.name, frame)

    # The source

    def admit(self, arrays: Arrays, due_s: float) -> None:
        """Let the next frame in, not before its time and not before there is room.

        Raises
        ------
        Abandoned
            If no frame is wanted any more.
        """
        with self._lock:
            frame = self._ended[SOURCE]
            while not self._is_past(frame) and (early_s := due_s - perf_counter()) > 0:
                self._wait(SOURCE, early_s)
            self.feeding = False
            while not self._is_past(frame) and not self._may_admit(frame):
                self._wait(SOURCE)
            self.feeding = True
            if self._is_past(frame):
                raise Abandoned
            for name, array in arrays.items():
                self._put(name, frame, array)
            self.admitted_s.append((frame, perf_counter()))
            self._advance(SOURCE, frame)

    def close(self) -> None:
        """Say that no more frames will come."""
        with self._lock:
            self._end_before(self._ended[SOURCE])
            self.feeding = False

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
        with self._lock:
            arrays = {name: self._arrays[name][frame] for name in self._outputs}
            for name in self._outputs:
                self._drop(name, frame)
            self._advance(SINK, frame)
        return arrays

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
            self._wake_all()

    # What a watchdog looks at

    @property
    def steps(self) -> int:
        """How often anything has been begun, ended, let in or taken out."""
        return sum(self._began.values()) + sum(self._ended.values())

    def missing(self, segment: str, frame: int) -> str:
        """Say what a segment that waits has not got."""
        lacking = [p or "the source" for p in self._needs[segment] if self._ended[p] <= frame]
        full = [
            reader
            for reader, slots in self._room[segment]
            if not self._has_room(reader, slots, frame)
        ]
        waits_for = [f"for {each}" for each in lacking]
        waits_for += [f"for room before {each}" for each in full]
        return " and ".join(waits_for) or "for its turn"

    # Under the lock

    def _may_begin(self, segment: str, frame: int) -> bool:
        return all(self._ended[producer] > frame for producer in self._needs[segment]) and all(
            self._has_room(reader, slots, frame) for reader, slots in self._room[segment]
        )

    def _has_room(self, reader: str, slots: int, frame: int) -> bool:
        return self._ended[reader] > frame - slots

    def _may_admit(self, frame: int) -> bool:
        begun = [self._began[name] for name, needs in self._needs.items() if SOURCE in needs]
        return not begun or max(begun) > frame - self._queue

    def _is_through(self, frame: int) -> bool:
        return all(self._ended[maker] > frame for maker in self._makers)

    def _is_past(self, frame: int) -> bool:
        return self._count is not None and frame >= self._count

    def _end_before(self, frame: int) -> None:
        self._count = frame if self._count is None else min(self._count, frame)
        self._wake_all()

    def _note(self, segment: Segment, frame: int, *, waits: bool) -> None:
        self.doing[segment.lane] = Doing(segment.name, frame, waits, perf_counter())

    def _wait(self, lane: str, timeout_s: float | None = None) -> None:
        if not self.abandoned:
            self._turn[lane].wait(timeout_s)
        if self.abandoned:
            raise Abandoned

    def _put(self, name: str, frame: int, array: Any) -> None:  # noqa: ANN401 - any dtype
        if self._readers[name]:
            self._arrays.setdefault(name, {})[frame] = array
            self._unread[name, frame] = self._readers[name]

    def _drop(self, name: str, frame: int) -> None:
        """Let a tensor go when the last of its readers has done with it."""
        self._unread[name, frame] -= 1
        if not self._unread[name, frame]:
            del self._unread[name, frame], self._arrays[name][frame]

    def _advance(self, name: str, frame: int) -> None:
        self._ended[name] = frame + 1
        for lane in self._wakes[name]:
            self._turn[lane].notify()
        if name in self._makers:
            self._tell_sink()

    def _wake_all(self) -> None:
        for turn in self._turn.values():
            turn.notify_all()
        self._tell_sink()

    def _tell_sink(self) -> None:
        if self._finished.empty():  # one is enough, and more would pile up
            self._finished.put(None)


def _needs(folder: Folder) -> dict[str, tuple[str, ...]]:
    """Segments that each segment reads from, the source among them."""
    needs: dict[str, dict[str, None]] = {segment.name: {} for segment in folder.segments}
    for channel in folder.channels:
        for consumer in channel.consumers:
            needs[consumer][channel.producer or SOURCE] = None
    for producers in needs.values():
        if not producers:
            producers[SOURCE] = None  # what reads nothing still runs once for each frame
    return {name: tuple(producers) for name, producers in needs.items()}


def _room(folder: Folder, queue: int) -> dict[str, tuple[tuple[str, int], ...]]:
    """Last readers of what each segment makes on other processors, and slots before each."""
    lane_of = {segment.name: segment.lane for segment in folder.segments}
    room: dict[str, list[tuple[str, int]]] = {name: [] for name in lane_of}
    for channel in folder.channels:
        last = channel.consumers[-1]
        if channel.producer is not None and lane_of[channel.producer] != lane_of[last]:
            room[channel.producer].append((last, channel.slots))
    lag_of = {segment.name: segment.lag for segment in folder.segments}
    for maker in dict.fromkeys(folder.outputs.values()):
        if maker is not None:
            # An early output waits for those that the last stage makes.
            room[maker].append((SINK, queue + max(lag_of.values()) - lag_of[maker] + 1))
    return {name: tuple(readers) for name, readers in room.items()}


def _wakes(
    folder: Folder,
    needs: Mapping[str, tuple[str, ...]],
    room: Mapping[str, tuple[tuple[str, int], ...]],
) -> dict[str, tuple[str, ...]]:
    """Processors whose threads may wait for what a segment, the source or the sink does."""
    wakes: dict[str, dict[str, None]] = {name: {} for name in (*needs, SOURCE, SINK)}
    for segment in folder.segments:
        for other in (*needs[segment.name], *(reader for reader, _ in room[segment.name])):
            if other not in needs or _lane(folder, other) != segment.lane:
                wakes[other][segment.lane] = None
    return {name: tuple(lanes) for name, lanes in wakes.items()}


def _lane(folder: Folder, segment: str) -> str:
    return next(each.lane for each in folder.segments if each.name == segment)
