"""What a folder of segments has to do for every frame on this machine, and slices of frames.

All micro-batches of a frame write to and read from one buffer of the whole batch, each to its slice
along the outermost axis, so that neither splitting nor merging copies anything.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median_low
from time import perf_counter
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from parapipe.runtime.arena import SOURCE
from parapipe.runtime.document import Channel, Segment, SessionPlan
from parapipe.runtime.folder import Folder, RunError
from parapipe.runtime.frames import Frame, check_frame
from parapipe.runtime.machine import denormals_to_zero
from parapipe.runtime.segment_waits import SINK, reader_slots, segment_producers
from parapipe.runtime.sessions import Sessions, error_line, pin_thread, stoppable_options
from parapipe.runtime.views import Views, sources
from parapipe.strategies.work import Order, Tensor, Work

LEAST_SLOTS = 2
Times: TypeAlias = Mapping[tuple[str, str], float]
NOTHING: Mapping[int, Times | None] = MappingProxyType({})


def with_room(folder: Folder) -> Folder:
    """Return a folder whose channels within a processor have slots enough for any order."""
    lag_of = {each.id: each.lag for each in folder.segments}
    processor_of = {each.id: each.processor for each in folder.segments}
    turns = {each.name: each.turn[1] for each in folder.processors}

    def deep(channel: Channel) -> Channel:
        if channel.producer is None or processor_of[channel.producer] != channel.processor:
            return channel
        lag_distance = max(lag_of[each] for each in channel.consumers) - lag_of[channel.producer]
        slots = max(LEAST_SLOTS, channel.queue_depth, lag_distance + turns[channel.processor])
        return replace(channel, queue_depth=slots)

    return replace(folder, channels=tuple(map(deep, folder.channels)))


def folder_work(
    folder: Folder,
    queue: int,
    time_s: Times | None = None,
    *,
    batch: int = 1,
    sized_s: Mapping[int, Times | None] = NOTHING,
) -> Work:
    """Return what a folder has to do for every frame; each processor may run every segment.

    Processors share the memory, so that tensors need not be moved.

    Parameters
    ----------
    folder
        As `with_room` returns it.
    queue
        Results that may wait to be taken.
    time_s
        Seconds by processor and segment. If not given, every processor takes what the plan predicts
        for its own one.
    batch
        What a frame is.
    sized_s
        As `time_s`, by the size of micro-batches; if not given, their share of that of a frame.
    """
    task = {segment.id: i for i, segment in enumerate(folder.segments)}
    names = tuple(each.name for each in folder.processors)
    maker = {name: task[each.id] for each in folder.segments for name in each.outputs}
    read = {
        name: None
        for read_names in sources(folder).values()
        for name in read_names
        if name in maker
    }
    number = {name: i for i, name in enumerate(read)}
    no_move = tuple((0.0,) * len(names) for _ in names)
    first = {each for each, producers in segment_producers(folder).items() if SOURCE in producers}
    return Work(
        processors=names,
        tasks=tuple(task),
        time_s=_time_table(folder, time_s, 1.0),
        tensors=tuple(Tensor(maker[name], no_move, folder.tensors[name].shape) for name in read),
        reads=tuple(
            tuple(number[name] for name in read_names if name in number)
            for read_names in sources(folder).values()
        ),
        room=tuple(
            (task[u], task[v], depth) for (u, v), depth in _slots_between_segments(folder).items()
        ),
        orders=tuple(_orders_of_plan(folder, task)),
        lag=tuple(each.lag for each in folder.segments),
        first=frozenset(task[each] for each in first),
        results=tuple(
            (task[each], depth)
            for each, readers in reader_slots(folder, queue).items()
            for reader, depth in readers
            if reader == SINK
        ),
        batch=batch,
        sized_s={
            size: _time_table(folder, times_s, size / batch) for size, times_s in sized_s.items()
        },
    )


def _time_table(
    folder: Folder, time_s: Times | None, share: float
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(
            time_s[each.name, segment.id] if time_s else segment.time_s * share
            for each in folder.processors
        )
        for segment in folder.segments
    )


def _slots_between_segments(folder: Folder) -> dict[tuple[str, str], int]:
    """Return the slots between segments; the fewest if several tensors go from one to another."""
    slots: dict[tuple[str, str], int] = {}
    for channel in folder.channels:
        if channel.producer is not None:
            for reader in channel.consumers:
                ends = channel.producer, reader
                slots[ends] = min(channel.queue_depth, slots.get(ends, channel.queue_depth))
    return slots


def _orders_of_plan(folder: Folder, task: Mapping[str, int]) -> list[Order]:
    names = [each.name for each in folder.processors]
    return [
        Order(
            tuple(task[s.id] for s in folder.segments if s.processor == each.name),
            tuple(names.index(name) for name in each.turns or (each.name,)),
        )
        for each in folder.processors
        if each.first == each.name
    ]


def measure_segments(
    folder: Folder, sessions: Sessions, work: Work, frames: Iterable[Frame], patience_s: float
) -> dict[tuple[str, str], float]:
    """Run every segment on every processor; return the median seconds by processor and segment.

    Parameters
    ----------
    work
        That of the folder.
    patience_s
        What no segment takes.

    Raises
    ------
    RunError
        Names the segment that fails, or does not end.
    """
    in_order = sorted(range(len(folder.segments)), key=lambda i: work.depth[i])
    bench = _SegmentBench(folder, sessions, [folder.segments[i] for i in in_order])
    for index, frame in enumerate(frames):
        thread = threading.Thread(target=bench.run, args=(index, frame), daemon=True)
        thread.start()
        steps = -1
        while thread.is_alive():
            if steps == bench.steps:
                bench.stop()
                thread.join(patience_s)
                raise RunError(f"{bench.doing}: does not end (running for {patience_s:.1f} s)")
            steps = bench.steps
            thread.join(patience_s)
        if bench.fault is not None:
            raise RunError(bench.fault)
    return {key: median_low(times_s) for key, times_s in bench.times_s.items()}


class _SegmentBench:
    def __init__(self, folder: Folder, sessions: Sessions, segments: Iterable[Segment]) -> None:
        self._folder, self._sessions, self._segments = folder, sessions, tuple(segments)
        self._sources, self._views = sources(folder), Views(folder)
        self._options, self.stop = stoppable_options()
        self.times_s: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.doing, self.steps = "", 0
        self.fault: str | None = None

    def run(self, index: int, frame: Frame) -> None:
        """Run a frame, segment after segment, each on all processors in turn."""
        try:
            arrays = dict(check_frame(frame, index, self._folder, {}))
            with denormals_to_zero():
                for segment in self._segments:
                    for processor in self._folder.processors:
                        name = processor.name
                        self.doing = f"segment '{segment.id}' on processor '{name}', frame {index}"
                        self.steps += 1
                        pin_thread(processor.cores)
                        inputs = {each: arrays[each] for each in self._sources[segment.id]}
                        session = self._sessions[name, segment.id]
                        begin_s = perf_counter()
                        outputs = self._views.run(session, segment, index, inputs, self._options)
                        self.times_s[name, segment.id].append(perf_counter() - begin_s)
                    arrays.update(zip(segment.outputs, outputs, strict=True))
        except RunError as error:
            self.fault = str(error)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
            self.fault = f"{self.doing}: {error_line(error)}"


class Slices:
    """The buffers of split frames.

    Parameters
    ----------
    plan
        A folder's, for whole batches.
    sized
        The same plan's for micro-batches, by their size; none if nothing is split.

    Raises
    ------
    RunError
        Names tensors between pieces of which a micro-batch has no slice.
    """

    def __init__(self, plan: SessionPlan, batch: int, sized: Mapping[int, SessionPlan]) -> None:
        self._tensors, self._batch = plan.tensors, batch
        self._rows: dict[str, int] = {}  # of one item of the batch, by name
        self._spare: defaultdict[str, list[Any]] = defaultdict(list)
        self._lent: dict[int, Any] = {}
        odd: set[str] = set()
        for size, other in sized.items():
            for name, tensor in plan.tensors.items():
                small = other.tensors[name]
                rows, left = divmod(tensor.shape[0], batch) if tensor.shape else (0, 0)
                if (small.dtype, small.shape) == (tensor.dtype, tensor.shape) and size != batch:
                    continue  # it does not depend on the batch
                if left or small.shape != (rows * size, *tensor.shape[1:]):
                    odd.add(f"'{name}' ({small} of a batch of {size}, {tensor} of {batch})")
                self._rows[name] = rows
        if odd:
            raise RunError(
                f"micro-batches need tensors between pieces whose outermost axis is that of the "
                f"batch, and these are not: {', '.join(sorted(odd))}; cut the network elsewhere"
            )

    def is_cut(self, name: str) -> bool:
        """Whether micro-batches have slices of a tensor: else it does not depend on the batch."""
        return name in self._rows

    def of(self, name: str, array: Any, begin: int, size: int) -> Any:  # noqa: ANN401 - any dtype
        """Return a micro-batch's slice of a tensor, given its first item and its size."""
        rows = self._rows.get(name)
        return array if rows is None else array[rows * begin : rows * (begin + size)]

    def frame(self, frame: Frame, size: int) -> Frame:
        """Return the first items of a frame."""
        if size == self._batch:
            return frame
        return {name: self.of(name, array, 0, size) for name, array in frame.items()}

    def buffer(self, name: str, *, lent: bool) -> Any:  # noqa: ANN401
        """Return a buffer for a whole batch of a tensor; it is used again unless it is lent."""
        if self._spare[name]:
            return self._spare[name].pop()
        tensor = self._tensors[name]
        array = np.empty(tensor.shape, tensor.dtype)
        if not lent:
            self._lent[id(array)] = array
        return array

    def free(self, name: str, array: Any) -> None:  # noqa: ANN401
        """Take back what nobody reads any more, if it is one of the buffers."""
        if id(array) in self._lent:
            self._spare[name].append(array)
