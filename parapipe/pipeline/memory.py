"""How much memory a mapping needs at most, when, and what for.

Frames enter once per period, so that all repeats on a circle of that length, and a tensor that
lives longer than a period is there several times. What counts:

- A tensor is alive from the start of the operator that makes it to the end of the last one that
  reads it, in the memory of its maker. A graph input is there from the frame's first start, in each
  memory where it is read; a graph output until the frame's last end.
- Where a transfer makes a copy (into another memory, into another data type, or over a link with a
  conversion), the tensor stays until its readers there and the transfer have ended, and the copy is
  alive from the transfer's start to the end of its last reader. Otherwise processors that share a
  memory read the same tensor. A transfer that occupies nothing starts when its tensor is made, or
  with the stage that reads it if an earlier one makes it.
- A tensor that goes to another processor at another lag lies in a queue. All its slots are there at
  any time, as executors have them.
- Weights, once in each memory where they are used, or for each processor that needs its own copy.

Each tensor has memory of its own: operators that work in place may need less. Scratch memory of
operators is not known. So the peak is the least that an arena can do with that keeps this schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.mapping import Mapping, Placement, Transfer
from parapipe.pipeline.storage import Storage
from parapipe.pipeline.sustained import picoseconds

Content = Literal["tensor", "copy", "queue"]
_Copy = tuple[
    str, str, int, int | None
]  # weight, data type, memory, the processor that has its own
SECONDS = 1e-12


@dataclass(frozen=True, slots=True)
class Alive:
    """What takes memory at some moment.

    Parameters
    ----------
    name
        Of the tensor.
    frames
        How many frames of it there are; of a queue, its slots.
    size_bytes
        Of all of them.
    """

    name: str
    content: Content
    frames: int
    size_bytes: int


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
    alive: tuple[Alive, ...]
    usage: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """What a mapping needs of all memories at one moment, and of each by itself."""

    total: MemoryPeak
    memories: tuple[MemoryPeak, ...]


_Point = tuple[int, int, int, int]
"""A point on the circle: picoseconds, phase, operator, step.

What ends there goes before what starts; in between is what takes no time, in the order of the
operators.
"""
_Moment = tuple[int, _Point]
"""A number of a period, and a point in it."""


class _Buffer(NamedTuple):  # thousands are made for each front
    """A tensor in a memory; a queue if it has no beginning and no end."""

    name: str
    content: Content
    memory: int
    size_bytes: int
    frames: int
    begin: _Point | None = None
    end: _Point | None = None

    def alive(self, at: _Point) -> int:
        """Return how many frames of it there are at a point of the circle."""
        if self.begin is None or self.end is None:
            return self.frames
        return self.frames + (at >= self.begin) - (at >= self.end)


def peak_memory(mapping: Mapping, storage: Storage, period_s: float) -> PeakMemory:
    """Return the most memory that a mapping needs while frames enter once per period.

    Parameters
    ----------
    storage
        Of the graph and the processors that the mapping is of.
    period_s
        That of the mapping.
    """
    buffers = [*_Lives(mapping, storage, picoseconds(period_s)).buffers()]
    weights_bytes = storage.weights_bytes(mapping)
    names = storage.system.names
    memories = tuple(
        _peak(name, [each for each in buffers if each.memory == m], weights_bytes[m])
        for m, name in enumerate(names)
    )
    total = memories[0] if len(names) == 1 else _peak("all", buffers, sum(weights_bytes))
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


def _peak(name: str, buffers: Sequence[_Buffer], weights_bytes: int) -> MemoryPeak:
    now = weights_bytes + sum(each.frames * each.size_bytes for each in buffers)
    at: _Point = (0, -1, 0, 0)
    most, usage = -1, {0: now}
    for point, change in sorted(_changes(buffers)):
        now += change
        if now > most:
            most, at = now, point
        usage[point[0]] = now
    most = max(most, now)
    alive = (Alive(b.name, b.content, n := b.alive(at), n * b.size_bytes) for b in buffers)
    return MemoryPeak(
        name,
        most,
        weights_bytes,
        at[0] * SECONDS,
        tuple(sorted((a for a in alive if a.frames), key=lambda a: (-a.size_bytes, a.name))),
        tuple((at_ps * SECONDS, size_bytes) for at_ps, size_bytes in usage.items()),
    )


def _changes(buffers: Sequence[_Buffer]) -> Iterator[tuple[_Point, int]]:
    """Yield what begins and ends on the circle."""
    for each in buffers:
        if each.begin is not None and each.end is not None:
            yield each.begin, each.size_bytes
            yield each.end, -each.size_bytes


@dataclass(frozen=True)
class _Lives:
    """The lives of the tensors of a mapping."""

    mapping: Mapping
    storage: Storage
    period_ps: int

    def buffers(self) -> Iterator[_Buffer]:
        graph, at = self.storage.graph, self.mapping.at
        first = min(map(self.start, at.values()))
        last = max(map(self.end, at.values()))
        moved: dict[str, dict[int, Transfer]] = {}
        for each in self.mapping.transfers:
            moved.setdefault(each.tensor, {}).setdefault(each.target, each)
        for name in graph.inputs:
            readers = [at[v] for v in graph.consumers.get(name, ())]
            yield from self.loaded(name, readers, first, last if name in graph.outputs else None)
        for name, maker in graph.producer.items():
            if name:
                readers = [at[v] for v in graph.consumers.get(name, ())]
                kept = [last] if name in graph.outputs else []
                yield from self.made(name, at[maker], readers, moved.get(name, {}), kept)

    def loaded(
        self, name: str, readers: Sequence[Placement], first: _Moment, last: _Moment | None
    ) -> Iterator[_Buffer]:
        """Yield a graph input in each memory, and each data type, in which it is read."""
        groups: list[list[Placement]] = []
        for read in readers:
            p = read.processor
            known = (g for g in groups if not self.storage.copies(name, g[0].processor, p))
            group = next(known, None)
            if group is None:
                groups.append([read])
            else:
                group.append(read)
        for group in groups:
            ends = [*map(self.end, group), *([last] if last else ())]
            yield self.lives(name, group[0].processor, first, max(ends))

    def made(
        self,
        name: str,
        made: Placement,
        readers: Sequence[Placement],
        moved: dict[int, Transfer],
        kept: Sequence[_Moment],
    ) -> Iterator[_Buffer]:
        """Yield what an operator makes, and the copies of it."""
        p, begin = made.processor, self.start(made)
        copied: dict[int, list[Placement]] = {}
        here: list[Placement] = []
        for read in readers:
            q = read.processor
            copies = q != p and self.storage.copies(name, p, q)
            (copied.setdefault(q, []) if copies else here).append(read)
        ends = [self.end(made), *map(self.end, here), *kept]
        for q, there in copied.items():
            leaves, arrives = self.passage(made, moved[q])
            ends.append(arrives)
            until = max(map(self.end, there))
            slots = self.slots(made, there)
            yield self.lives(name, q, leaves, until, content="copy", slots=slots)
        elsewhere = [read for read in here if read.processor != p]
        yield self.lives(name, p, begin, max(ends), slots=self.slots(made, elsewhere))

    def slots(self, made: Placement, readers: Sequence[Placement]) -> int:
        """Return the slots of the queue to readers of other lags; 0 if there are none."""
        apart = (read for read in readers if read.lag != made.lag)
        return max((self.mapping.depth(made, read) for read in apart), default=0)

    def lives(
        self,
        name: str,
        p: int,
        begin: _Moment,
        end: _Moment,
        *,
        content: Content = "tensor",
        slots: int = 0,
    ) -> _Buffer:
        """Return a tensor where processor p keeps it, in a queue if that has slots."""
        memory, size_bytes = self.storage.memory_of(p), self.storage.tensor_bytes(name, p)
        frames = end[0] - begin[0]
        if slots:
            most = frames + (begin[1] < end[1])
            return _Buffer(name, "queue", memory, size_bytes, max(slots, most))
        return _Buffer(name, content, memory, size_bytes, frames, begin[1], end[1])

    def passage(self, made: Placement, moved: Transfer) -> tuple[_Moment, _Moment]:
        """Return when a transfer starts and ends."""
        start_ps = moved.lag * self.period_ps + picoseconds(moved.start_s)
        end_ps = moved.lag * self.period_ps + picoseconds(moved.end_s)
        if moved.resource is None:
            if self.mapping.period_s is not None or moved.lag == made.lag:
                start_ps = made.lag * self.period_ps + picoseconds(made.end_s)
            end_ps = start_ps + picoseconds(moved.time_s)
        return self.span(start_ps, end_ps, made.operator, 2)

    def start(self, at: Placement) -> _Moment:
        return self.turns[at.operator][0]

    def end(self, at: Placement) -> _Moment:
        return self.turns[at.operator][1]

    @cached_property
    def turns(self) -> dict[int, tuple[_Moment, _Moment]]:
        """Start and end of each operator."""
        turns = {}
        for at in self.mapping.placements:
            entry_ps = at.lag * self.period_ps
            times = entry_ps + picoseconds(at.start_s), entry_ps + picoseconds(at.end_s)
            turns[at.operator] = self.span(*times, at.operator, 0)
        return turns

    def span(self, start_ps: int, end_ps: int, operator: int, step: int) -> tuple[_Moment, _Moment]:
        """Return two moments; what takes no time begins and ends between others."""
        first, last = (2, 0) if end_ps > start_ps else (1, 1)
        begin, start_ps = divmod(start_ps, self.period_ps)
        end, end_ps = divmod(end_ps, self.period_ps)
        return (begin, (start_ps, first, operator, step)), (end, (end_ps, last, operator, step + 1))
