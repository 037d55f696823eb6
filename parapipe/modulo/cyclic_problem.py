"""A network whose operators repeat every period, and its schedules, in whole nanoseconds.

A pattern repeats every period T and holds n frames of a model, which come at intervals of T / n.
When the first one comes is free; so is which frame of the pattern is which, and a frame may be a
period older. What of a frame starts first may do so when it has come, and the latency of a model is
that of the frame that takes longest, from when it comes to its last end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import ceil, inf

from parapipe.solvers.problem import NANO, ROUNDING, MappingProblem

Span = tuple[int, int]  # first start and last end of a frame


@dataclass(frozen=True)
class Frames:
    """Which frame each operator is of.

    Parameters
    ----------
    operators
        Of one frame of each model; a pattern's operators are those of the first model's frames, one
        after the other, then those of the next one's.
    counts
        Frames of each model in a pattern.
    urgency
        What a nanosecond of latency counts, by model.
    phase
        When the first frame of each model comes, as a share of the period: to begin with.
    """

    operators: tuple[int, ...]
    counts: tuple[int, ...]
    urgency: tuple[float, ...]
    phase: tuple[float, ...] = ()

    @cached_property
    def of(self) -> tuple[int, ...]:
        """Frame of each operator."""
        return tuple(frame for frame, begin, end in self._ranges for _ in range(begin, end))

    @cached_property
    def model(self) -> tuple[int, ...]:
        """Model of each frame."""
        return tuple(model for model, count in enumerate(self.counts) for _ in range(count))

    @cached_property
    def _ranges(self) -> tuple[tuple[int, int, int], ...]:
        ranges, begin = [], 0
        for frame, model in enumerate(self.model):
            ranges.append((frame, begin, begin + self.operators[model]))
            begin += self.operators[model]
        return tuple(ranges)

    @cached_property
    def weight(self) -> tuple[float, ...]:
        """What a nanosecond counts until each operator ends."""
        return tuple(self.urgency[self.model[frame]] for frame in self.of)

    def arrivals(self, period: int) -> tuple[int, ...]:
        """Return when each operator's frame comes, to begin with."""
        phase = self.phase or (0.0,) * len(self.counts)
        at = [
            int(share * period) + number * period // count
            for share, count in zip(phase, self.counts, strict=True)
            for number in range(count)
        ]
        return tuple(at[frame] for frame in self.of)

    def spans(self, start: Sequence[int], end: Sequence[int]) -> list[Span]:
        """Return when each frame starts and ends."""
        return [(min(start[a:b]), max(end[a:b])) for _, a, b in self._ranges]

    def cost(self, period: int, start: Sequence[int], end: Sequence[int]) -> float:
        """Return what latencies count: the most urgent one, and a little of all others."""
        latencies = self.latencies(period, self.spans(start, end))
        counted = [each * urgent for each, urgent in zip(latencies, self.urgency, strict=True)]
        return max(counted) + sum(counted) / 100

    def latencies(self, period: int, spans: Sequence[Span]) -> list[int]:
        """Return the latency of each model."""
        if len(spans) == len(self.counts):  # a frame of each: the most frequent case
            return [end - begin for begin, end in spans]
        return [latency for _, latency in self.served(period, spans)]

    def served(self, period: int, spans: Sequence[Span]) -> list[tuple[tuple[int, ...], int]]:
        """Return when each model's frames come, one by one as in the pattern, and its latency.

        A frame comes at most a period before its first start; none comes later than that.
        """
        by_model, begin = [], 0
        for count in self.counts:
            own = spans[begin : begin + count]
            order = sorted(range(count), key=lambda frame: (own[frame][0] % period, frame))
            due = {frame: rank * period // count for rank, frame in enumerate(order)}
            first = min(at % period - due[frame] for frame, (at, _) in enumerate(own))
            arrivals = tuple(
                at // period * period + first + due[frame] for frame, (at, _) in enumerate(own)
            )
            latency = max(end - arrival for (_, end), arrival in zip(own, arrivals, strict=True))
            by_model.append((arrivals, latency))
            begin += count
        return by_model


NEVER = 1 << 61  # ns


@dataclass(frozen=True)
class CyclicProblem:
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
        return tuple(tuple(max(1, ceil_ns(t)) for t in row) for row in self.problem.time_s)

    @cached_property
    def delay(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Time of each flow's transfer from one processor to another."""
        matrices: dict[object, tuple[tuple[int, ...], ...]] = {}
        delays = []
        for flow in self.problem.flows:
            matrix = flow.transfer_s
            if matrix not in matrices:
                matrices[matrix] = tuple(tuple(map(ceil_ns, row)) for row in matrix)
            delays.append(matrices[matrix])
        return tuple(delays)

    @cached_property
    def rounding_s(self) -> float:
        """What rounding may add to a latency: for each operator and tensor, where it adds most."""
        pairs = [*zip(self.time, self.problem.time_s, strict=True)]
        for flow, delay in zip(self.problem.flows, self.delay, strict=True):
            row = chain.from_iterable
            pairs.append((tuple(row(delay)), tuple(row(flow.transfer_s))))
        added = (
            max(rounded_ns - s * NANO for rounded_ns, s in zip(*each, strict=True) if s < inf)
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
        flows: list[list[int]] = [[] for _ in range(self.operators)]
        for i, flow in enumerate(self.problem.flows):
            if flow.producer is not None:
                for v in flow.consumers:
                    flows[v].append(i)
        return tuple(map(tuple, flows))

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """Operators that each operator reads from."""
        return tuple(frozenset(self.maker[f] for f in flows) for flows in self.reads)

    @cached_property
    def after(self) -> tuple[frozenset[int], ...]:
        """Operators that read from each operator."""
        readers: list[set[int]] = [set() for _ in range(self.operators)]
        for v, makers in enumerate(self.before):
            for u in makers:
                readers[u].add(v)
        return tuple(map(frozenset, readers))

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
        resources = {}
        for i, flow in enumerate(self.problem.flows):
            if flow.producer is None:
                continue
            p = place[flow.producer]
            for v in flow.consumers:
                resource = self.resource[p][place[v]]
                if resource is not None and self.delay[i][p][place[v]]:
                    resources[i, place[v]] = resource
        return resources

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


def ceil_ns(time_s: float) -> int:
    """Return seconds in nanoseconds, rounded up; `NEVER` if they are infinite."""
    return NEVER if time_s == inf else ceil(time_s * NANO - ROUNDING)
