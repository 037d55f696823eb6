"""What is to be done for every frame, as a strategy sees it, and how far it has come.

Processors, tasks and tensors are numbers here. A task is what a processor does at one go: an
operator or a segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from math import exp, inf
from typing import Any, NamedTuple, TypeAlias, TypeVar

Value = TypeVar("Value")


class Job(NamedTuple):
    """A task for one frame, or for one of the micro-batches that the frame is split into."""

    task: int
    frame: int
    micro: int = 0


class MicroBatch(NamedTuple):
    """A share of a frame along its batch, by the frame and its number."""

    frame: int
    number: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """What one task makes and others read.

    Parameters
    ----------
    producer
        The task that makes it.
    moved_s
        Seconds to move it, by the processors that it goes from and to; 0 on the diagonal.
    shape
        Its dimensions, the outermost first; none if they are not known.
    """

    producer: int
    moved_s: tuple[tuple[float, ...], ...]
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """What the plan has a processor do in a round.

    Parameters
    ----------
    tasks
        In this order.
    processors
        Those that do it, frames in turn; mostly one.
    """

    tasks: tuple[int, ...]
    processors: tuple[int, ...]


def _grouped(count: int, pairs: Iterable[tuple[int, Value]]) -> tuple[tuple[Value, ...], ...]:
    """Return the values of pairs by their keys, which are numbers below a count."""
    groups: list[list[Value]] = [[] for _ in range(count)]
    for key, value in pairs:
        groups[key].append(value)
    return tuple(map(tuple, groups))


@dataclass(frozen=True)
class Work:
    """What is to be done for every frame.

    Parameters
    ----------
    processors, tasks
        Their names.
    time_s
        Predicted seconds by task and processor; infinite where the processor cannot run it.
    tensors
        Those that go from task to task.
    reads
        Tensors that each task reads.
    room
        (u, v, k): u may begin a frame once v has ended the frame k before and all earlier ones, so
        that no more than k frames of a tensor are held.
    orders
        What the plan has each processor do.
    lag
        Of each task: in round r, the plan has it done for frame r - lag.
    first
        Tasks that wait for a frame's admission.
    results
        (u, k): u may begin a frame once the results of the frame k before have been taken.
    batch
        How many images, sentences or the like a frame is.
    sized_s
        As `time_s`, by the sizes of micro-batches that a frame may be split into, and that several
        of them may have together.
    """

    processors: tuple[str, ...]
    tasks: tuple[str, ...]
    time_s: tuple[tuple[float, ...], ...]
    tensors: tuple[Tensor, ...]
    reads: tuple[tuple[int, ...], ...]
    room: tuple[tuple[int, int, int], ...]
    orders: tuple[Order, ...]
    lag: tuple[int, ...]
    first: frozenset[int]
    results: tuple[tuple[int, int], ...] = ()
    batch: int = 1
    sized_s: Mapping[int, tuple[tuple[float, ...], ...]] = field(default_factory=dict)

    def seconds(self, task: int, processor: int, size: int | None = None) -> float:
        """Return predicted seconds of a task; of a micro-batch of some size, if one is given."""
        times_s = self.time_s if size is None or size == self.batch else self.sized_s[size]
        return times_s[task][processor]

    def least_s(self, sizes: Sequence[int]) -> float:
        """Return what a frame that is split so keeps processors busy, with each task at its best.

        Whatever the strategy, n processors take at least 1 / n of it from frame to frame.
        """
        places = range(len(self.processors))
        return sum(
            min(self.seconds(task, p, size) for p in places)
            for task in range(len(self.tasks))
            for size in sizes
        )

    def runs(self, task: int, processor: int) -> bool:
        """Tell whether a processor can run a task."""
        return self.time_s[task][processor] < inf

    def own_s(self, processor: int) -> float:
        """Return predicted seconds of a frame's tasks that the plan has a processor do."""
        return sum(
            self.time_s[task][processor]
            for order in self.orders
            for task in order.tasks
            if processor in order.processors
        )

    def planned(self, job: Job) -> int:
        """Return the processor that the plan has do a job."""
        processors = self._order_of[job.task].processors
        return processors[job.frame % len(processors)]

    @cached_property
    def _order_of(self) -> dict[int, Order]:
        return {task: order for order in self.orders for task in order.tasks}

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """Tasks that each task reads from."""
        return tuple(
            tuple(dict.fromkeys(self.tensors[t].producer for t in read)) for read in self.reads
        )

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Tasks that read from each task."""
        pairs = ((u, v) for v, producers in enumerate(self.producers) for u in producers)
        return _grouped(len(self.tasks), pairs)

    @cached_property
    def makes(self) -> tuple[tuple[int, ...], ...]:
        """Tensors that each task makes for others."""
        pairs = ((tensor.producer, number) for number, tensor in enumerate(self.tensors))
        return _grouped(len(self.tasks), pairs)

    @cached_property
    def read_by(self) -> tuple[tuple[int, ...], ...]:
        """Tasks that read each tensor."""
        pairs = ((tensor, task) for task, read in enumerate(self.reads) for tensor in read)
        return _grouped(len(self.tensors), pairs)

    @cached_property
    def moves(self) -> bool:
        """Whether any tensor takes any time to move."""
        return any(any(map(any, tensor.moved_s)) for tensor in self.tensors)

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """How many tasks lie on the longest way to each task."""
        depths = [-1] * len(self.tasks)
        left = list(range(len(self.tasks)))
        while left:
            task = left[-1]
            missing = [u for u in self.producers[task] if depths[u] < 0]
            left += missing
            if not missing:
                left.pop()
                depths[task] = 1 + max((depths[u] for u in self.producers[task]), default=-1)
        return tuple(depths)

    @cached_property
    def holds(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Tasks that each task makes room for, and how many frames later."""
        return _grouped(len(self.tasks), ((v, (u, slots)) for u, v, slots in self.room))

    @cached_property
    def waits_for_room(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Tasks that each task waits for to have room, and how many frames before."""
        return _grouped(len(self.tasks), ((u, (v, slots)) for u, v, slots in self.room))

    @cached_property
    def waits(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """How many things each task waits for, and from which frames on for one more each.

        The former are producers and admission, the latter room and that of results.
        """
        rooms = [[slots for _, slots in waits] for waits in self.waits_for_room]
        for task, slots in self.results:
            rooms[task].append(slots)
        return tuple(
            (len(producers) + (task in self.first), tuple(rooms[task]))
            for task, producers in enumerate(self.producers)
        )

    def agenda(self, processor: int) -> Iterator[Job]:
        """Yield what the plan has a processor do, without an end."""
        order = next((each for each in self.orders if processor in each.processors), None)
        if order is None:
            return
        number, of = order.processors.index(processor), len(order.processors)
        for turn in count(min(self.lag[task] for task in order.tasks)):
            for task in order.tasks:
                frame = turn - self.lag[task]
                if frame >= 0 and frame % of == number:
                    yield Job(task, frame)


# Takes the arrays that pieces read and nobody of them makes, by name; returns those that are read
# elsewhere, by name.
Replace: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(slots=True)
class Frames:
    """Numbers of frames, most of them all those below a number."""

    below: int = 0
    others: set[int] = field(default_factory=set)

    def __contains__(self, frame: int) -> bool:
        return frame < self.below or frame in self.others

    def add(self, frame: int) -> None:
        """Add one."""
        if frame == self.below and not self.others:
            self.below += 1
            return
        self.others.add(frame)
        while self.below in self.others:
            self.others.remove(self.below)
            self.below += 1


@dataclass(slots=True)
class Place:
    """Where a tensor of a micro-batch is.

    Parameters
    ----------
    processor, made_s
        Who made it, and when.
    readers
        Tasks that are yet to read it.
    came_s
        By each processor that has asked for it: when it should have it, as predicted then, and when
        it really has it, which a strategy cannot know beforehand.
    """

    processor: int
    made_s: float
    readers: int
    came_s: dict[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(slots=True)
class Pace:
    """What a processor takes for its work, by what was predicted; the past fades.

    Parameters
    ----------
    window_s
        Of predicted seconds of work, after which a time counts e times less.
    """

    window_s: float
    took_s: float = 0.0
    predicted_s: float = 0.0

    def add(self, took_s: float, predicted_s: float) -> None:
        """Count something that has ended."""
        retained = exp(-predicted_s / self.window_s) if self.window_s else 0.0
        self.took_s = retained * self.took_s + took_s
        self.predicted_s = retained * self.predicted_s + predicted_s

    @property
    def factor(self) -> float:
        """How many times longer than predicted it takes; 1 as long as nothing is known."""
        return self.took_s / self.predicted_s if self.predicted_s else 1.0


class Running(NamedTuple):  # one is made for every job
    """What a processor does.

    Parameters
    ----------
    jobs
        Mostly one; several that it was given to do as one.
    begin_s, end_s
        When it should begin, once all that it reads has arrived, and when it should end: as
        predicted when the processor took it.
    replace
        What is called in their place, if anything.
    """

    jobs: tuple[Job, ...]
    begin_s: float
    end_s: float
    replace: Replace | None = None

    @property
    def job(self) -> Job:
        """The only job, or the first."""
        return self.jobs[0]

    @property
    def time_s(self) -> float:
        """What was predicted for them."""
        return self.end_s - self.begin_s
