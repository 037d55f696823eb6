"""Where and when tensors and weights are stored: lifetimes on the circle of the period.

Frames enter once per period, so that all repeats on a circle of that length, and a tensor that
lives longer than a period is there several times.

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
- So does a graph input that is a state: it stays where it is read, at any time, one for each of the
  sequences that take turns. What a step makes of it is a graph output beside it until the step's
  end, and then takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as ByKey
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Literal, NamedTuple, Self

from parapipe.cost.cost_table import CostTable
from parapipe.cost.precision import type_there
from parapipe.graph.operator_graph import OperatorGraph, size_in_bytes
from parapipe.mappings.event_graph import picoseconds
from parapipe.mappings.mapping import Mapping, Placement, Transfer
from parapipe.mappings.segments import count_segments
from parapipe.platform.memories import MemorySystem


class WeightCopy(NamedTuple):
    """A weight where it is kept.

    Parameters
    ----------
    name
        Of the weight.
    memory
        Index of its memory.
    processor
        Index of the processor whose own copy it is; None if all in the memory use it.
    """

    name: str
    dtype: str
    memory: int
    processor: int | None


@dataclass(frozen=True)
class Storage:
    """What the tensors of a graph take, wherever they are.

    Parameters
    ----------
    processors
        Names, by the indices of mappings.
    working
        By processor: the type that it keeps converted tensors in, None for the model's own.
    """

    graph: OperatorGraph
    system: MemorySystem
    processors: tuple[str, ...]
    working: tuple[str | None, ...]
    _sizes: dict[tuple[str, int], int] = field(default_factory=dict, repr=False, compare=False)
    _weights: dict[tuple[int, int], dict[WeightCopy, int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, graph: OperatorGraph, costs: CostTable) -> Self:
        """Return the storage of a graph on the platform of its costs."""
        names = costs.processors
        system = costs.memory_system or MemorySystem.assumed_for(names)
        return cls(graph, system, names, costs.working or (None,) * len(names))

    def memory_of(self, p: int) -> int:
        """Return the memory of a processor."""
        return self.system.memory_of[self.processors[p]]

    def copies(self, name: str, p: int, q: int) -> bool:
        """Tell whether a tensor that goes from one processor to another is copied."""
        pair = self.processors[p], self.processors[q]
        return (
            self.memory_of(p) != self.memory_of(q)
            or pair in self.system.copying
            or self.type_of(name, p) != self.type_of(name, q)
        )

    def type_of(self, name: str, p: int) -> str:
        """Return the type that a processor keeps a tensor in."""
        return type_there(self.graph.tensors[name].dtype, self.working[p])

    def tensor_bytes(self, name: str, p: int) -> int:
        """Return what a tensor takes where a processor keeps it."""
        if (name, p) not in self._sizes:
            size_bytes = size_in_bytes(self.graph.tensors[name].shape, self.type_of(name, p)) or 0
            self._sizes[name, p] = self.system.size_bytes(self.memory_of(p), size_bytes)
        return self._sizes[name, p]

    def weights_bytes(self, mapping: Mapping) -> list[int]:
        """Return what the weights take in each memory, once for each copy."""
        total = [0] * len(self.system.names)
        for copy, size_bytes in self.weight_copies(mapping).items():
            total[copy.memory] += size_bytes
        return total

    def weight_copies(self, mapping: Mapping) -> dict[WeightCopy, int]:
        """Return the copies of weights that a mapping needs, with what each takes."""
        copies: dict[WeightCopy, int] = {}
        for at in mapping.placements:
            for p in mapping.replicas.get(at.processor, (at.processor,)):
                where = (at.operator, p)
                if where not in self._weights:
                    self._weights[where] = dict(self._weights_of(*where))
                copies.update(self._weights[where])
        return copies

    def segments_bytes(self, mapping: Mapping) -> list[int]:
        """Return what the segments take in each memory, beside tensors and weights."""
        total = [0] * len(self.system.names)
        if each_bytes := self.system.segment_bytes:
            for p, count in count_segments(mapping, self.graph).items():
                total[self.memory_of(p)] += count * each_bytes.get(self.processors[p], 0)
        return total

    def _weights_of(self, v: int, p: int) -> Iterator[tuple[WeightCopy, int]]:
        """Yield the weights that an operator needs on a processor."""
        operator, memory = self.graph.operators[v], self.memory_of(p)
        own = self.system.packing.get(self.processors[p])
        for name in (name for each in (operator, *operator.parts) for name in each.inputs):
            if constant := self.graph.constants.get(name):
                dtype = constant.stored or type_there(constant.dtype, self.working[p])
                stored_bytes = size_in_bytes(constant.shape, dtype) or 0
                content_bytes = (stored_bytes + constant.scale_bytes) * (own or 1)
                size_bytes = self.system.size_bytes(memory, content_bytes)
                yield WeightCopy(name, dtype, memory, None if own is None else p), size_bytes

    def least_bytes(self, costs: CostTable) -> int:
        """Return what any mapping needs: each weight once, and the operator with the most beside.

        Parameters
        ----------
        costs
            Say which processors run an operator.
        """
        weights: dict[str, int] = {}
        working_bytes = 0
        for v, operator in enumerate(self.graph.operators):
            runs = [p for p in range(len(self.processors)) if costs.time_s(v, p) < inf]
            for (name, *_), size_bytes in (each for p in runs for each in self._weights_of(v, p)):
                weights[name] = min(size_bytes, weights.get(name, size_bytes))
            names = {*self.graph.reads(operator), *filter(None, operator.outputs)}
            beside = (sum(self.tensor_bytes(name, p) for name in names) for p in runs)
            working_bytes = max(working_bytes, min(beside))
        return sum(weights.values()) + working_bytes


Content = Literal["tensor", "copy", "queue"]
Point = tuple[int, int, int, int]
"""A point on the circle: picoseconds, phase, operator, step.

What ends there goes before what starts; in between is what takes no time, in the order of the
operators.
"""
Moment = tuple[int, Point]
"""A number of a period, and a point in it."""


class Life(NamedTuple):  # thousands are made for each front
    """A tensor in a memory; the slots of a queue are there at any time.

    Parameters
    ----------
    processor
        The one that makes it, gets the copy, or reads the graph input first.
    frames
        How many of it there are just before the period begins; of a queue, its slots.
    begin, end
        Of frame 0, which enters at the begin of period 0.
    readers
        Those that read it here.
    other_end
        When all but these readers have done with it: maker, transfers, and who takes the outputs.
    """

    name: str
    content: Content
    memory: int
    size_bytes: int
    processor: int
    frames: int
    begin: Moment
    end: Moment
    readers: Sequence[Placement]
    other_end: Moment

    def alive(self, at: Point) -> int:
        """Return how many frames of it there are at a point of the circle."""
        if self.content == "queue":
            return self.frames
        return self.frames + (at >= self.begin[1]) - (at >= self.end[1])


@dataclass(frozen=True)
class Lives:
    """The lives of the tensors of a mapping.

    Parameters
    ----------
    storage
        Of the graph and the processors that the mapping is of.
    period_ps
        That of the mapping, in picoseconds.
    room
        Slots of queues by tensor and reading processor, where there are more than it takes.
    """

    mapping: Mapping
    storage: Storage
    period_ps: int
    room: ByKey[tuple[str, int], int] = field(default_factory=dict)

    def all(self) -> Iterator[Life]:
        """Yield those of graph inputs, then of what operators make, each with its copies."""
        graph, at = self.storage.graph, self.mapping.at
        first = min(map(self.start, at.values()))
        last = max(map(self.end, at.values()))
        moved: dict[str, dict[int, Transfer]] = {}
        for each in self.mapping.transfers:
            moved.setdefault(each.tensor, {}).setdefault(each.target, each)
        states = {*graph.inputs}.difference(graph.loaded)
        for name in graph.inputs:
            readers = [at[v] for v in graph.consumers.get(name, ())]
            slots = graph.sequences if name in states else 0
            end = last if name in graph.outputs else None
            yield from self.loaded(name, readers, first, end, slots)
        for name, maker in graph.producer.items():
            if name:
                readers = [at[v] for v in graph.consumers.get(name, ())]
                other_ends = [last] if name in graph.outputs else []
                yield from self.produced(name, at[maker], readers, moved.get(name, {}), other_ends)

    def loaded(
        self,
        name: str,
        readers: Sequence[Placement],
        first: Moment,
        last: Moment | None,
        slots: int = 0,
    ) -> Iterator[Life]:
        """Yield a graph input in each memory, and each data type, in which it is read.

        Parameters
        ----------
        slots
            Of a state, which is there at any time: one for each sequence; else 0.
        """
        groups: list[list[Placement]] = []
        for read in readers:
            p = read.processor
            same_copy = (g for g in groups if not self.storage.copies(name, g[0].processor, p))
            group = next(same_copy, None)
            if group is None:
                groups.append([read])
            else:
                group.append(read)
        for group in groups:
            yield self.life(name, group[0].processor, first, group, last or first, slots=slots)

    def produced(
        self,
        name: str,
        producer: Placement,
        readers: Sequence[Placement],
        moved: dict[int, Transfer],
        other_ends: Sequence[Moment],
    ) -> Iterator[Life]:
        """Yield what an operator makes, and the copies of it."""
        p, begin = producer.processor, self.start(producer)
        copied: dict[int, list[Placement]] = {}
        uncopied: list[Placement] = []
        for read in readers:
            q = read.processor
            copies = q != p and self.storage.copies(name, p, q)
            (copied.setdefault(q, []) if copies else uncopied).append(read)
        ends = [self.end(producer), *other_ends]
        for q, copy_readers in copied.items():
            leaves, arrives = self.transfer_span(producer, moved[q])
            ends.append(arrives)
            slots = self.slots(name, producer, copy_readers)
            yield self.life(name, q, leaves, copy_readers, arrives, content="copy", slots=slots)
        elsewhere = [read for read in uncopied if read.processor != p]
        yield self.life(
            name, p, begin, uncopied, max(ends), slots=self.slots(name, producer, elsewhere)
        )

    def slots(self, name: str, producer: Placement, readers: Sequence[Placement]) -> int:
        """Return the slots of the queue to readers of other lags; 0 if there are none."""
        queue_readers = (read for read in readers if read.lag != producer.lag)
        depths = (
            max(self.mapping.depth(producer, read), self.room.get((name, read.processor), 0))
            for read in queue_readers
        )
        return max(depths, default=0)

    def life(
        self,
        name: str,
        p: int,
        begin: Moment,
        readers: Sequence[Placement],
        other_end: Moment,
        *,
        content: Content = "tensor",
        slots: int = 0,
    ) -> Life:
        """Return a tensor where processor p keeps it, in a queue if that has slots."""
        memory, size_bytes = self.storage.memory_of(p), self.storage.tensor_bytes(name, p)
        end = max(other_end, *map(self.end, readers)) if readers else other_end
        frames = end[0] - begin[0]
        if slots:
            content, frames = "queue", max(slots, frames + (begin[1] < end[1]))
        return Life(name, content, memory, size_bytes, p, frames, begin, end, readers, other_end)

    def transfer_span(self, producer: Placement, transfer: Transfer) -> tuple[Moment, Moment]:
        """Return when a transfer starts and ends."""
        start_ps = transfer.lag * self.period_ps + picoseconds(transfer.start_s)
        end_ps = transfer.lag * self.period_ps + picoseconds(transfer.end_s)
        if transfer.resource is None:
            if self.mapping.period_s is not None or transfer.lag == producer.lag:
                start_ps = producer.lag * self.period_ps + picoseconds(producer.end_s)
            end_ps = start_ps + picoseconds(transfer.time_s)
        return self.span(start_ps, end_ps, producer.operator, 2)

    def start(self, at: Placement) -> Moment:
        """Return when an operator starts."""
        return self.turns[at.operator][0]

    def end(self, at: Placement) -> Moment:
        """Return when an operator ends."""
        return self.turns[at.operator][1]

    @cached_property
    def turns(self) -> dict[int, tuple[Moment, Moment]]:
        """Start and end of each operator."""
        turns = {}
        for at in self.mapping.placements:
            entry_ps = at.lag * self.period_ps
            times = entry_ps + picoseconds(at.start_s), entry_ps + picoseconds(at.end_s)
            turns[at.operator] = self.span(*times, at.operator, 0)
        return turns

    def span(self, start_ps: int, end_ps: int, operator: int, step: int) -> tuple[Moment, Moment]:
        """Return two moments; what takes no time begins and ends between others."""
        first, last = (2, 0) if end_ps > start_ps else (1, 1)
        begin, start_ps = divmod(start_ps, self.period_ps)
        end, end_ps = divmod(end_ps, self.period_ps)
        return (begin, (start_ps, first, operator, step)), (end, (end_ps, last, operator, step + 1))
