"""The sustained period: what an executor with one thread per processor and bounded buffers reaches.

It is the maximum cycle ratio (time over tokens) of the configuration's event graph: processors
take their operators in order, frame after frame (one token per processor cycle), and a tensor
that crosses processors goes through a channel with a bounded number of slots (as many tokens on
the way back). A transfer that keeps a processor or a link busy is an event there, like an operator.

Stages work in step: while stage s runs frame n - s, stage s + 1 runs the frame before. What serves
several stages, as a shared link or a processor that sends to the next stage, takes in each period
what they ask of it, in the order of their schedules, each for its own frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

PICOSECONDS = 10**12


@dataclass(frozen=True, slots=True)
class Event:
    """Work as the executor sees it: seconds on a processor or a link, for a stage."""

    processor: int
    stage: int
    time_s: float


def channel_depth(producer_stage: int, consumer_stage: int) -> int:
    """Slots of a channel between two stages.

    A frame's tensor is held from the start of its producer to the end of its consumer. With
    stages one period apart that spans one period more than the stages are apart. Two is the
    least, or neighbours would wait for each other.
    """
    return max(2, consumer_stage - producer_stage + 1)


@dataclass(frozen=True, slots=True)
class EventGraph:
    """What happens for every frame, and what waits for what. Times are in whole picoseconds.

    Parameters
    ----------
    time_ps
        Of each event.
    lag
        Of each event: in round r its lane does it for frame r - lag.
    lanes
        What each processor or link does in a round, in this order.
    waits
        (u, v, d): v starts at least d behind the end of u, for the same frame.
    channels
        (u, v, k): u starts for a frame once v has ended for the frame k before.
    """

    time_ps: tuple[int, ...]
    lag: tuple[int, ...]
    lanes: tuple[tuple[int, ...], ...]
    waits: tuple[tuple[int, int, int], ...]
    channels: tuple[tuple[int, int, int], ...]

    def period_ps(self) -> Fraction:
        """Return the least picoseconds between frames, exactly: the maximum cycle ratio."""
        return self.bottleneck()[0]

    def bottleneck(self) -> tuple[Fraction, tuple[int, ...]]:
        """Return the least picoseconds between frames, and events of a cycle that takes as long.

        Starts at the busiest lane, itself a cycle, and goes from each cycle to one of a larger
        ratio until there is none (Lawler, Combinatorial Optimization, 1976, chapter 3).
        """
        arcs = tuple(self._arcs())
        events = max(self.lanes, key=lambda lane: sum(self.time_ps[v] for v in lane))
        ratio = Fraction(sum(self.time_ps[v] for v in events))
        while cycle := _cycle_above(ratio, arcs, len(self.time_ps)):
            ratio = Fraction(sum(arc.time_ps for arc in cycle), sum(arc.tokens for arc in cycle))
            events = tuple(arc.tail for arc in reversed(cycle))
        return ratio, events

    def _arcs(self) -> Iterator[_Arc]:
        for lane in self.lanes:
            for u, v in pairwise(lane):
                yield _Arc(u, v, self.time_ps[u], self.lag[u] - self.lag[v])
            last, first = lane[-1], lane[0]
            yield _Arc(last, first, self.time_ps[last], 1 + self.lag[last] - self.lag[first])
        for u, v, delay_ps in self.waits:
            yield _Arc(u, v, self.time_ps[u] + delay_ps, 0)
        for u, v, slots in self.channels:
            yield _Arc(v, u, self.time_ps[v], slots)


def sustained_period_s(
    events: Sequence[Event],
    edges: Iterable[tuple[int, int, float]],
    carried: Iterable[tuple[int, int, int]] = (),
) -> float:
    """Return the least period in seconds, exact to a picosecond.

    Parameters
    ----------
    events
        Operators, and transfers that occupy something, in the order in which each processor or
        link takes them within a period.
    edges
        (producer, consumer, seconds of the transfer) by index into `events`.
    carried
        (producer, transfer, consumer) by index into `events`, where the transfer is one of them.
    """
    return float(event_graph(events, edges, carried).period_ps() / PICOSECONDS)


def event_graph(
    events: Sequence[Event],
    edges: Iterable[tuple[int, int, float]],
    carried: Iterable[tuple[int, int, int]] = (),
) -> EventGraph:
    """Return the event graph of a configuration; parameters as for `sustained_period_s`."""
    lanes: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        lanes.setdefault(event.processor, []).append(index)
    waits: list[tuple[int, int, int]] = []
    joined: list[tuple[int, int]] = []
    for u, v, transfer_s in edges:
        if events[u].processor != events[v].processor:
            waits.append((u, v, picoseconds(transfer_s)))
            joined.append((u, v))
    for u, t, v in carried:
        waits += [(u, t, 0), (t, v, 0)]
        joined.append((u, v))
    return EventGraph(
        time_ps=tuple(picoseconds(event.time_s) for event in events),
        lag=tuple(event.stage for event in events),
        lanes=tuple(map(tuple, lanes.values())),
        waits=tuple(waits),
        channels=tuple((u, v, channel_depth(events[u].stage, events[v].stage)) for u, v in joined),
    )


def picoseconds(time_s: float) -> int:
    """Return a time in whole picoseconds, the nearest."""
    return round(time_s * PICOSECONDS)


@dataclass(frozen=True, slots=True)
class _Arc:
    """`head` starts at least `time_ps` behind `tail` of `tokens` frames before.

    Below 0, the tail works on a later frame than the head. Periods never run backwards along an
    arc, so in every cycle tokens add up to more than 0.
    """

    tail: int
    head: int
    time_ps: int
    tokens: int


def _cycle_above(ratio: Fraction, arcs: Sequence[_Arc], nodes: int) -> list[_Arc]:
    """Return a cycle of a larger ratio of time over tokens, or nothing (Bellman-Ford)."""
    length = [arc.time_ps * ratio.denominator - arc.tokens * ratio.numerator for arc in arcs]
    distance = [0] * nodes
    reached_by: list[_Arc | None] = [None] * nodes
    while True:
        relaxed = -1
        for arc, gain in zip(arcs, length, strict=True):
            if distance[arc.tail] + gain > distance[arc.head]:
                distance[arc.head] = distance[arc.tail] + gain
                reached_by[arc.head] = arc
                relaxed = arc.head
        if relaxed < 0:
            return []
        if cycle := _closed(reached_by, relaxed):
            return cycle


def _closed(reached_by: Sequence[_Arc | None], node: int) -> list[_Arc]:
    """Walk back from a node; return the cycle that the walk runs into, if it does."""
    passed: dict[int, int] = {}
    walk: list[_Arc] = []
    while node not in passed:
        passed[node] = len(walk)
        arc = reached_by[node]
        if arc is None:
            return []
        walk.append(arc)
        node = arc.tail
    return walk[passed[node] :]
