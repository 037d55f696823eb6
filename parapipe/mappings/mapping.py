"""A whole mapping: where and when every operator runs, what moves between processors, how often.

Times are seconds from the start of a stage, and each stage works one period behind the one before:
its operators have the next *frame lag*. In round r, an operator of lag l works on frame r - l. So a
stage is what has one lag. A mapping may also be made for a period that all processors share: times
then count from the start of that period, and an operator that starts in one period may end in the
next. So stages may hand over while both ends work on other frames, and where a processor serves
several lags, operators of different frames take turns on it (*interleaved*).

A *replicated* stage is one that identical processors take turns on: r of them work on r frames at
once, frame n on the one number n modulo r. Its placements name the first of them. A frame stays
for r periods, so the next stage has a lag that is greater by r.

Everything else that one may ask of a mapping is derived here, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import Literal

Kind = Literal["sequential", "pipe-only", "para-only", "hybrid", "interleaved", "replicated"]
LEAST_SLOTS = 2  # of a channel: with one, those at its ends would never work at the same time
ROUNDING = 1e-9  # share of a period by which sums of times may be off


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when one operator runs.

    Parameters
    ----------
    operator
        Index into the graph's operators, or into the plan's.
    processor
        Index into the platform's processors, or into the plan's.
    start_s, end_s
        Seconds from the start of the stage, or of the period that the mapping is made for. The end
        may then lie in the next period.
    lag
        Periods between a frame's entry and the operator's turn.
    """

    operator: int
    processor: int
    start_s: float
    end_s: float
    lag: int = 0

    @property
    def in_order(self) -> tuple[float, float, int]:
        """By what a processor orders its work; what takes no time goes first."""
        return self.start_s, self.end_s, self.operator


@dataclass(frozen=True, slots=True)
class Transfer:
    """A tensor that goes to another processor, once for all that read it there.

    Parameters
    ----------
    tensor
        Name of the tensor.
    producer
        Operator that makes it.
    source, target
        Processors that it goes from and to.
    lag
        The least of its readers on the target.
    time_s
        Seconds that it takes.
    resource
        What it keeps busy: a processor's index, or a shared link's behind those. None if it only
        delays its readers.
    start_s, end_s
        When it keeps that busy, counted as for the readers.
    """

    tensor: str
    producer: int
    source: int
    target: int
    lag: int
    time_s: float
    resource: int | None = None
    start_s: float = 0.0
    end_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor that one operator makes and another one reads.

    Parameters
    ----------
    producer, consumer
        Operators.
    transfer
        Index into the mapping's transfers; None if both run on one processor, or a copy is there.
    """

    producer: int
    consumer: int
    transfer: int | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A state: what an operator makes of a frame, another one reads for a later frame.

    Parameters
    ----------
    state
        Name of the graph input that it is for the reader.
    producer, consumer
        Operators.
    frames
        How many frames later it is read: the sequences that take turns.
    time_s
        Seconds that it moves, if it has to.
    """

    state: str
    producer: int
    consumer: int
    frames: int
    time_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What works on one frame: all placements of one lag.

    Parameters
    ----------
    lag
        Periods between a frame's entry and its turn here.
    processors
        Those that run at least one operator, ascending.
    placements
        In order of start.
    transfers
        Those to its processors, in order of start.
    time_s
        Seconds until the last operator has ended, transfers from earlier stages included.
    shared
        Whether one of its processors serves another lag too.
    replicas
        Processors that take turns on it, its own one first; none if it is not replicated.
    """

    lag: int
    processors: tuple[int, ...]
    placements: tuple[Placement, ...]
    transfers: tuple[Transfer, ...]
    time_s: float
    shared: bool
    replicas: tuple[int, ...] = ()

    @property
    def every_s(self) -> float:
        """Least seconds between its frames: its time, shared among the replicas."""
        return self.time_s / max(1, len(self.replicas))


@dataclass(frozen=True)
class Mapping:
    """Placements, transfers and the period.

    Parameters
    ----------
    placements
        Each operator once.
    transfers, edges
        What goes between the operators, and how.
    period_s
        Seconds between frames that the times were made for. None where stages follow each other:
        then the longest of them is the period.
    replicated
        Groups of identical processors that take turns on frames, each in that order: operators are
        placed on the first.
    feedback
        States that later frames read.
    """

    placements: tuple[Placement, ...]
    transfers: tuple[Transfer, ...] = ()
    edges: tuple[Edge, ...] = ()
    period_s: float | None = None
    replicated: tuple[tuple[int, ...], ...] = ()
    feedback: tuple[Feedback, ...] = ()

    @cached_property
    def at(self) -> dict[int, Placement]:
        """Placement of each operator."""
        return {each.operator: each for each in self.placements}

    @cached_property
    def processors(self) -> tuple[int, ...]:
        """Processors that run at least one operator, ascending."""
        placed = {each.processor for each in self.placements}
        return tuple(sorted(placed.union(*self.replicated)))

    @cached_property
    def replicas(self) -> dict[int, tuple[int, ...]]:
        """Group of each processor that is the first of one."""
        return {group[0]: group for group in self.replicated}

    @cached_property
    def lags(self) -> dict[int, tuple[int, ...]]:
        """Lags that each processor serves, ascending; of replicas, the first one's alone."""
        served: dict[int, set[int]] = {}
        for each in sorted(self.placements, key=lambda each: each.processor):
            served.setdefault(each.processor, set()).add(each.lag)
        return {p: tuple(sorted(lags)) for p, lags in served.items()}

    @cached_property
    def orders(self) -> dict[int, tuple[Placement, ...]]:
        """What each processor runs in a period, in its order; of replicas, the first one alone."""
        orders: dict[int, list[Placement]] = {p: [] for p in self.lags}
        for each in sorted(self.placements, key=lambda each: each.in_order):
            orders[each.processor].append(each)
        return {p: tuple(order) for p, order in orders.items()}

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """What works on one frame, by ascending lag."""
        return tuple(self._stages())

    def _stages(self) -> Iterator[Stage]:
        for lag in sorted({each.lag for each in self.placements}):
            placed = [each for each in self.placements if each.lag == lag]
            used = tuple(sorted({each.processor for each in placed}))
            yield Stage(
                lag,
                used,
                tuple(sorted(placed, key=lambda each: each.in_order)),
                tuple(
                    sorted(
                        (each for each in self.transfers if each.lag == lag),
                        key=lambda each: (each.start_s, each.end_s, each.tensor, each.target),
                    )
                ),
                max(each.end_s for each in placed),
                any(len(self.lags[p]) > 1 for p in used),
                next((self.replicas[p] for p in used if p in self.replicas), ()),
            )

    @cached_property
    def groups(self) -> tuple[tuple[Stage, ...], ...]:
        """Stages put together that share processors, directly or by others between them.

        All of them if the mapping is made for a period: nothing then begins or ends with a stage.
        """
        if self.period_s is not None:
            return (self.stages,)
        groups: list[tuple[Stage, ...]] = []
        reach = -1
        for stage in self.stages:
            if stage.lag > reach:
                groups.append(())
            groups[-1] = (*groups[-1], stage)
            reach = max(reach, *(self.lags[p][-1] for p in stage.processors))
        return tuple(groups)

    def with_replicas(self, replicated: Sequence[tuple[int, ...]]) -> Mapping:
        """Return the same plain stages, with groups of processors that take turns on frames."""
        if not replicated:
            return self
        mapping = replace(self, replicated=tuple(replicated))
        more = (len(stage.replicas) - 1 if stage.replicas else 0 for stage in mapping.stages)
        lags = dict(zip((s.lag for s in mapping.stages), accumulate(more, initial=0), strict=False))
        return replace(
            mapping,
            placements=tuple(replace(p, lag=p.lag + lags[p.lag]) for p in self.placements),
            transfers=tuple(replace(t, lag=t.lag + lags[t.lag]) for t in self.transfers),
        )

    def renumbered(self, operators: Sequence[int], resources: Sequence[int]) -> Mapping:
        """Return the same with other numbers for operators and for processors and links."""
        return replace(
            self,
            placements=tuple(
                replace(p, operator=operators[p.operator], processor=resources[p.processor])
                for p in self.placements
            ),
            transfers=tuple(
                replace(
                    t,
                    producer=operators[t.producer],
                    source=resources[t.source],
                    target=resources[t.target],
                    resource=None if t.resource is None else resources[t.resource],
                )
                for t in self.transfers
            ),
            edges=tuple(
                replace(e, producer=operators[e.producer], consumer=operators[e.consumer])
                for e in self.edges
            ),
            replicated=tuple(tuple(resources[p] for p in group) for group in self.replicated),
            feedback=tuple(
                replace(f, producer=operators[f.producer], consumer=operators[f.consumer])
                for f in self.feedback
            ),
        )

    @cached_property
    def kind(self) -> Kind:
        """What the stages amount to."""
        if any(stage.shared for stage in self.stages):
            return "interleaved"
        if self.replicated:
            return "replicated"
        return kind_of([len(stage.processors) for stage in self.stages])

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first start to the last end of a frame, stages one period apart."""
        period_s = self.period_s or 0.0
        starts_s = [each.lag * period_s + each.start_s for each in self.placements]
        ends_s = [each.lag * period_s + each.end_s for each in self.placements]
        return max(ends_s) - min(starts_s)

    def loop_s(self, feedback: Feedback) -> float:
        """Seconds from the start of what reads a state until it is there for the next step.

        Stages count one behind the other, as in the latency, or a period apart if times are made
        for one. 0 if the state is there before it is read.
        """
        begin, end = self.at[feedback.consumer], self.at[feedback.producer]
        base_s = self._stage_bases_s
        end_s = base_s[end.lag] + end.end_s + feedback.time_s
        return max(0.0, end_s - base_s[begin.lag] - begin.start_s)

    @cached_property
    def longest_loop(self) -> tuple[float, Feedback] | None:
        """The state whose loop takes longest, with its seconds; None if there is none."""
        loops = [(self.loop_s(each), each) for each in self.feedback]
        return max(loops, key=lambda loop: loop[0], default=None)

    @cached_property
    def _stage_bases_s(self) -> dict[int, float]:
        """When the stage of each lag begins, after the first one."""
        lags = [stage.lag for stage in self.stages]
        if self.period_s is not None:
            return {lag: lag * self.period_s for lag in lags}
        starts_s = accumulate((stage.time_s for stage in self.stages), initial=0.0)
        return dict(zip(lags, starts_s, strict=False))

    def slots(self, edge: Edge) -> int:
        """Frames of a tensor that are buffered at once between two operators."""
        return self.depth(self.at[edge.producer], self.at[edge.consumer])

    @cached_property
    def channel_slots(self) -> tuple[int, ...]:
        """Frames that each transfer's channel holds at once, with whatever reads what it brings."""
        slots = [LEAST_SLOTS] * len(self.transfers)
        for edge in self.edges:
            if edge.transfer is not None:
                slots[edge.transfer] = max(slots[edge.transfer], self.slots(edge))
        return tuple(slots)

    def last_lag(self, placement: Placement) -> int:
        """Lag of the period in which an operator of a plain stage ends at the latest."""
        return placement.lag + len(self.replicas.get(placement.processor, (0,))) - 1

    def depth(self, producer: Placement, consumer: Placement) -> int:
        """Frames of a tensor that are buffered at once between its maker and a reader.

        Where times are made for a period, as many as are begun while one is buffered: whoever makes
        the next one then starts when its time says so, and the period is kept.
        """
        if self.period_s is None:
            return channel_depth(producer.lag, self.last_lag(consumer))
        periods = (consumer.end_s - producer.start_s) / self.period_s - ROUNDING
        return max(LEAST_SLOTS, consumer.lag - producer.lag + ceil(periods))


def channel_depth(producer_lag: int, consumer_lag: int) -> int:
    """Slots of a channel: frames buffered from the start of the producer to the end of the reader.

    With stages one period apart that spans one period more than the stages are apart. Two is the
    least, or neighbours would wait for each other.
    """
    return max(LEAST_SLOTS, consumer_lag - producer_lag + 1)


def kind_of(widths: Sequence[int]) -> Kind:
    """Return the kind of plain stages, given how many processors each really uses."""
    parallel = max(widths) > 1
    if len(widths) == 1:
        return "para-only" if parallel else "sequential"
    return "hybrid" if parallel else "pipe-only"
