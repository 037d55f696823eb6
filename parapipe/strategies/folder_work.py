"""What a folder of segments has to do for every frame on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from parapipe.runtime.document import Channel
from parapipe.runtime.flow import SINK, SOURCE, needs, room
from parapipe.runtime.folder import Folder
from parapipe.runtime.ranges import sources
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
        apart = max(lag_of[each] for each in channel.consumers) - lag_of[channel.producer]
        slots = max(LEAST_SLOTS, channel.queue_depth, apart + turns[channel.processor])
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
    read = {name: None for made in sources(folder).values() for name in made if name in maker}
    number = {name: i for i, name in enumerate(read)}
    still = tuple((0.0,) * len(names) for _ in names)
    first = {each for each, producers in needs(folder).items() if SOURCE in producers}
    return Work(
        processors=names,
        tasks=tuple(task),
        time_s=_table(folder, time_s, 1.0),
        tensors=tuple(Tensor(maker[name], still, folder.tensors[name].shape) for name in read),
        reads=tuple(
            tuple(number[name] for name in made if name in number)
            for made in sources(folder).values()
        ),
        room=tuple((task[u], task[v], depth) for (u, v), depth in _slots(folder).items()),
        orders=tuple(_orders(folder, task)),
        lag=tuple(each.lag for each in folder.segments),
        first=frozenset(task[each] for each in first),
        results=tuple(
            (task[each], depth)
            for each, readers in room(folder, queue).items()
            for reader, depth in readers
            if reader == SINK
        ),
        batch=batch,
        sized_s={size: _table(folder, times_s, size / batch) for size, times_s in sized_s.items()},
    )


def _table(folder: Folder, time_s: Times | None, share: float) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(
            time_s[each.name, segment.id] if time_s else segment.time_s * share
            for each in folder.processors
        )
        for segment in folder.segments
    )


def _slots(folder: Folder) -> dict[tuple[str, str], int]:
    """Return the slots between segments; the fewest if several tensors go from one to another."""
    found: dict[tuple[str, str], int] = {}
    for channel in folder.channels:
        if channel.producer is not None:
            for reader in channel.consumers:
                ends = channel.producer, reader
                found[ends] = min(channel.queue_depth, found.get(ends, channel.queue_depth))
    return found


def _orders(folder: Folder, task: Mapping[str, int]) -> list[Order]:
    names = [each.name for each in folder.processors]
    return [
        Order(
            tuple(task[s.id] for s in folder.segments if s.processor == each.name),
            tuple(names.index(name) for name in each.turns or (each.name,)),
        )
        for each in folder.processors
        if each.first == each.name
    ]
