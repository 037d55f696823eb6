"""How much memory a mapping needs at most, when, and what for.

What counts:

- Tensors, copies and queues, for as long as they live (`parapipe.pipeline.lives`).
- Weights, once in each memory where they are used, or for each processor that needs its own copy.

Each tensor has memory of its own: operators that work in place may need less. Scratch memory of
operators is not known. So the peak is the least that an arena can do with that keeps this schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from parapipe.cost.cost_table import CostTable
from parapipe.files.record import Row
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.lives import Content, Life, Lives, Point
from parapipe.pipeline.mapping import Mapping
from parapipe.pipeline.storage import Storage
from parapipe.pipeline.sustained import picoseconds

SECONDS = 1e-12


class AliveRow(Row):
    """A tensor that takes memory at the moment of the peak."""

    name: str
    """Of the tensor."""
    content: Content
    """tensor: where it was made or loaded; copy: of a tensor that came from another processor;
    queue: the slots between processors that work on different frames."""
    frames: int
    """How many frames of it are there; of a queue, its slots."""
    size_bytes: int
    """Of all of them."""


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """What one memory, or all together, needs.

    Parameters
    ----------
    size_bytes
        The most at one moment: activations and weights.
    weights_bytes
        Of these, weights, which are there at any time.
    at_s
        First moment of the peak, from the start of the period.
    alive
        Activations at that moment, the largest first.
    usage
        (seconds, bytes) from the start of the period: what there is from then on.
    """

    name: str
    size_bytes: int
    weights_bytes: int
    at_s: float
    alive: tuple[AliveRow, ...]
    usage: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """What a mapping needs of all memories at one moment, and of each by itself."""

    total: MemoryPeak
    memories: tuple[MemoryPeak, ...]


def peak_memory(mapping: Mapping, storage: Storage, period_s: float) -> PeakMemory:
    """Return the most memory that a mapping needs while frames enter once per period.

    Parameters
    ----------
    storage
        Of the graph and the processors that the mapping is of.
    period_s
        That of the mapping.
    """
    lives = [*Lives(mapping, storage, picoseconds(period_s)).all()]
    weights_bytes = storage.weights_bytes(mapping)
    names = storage.system.names
    memories = tuple(
        _peak(name, [each for each in lives if each.memory == m], weights_bytes[m])
        for m, name in enumerate(names)
    )
    total = memories[0] if len(names) == 1 else _peak("all", lives, sum(weights_bytes))
    return PeakMemory(total, memories)


def peaks_of(
    graph: OperatorGraph, costs: Callable[[Configuration], CostTable]
) -> Callable[[Configuration], PeakMemory]:
    """Return what gives the most memory that a configuration of a model needs.

    Parameters
    ----------
    costs
        Gives those that a configuration rests on.
    """
    known: dict[int, Storage] = {}  # of a model that is not split, by the cost table

    def peak_of(found: Configuration) -> PeakMemory:
        if found.split:
            storage = Storage.of(found.split.graph, found.split.costs)
        else:
            if found.table not in known:
                known[found.table] = Storage.of(graph, costs(found))
            storage = known[found.table]
        return peak_memory(found.mapping, storage, found.evaluated.period_s)

    return peak_of


def _peak(name: str, lives: Sequence[Life], weights_bytes: int) -> MemoryPeak:
    now = weights_bytes + sum(each.frames * each.size_bytes for each in lives)
    at: Point = (0, -1, 0, 0)
    most, usage = -1, {0: now}
    for point, change in sorted(_changes(lives)):
        now += change
        if now > most:
            most, at = now, point
        usage[point[0]] = now
    most = max(most, now)
    alive = [
        AliveRow(name=b.name, content=b.content, frames=frames, size_bytes=frames * b.size_bytes)
        for b in lives
        if (frames := b.alive(at))
    ]
    return MemoryPeak(
        name,
        most,
        weights_bytes,
        at[0] * SECONDS,
        tuple(sorted(alive, key=lambda a: (-a.size_bytes, a.name))),
        tuple((at_ps * SECONDS, size_bytes) for at_ps, size_bytes in usage.items()),
    )


def _changes(lives: Sequence[Life]) -> Iterator[tuple[Point, int]]:
    """Yield what begins and ends on the circle."""
    for each in lives:
        if each.content != "queue":
            yield each.begin[1], each.size_bytes
            yield each.end[1], -each.size_bytes
