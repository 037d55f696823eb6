"""A network whose operators repeat every period, and its schedules, in whole nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import ceil, inf

from parapipe.mapping.interleaved.frames import Frames
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.units import NANO, ROUNDING

NEVER = 1 << 61  # ns


@dataclass(frozen=True)
class Cyclic:
    """A mapping problem in nanoseconds, rounded up; what takes no time takes one of them.

    Its tensors from outside are available everywhere.

    Parameters
    ----------
    frames
        If a period holds frames of several models, or several of one; else it holds one frame,
        which comes at 0.
    """

    problem: MappingProblem
    frames: Frames | None = None

    @property
    def operators(self) -> int:
        """Number of operators."""
        return self.problem.operators

    @property
    def processors(self) -> int:
        """Number of processors."""
        return self.problem.processors

    @cached_property
    def time(self) -> tuple[tuple[int, ...], ...]:
        """Time of each operator on each processor; `NEVER` where it is not supported."""
        return tuple(tuple(max(1, whole(t)) for t in row) for row in self.problem.time_s)

    @cached_property
    def delay(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Time of each flow's transfer from one processor to another."""
        known: dict[object, tuple[tuple[int, ...], ...]] = {}
        found = []
        for flow in self.problem.flows:
            matrix = flow.transfer_s
            if matrix not in known:
                known[matrix] = tuple(tuple(map(whole, row)) for row in matrix)
            found.append(known[matrix])
        return tuple(found)

    @cached_property
    def rounding_s(self) -> float:
        """What rounding may add to a latency: for each operator and tensor, where it adds most."""
        pairs = [*zip(self.time, self.problem.time_s, strict=True)]
        for flow, delay in zip(self.problem.flows, self.delay, strict=True):
            row = chain.from_iterable
            pairs.append((tuple(row(delay)), tuple(row(flow.transfer_s))))
        added = (
            max(whole_ns - s * NANO for whole_ns, s in zip(*each, strict=True) if s < inf)
            for each in pairs
        )
        return sum(added) / NANO

    @cached_property
    def maker(self) -> tuple[int, ...]:
        """Operator that makes each flow."""
        return tuple(-1 if f.producer is None else f.producer for f in self.problem.flows)

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Flows that each operator reads from others."""
        found: list[list[int]] = [[] for _ in range(self.operators)]
        for i, flow in enumerate(self.problem.flows):
            if flow.producer is not None:
                for v in flow.consumers:
                    found[v].append(i)
        return tuple(map(tuple, found))

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """Operators that each operator reads from."""
        return tuple(frozenset(self.maker[f] for f in flows) for flows in self.reads)

    @cached_property
    def after(self) -> tuple[frozenset[int], ...]:
        """Operators that read from each operator."""
        found: list[set[int]] = [set() for _ in range(self.operators)]
        for v, makers in enumerate(self.before):
            for u in makers:
                found[u].add(v)
        return tuple(map(frozenset, found))

    @cached_property
    def resource(self) -> tuple[tuple[int | None, ...], ...]:
        """What a transfer from one processor to another keeps busy."""
        count = range(self.processors)
        return tuple(tuple(self.problem.resource_of(p, q) for q in count) for p in count)

    @cached_property
    def critical_path(self) -> int:
        """No frame takes less: every operator where it is fastest, transfers for nothing."""
        end = [0] * self.operators
        for v, makers in enumerate(self.before):
            end[v] = max((end[u] for u in makers), default=0) + min(self.time[v])
        return max(end)

    def arrivals(self, period: int) -> tuple[int, ...]:
        """Return when each operator's frame comes: at first, for a better time may be found."""
        return self.frames.arrivals(period) if self.frames else (0,) * self.operators

    @cached_property
    def weight(self) -> tuple[float, ...]:
        """What a nanosecond counts until each operator ends."""
        return self.frames.weight if self.frames else (1,) * self.operators

    def cost(self, schedule: ModuloSchedule) -> float:
        """Return what is to be least of schedules of one period: the latency."""
        if self.frames is None:
            return schedule.latency
        end = [
            at + self.time[v][p]
            for v, (at, p) in enumerate(zip(schedule.start, schedule.processor, strict=True))
        ]
        return self.frames.cost(schedule.period, schedule.start, end)

    def moves(self, place: Sequence[int]) -> dict[tuple[int, int], int]:
        """Return the transfers that keep something busy: the resource by flow and target."""
        found = {}
        for i, flow in enumerate(self.problem.flows):
            if flow.producer is None:
                continue
            p = place[flow.producer]
            for v in flow.consumers:
                resource = self.resource[p][place[v]]
                if resource is not None and self.delay[i][p][place[v]]:
                    found[i, place[v]] = resource
        return found

    def loads(self, place: Sequence[int]) -> list[int]:
        """Return how long each resource is busy for a frame; the largest is the least period."""
        busy = [0] * self.problem.resources
        for v, p in enumerate(place):
            busy[p] += self.time[v][p]
        for (flow, target), resource in self.moves(place).items():
            busy[resource] += self.delay[flow][place[self.maker[flow]]][target]
        return busy


@dataclass(frozen=True, slots=True)
class ModuloSchedule:
    """Where every operator runs, and when for the frame that enters at 0.

    Parameters
    ----------
    period
        Nanoseconds between frames.
    processor, start
        Of each operator.
    moved
        Start of each transfer that keeps something busy, by flow and target.
    latency
        Nanoseconds from the first start to the last end of a frame.
    """

    period: int
    processor: tuple[int, ...]
    start: tuple[int, ...]
    moved: tuple[tuple[tuple[int, int], int], ...]
    latency: int


def whole(time_s: float) -> int:
    """Return seconds in nanoseconds, rounded up; `NEVER` if they are infinite."""
    return NEVER if time_s == inf else ceil(time_s * NANO - ROUNDING)
