"""A modulo schedule with other orders of jobs, for less latency or less buffered data.

Near the least period processors have no gaps, and placing work by work leaves a frame waiting for
most of a period between many operators. Here the work of each resource is a circle without gaps
that begins anywhere, and what comes too early for its inputs goes one period later. Simulated
annealing moves work within its circle. For less memory, the cost is what is buffered.

A tensor is buffered from the start of the operator that makes it to the end of the last one that
reads it. If a reader on another processor works at another frame lag, there is a queue, whose slots
all take memory at any time. The mean over a period is quick to find and falls with the peak.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import exp
from typing import NamedTuple

from parapipe.modulo.cyclic_problem import CyclicProblem, ModuloSchedule
from parapipe.modulo.modulo_schedules import Jobs, soon_read, tighten, topological

PIECES = 250_000
CHANGES = 100  # for each operator, at most: few operators have few orders
WARMTH = 0.03  # share of the cost that a change may add at the beginning
FAR = 0.4  # share of moves to anywhere in the circle; the others are short
TURNS = 0.1  # share of changes that turn the circle, by some of the period:
TURN = 0.05

Cost = Callable[[Sequence[int]], float]
"""What starts of all work cost; less is better."""


def reorder_jobs(
    cyclic: CyclicProblem, schedule: ModuloSchedule, seed: int, pieces: int = PIECES
) -> ModuloSchedule:
    """Return a schedule of the same assignment and period with less latency, or the same one.

    Parameters
    ----------
    seed
        Of all random choices.
    pieces
        Of work, or operators, whose starts are worked out, at most.
    """
    jobs = Jobs.of(cyclic, schedule.processor)

    count, time = cyclic.operators, jobs.time
    first = [v for v in range(count) if not jobs.before[v]]
    last = [v for v in range(count) if not jobs.after[v]]

    def cost(start: Sequence[int]) -> float:
        if cyclic.frames:
            end = [start[v] + time[v] for v in range(count)]
            return cyclic.frames.cost(schedule.period, start, end)
        return max([start[v] + time[v] for v in last]) - min([start[v] for v in first])

    start = jobs.starts(schedule)
    orders = Orders(jobs, schedule.period, start, cost)
    changes = min(pieces // len(start), CHANGES * count)
    best = orders.annealed(random.Random(seed), changes, WARMTH)
    other = jobs.schedule(schedule.period, tighten(jobs, schedule.period, best))
    return (
        other if cyclic.cost(other) < cyclic.cost(schedule) and soon_read(jobs, other) else schedule
    )


class Orders:
    """The order of work on each resource, where it begins in the period, and what follows.

    Parameters
    ----------
    start
        Of each work, in any period.
    cost
        What is made less.
    idle
        Whether times without work keep their places, too, and are moved like work; else the work
        of each resource is put together.
    """

    def __init__(
        self, jobs: Jobs, period: int, start: Sequence[int], cost: Cost, *, idle: bool = False
    ) -> None:
        self.jobs, self.period, self.cost = jobs, period, cost
        self.time = [*jobs.time]
        sequence = topological(jobs.cyclic, jobs.routes)
        self.reads = [(w, [(u, self.time[u] + gap) for u, gap in jobs.before[w]]) for w in sequence]
        self.on: dict[int, list[int]] = {}
        for w, resource in enumerate(jobs.resource):
            self.on.setdefault(resource, []).append(w)
        for order in self.on.values():
            order.sort(key=lambda w: start[w] % period)
        self.begin = {r: start[order[0]] % period for r, order in self.on.items()}
        if idle:
            self.on = {r: [*self._with_gaps(order, start)] for r, order in self.on.items()}
        self.number = dict.fromkeys(range(len(self.time)), len(sequence))  # times without work last
        self.number.update({w: number for number, w in enumerate(sequence)})
        self.at = [0] * len(self.time)
        for resource in self.on:
            self.place(resource)
        self.start = self.starts(start, 0)

    def _with_gaps(self, order: Sequence[int], start: Sequence[int]) -> Iterator[int]:
        """Yield work and, as work of their own, the times without any between."""
        for w, following in pairwise([*order, order[0]]):
            yield w
            distance = (start[following] - start[w]) % self.period or self.period
            if distance > self.time[w]:
                self.time.append(distance - self.time[w])
                yield len(self.time) - 1

    def place(self, resource: int) -> None:
        """Put the work of a resource one behind the other."""
        at = self.begin[resource]
        for w in self.on[resource]:
            self.at[w] = at
            at += self.time[w]

    def starts(self, previous: Sequence[int], first: int) -> list[int]:
        """Let all work start at its turn once its inputs are there.

        Parameters
        ----------
        previous
            Starts of the work that comes before the one of number `first`, makers before readers.
        """
        start, period, at = [*previous], self.period, self.at
        for w, reads in islice(self.reads, first, None):
            ready = 0
            for u, time in reads:
                end = start[u] + time
                if end > ready:  # noqa: PLR1730 - faster than max(), and run most often
                    ready = end
            start[w] = ready + (at[w] - ready) % period
        return start

    def annealed(self, draw: random.Random, changes: int, warmest: float) -> list[int]:
        """Return the starts of least cost that so many changes find.

        Parameters
        ----------
        warmest
            Share of the cost that a change may add at the beginning.
        """
        now = least = self.cost(self.start)
        best = self.start
        resources = [*self.on]
        for i in range(changes):
            warmth = now * warmest * (1 - i / changes)
            resource = draw.choice(resources)
            order, begin = self.on[resource], self.begin[resource]
            old, at, moved = [*order], [*self.at], order
            if draw.random() < TURNS:
                self.begin[resource] = (
                    begin + int(draw.gauss(0, TURN) * self.period)
                ) % self.period
            else:
                moved = self._move(order, draw)
            self.place(resource)
            start = self.starts(self.start, min([self.number[w] for w in moved]))
            then = self.cost(start)
            if then <= now or draw.random() < exp((now - then) / max(warmth, 1)):
                now, self.start = then, start
                if now < least:
                    least, best = now, start
            else:
                order[:], self.begin[resource], self.at = old, begin, at
        return best

    @staticmethod
    def _move(order: list[int], draw: random.Random) -> list[int]:
        """Move work to another turn; return all whose turn has changed."""
        last = len(order) - 1
        source = draw.randint(0, last)
        near = min(last, max(0, source + draw.choice((-3, -2, -1, 1, 2, 3))))
        target = draw.randint(0, last) if draw.random() < FAR else near
        order.insert(target, order.pop(source))
        return order[min(source, target) : max(source, target) + 1]


BUFFER_WARMTH = 0.005  # share of what is buffered that a change may add at the beginning
BUFFER_CHANGES = 100  # at most, for each job: few jobs have few orders


@dataclass(frozen=True, slots=True)
class Sizes:
    """What tensors count for.

    Parameters
    ----------
    size
        Of a flow where a processor keeps it: bytes, or shares of a limit.
    copied
        Whether a flow is copied from one processor to another.
    """

    size: Callable[[int, int], float]
    copied: Callable[[int, int, int], bool]


class _Life(NamedTuple):  # looked at most often
    """A tensor, or a copy, in one place.

    Parameters
    ----------
    begin
        After the maker's start.
    least
        How long it is there at least.
    readers, across
        All of them, and those on other processors than the maker.
    """

    size: float
    maker: int
    begin: int
    least: int
    readers: tuple[int, ...]
    across: tuple[int, ...]


class BufferedData:
    """What an assignment buffers, by the starts of its jobs.

    Parameters
    ----------
    jobs
        On these processors, at this period.
    """

    def __init__(self, jobs: Jobs, period: int, sizes: Sizes) -> None:
        self.jobs, self.period = jobs, period
        self.lives: list[_Life] = []
        for flow, tensor in enumerate(jobs.cyclic.problem.flows):
            if tensor.producer is not None:
                self._add(flow, tensor.producer, tensor.consumers, sizes)

    def _add(self, flow: int, maker: int, readers: Sequence[int], sizes: Sizes) -> None:
        cyclic, place, time = self.jobs.cyclic, self.jobs.place, self.jobs.time
        p = place[maker]
        copies: dict[int, list[int]] = {}
        here: list[int] = []
        for v in readers:
            q = place[v]
            (copies.setdefault(q, []) if q != p and sizes.copied(flow, p, q) else here).append(v)
        arrives = time[maker] + max((cyclic.delay[flow][p][q] for q in copies), default=0)
        across = tuple(v for v in here if place[v] != p)
        self.lives.append(_Life(sizes.size(flow, p), maker, 0, arrives, tuple(here), across))
        for q, there in copies.items():
            delay, to = cyclic.delay[flow][p][q], tuple(there)
            self.lives.append(_Life(sizes.size(flow, q), maker, time[maker], delay, to, to))

    def mean(self, start: Sequence[int]) -> float:
        """Return the mean over a period of what is buffered."""
        time, period = self.jobs.time, self.period
        first = min(start[: self.jobs.cyclic.operators])
        total = 0.0
        for size, maker, begin, least, readers, across in self.lives:
            begin_of_life = start[maker]
            life = least
            for v in readers:
                until = start[v] + time[v] - begin_of_life - begin
                if until > life:  # noqa: PLR1730 - faster than max(), and run most often
                    life = until
            lag, slots = (begin_of_life - first) // period, 0
            for v in across:
                if (start[v] - first) // period != lag:
                    slots = max(slots, 2, -(-(start[v] + time[v] - begin_of_life) // period))
            if slots:
                life = max(slots, -(-life // period)) * period
            total += size * life
        return total / period


def less_buffered(
    cyclic: CyclicProblem, schedule: ModuloSchedule, sizes: Sizes, seed: int, pieces: int
) -> list[ModuloSchedule]:
    """Return schedules of the same assignment and period that buffer less, as far as found.

    Parameters
    ----------
    seed
        Of all random choices.
    pieces
        Of work, or operators, whose starts are worked out.
    """
    jobs, period = Jobs.of(cyclic, schedule.processor), schedule.period
    start = jobs.starts(schedule)
    buffered = BufferedData(jobs, period, sizes)
    orders = Orders(jobs, period, start, buffered.mean, idle=True)
    changes = min(pieces // len(start), BUFFER_CHANGES * len(start))
    best = orders.annealed(random.Random(seed), changes, BUFFER_WARMTH)
    schedules = (jobs.schedule(period, each) for each in (best, tighten(jobs, period, best)))
    return [each for each in schedules if soon_read(jobs, each)]
