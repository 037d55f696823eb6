"""What segments of a folder wait for: who makes what they read, and room for what they make."""

from __future__ import annotations

from .arena import SOURCE
from .folder import Folder

SINK = "results"


def segment_producers(folder: Folder) -> dict[str, tuple[str, ...]]:
    """Return the segments that each segment reads from, the source among them."""
    producers_of: dict[str, dict[str, None]] = {segment.id: {} for segment in folder.segments}
    for channel in folder.channels:
        for consumer in channel.consumers:
            producers_of[consumer][channel.producer or SOURCE] = None
    for producers in producers_of.values():
        if not producers:
            producers[SOURCE] = None  # what reads nothing still runs once for each frame
    return {name: tuple(producers) for name, producers in producers_of.items()}


def reader_slots(folder: Folder, queue: int) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the last readers of what each segment makes on other processors, and slots before."""
    processor_of = {segment.id: segment.processor for segment in folder.segments}
    slots_of: dict[str, list[tuple[str, int]]] = {name: [] for name in processor_of}
    for channel in folder.channels:
        last = channel.consumers[-1]
        if channel.producer is not None and processor_of[channel.producer] != processor_of[last]:
            slots_of[channel.producer].append((last, channel.queue_depth))
    lag_of = {segment.id: segment.lag for segment in folder.segments}
    turns = {each.name: each.turn[1] for each in folder.processors}
    latest = max(each.lag + turns[each.processor] for each in folder.segments)
    for maker in dict.fromkeys(each.segment for each in folder.outputs):
        if maker is not None:
            # An early output waits for those that the last stage makes.
            slots_of[maker].append((SINK, queue + latest - lag_of[maker]))
    return {name: tuple(readers) for name, readers in slots_of.items()}
