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

from collections.abc import Iterable, Sequence
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
class _Arc:
    """`head` starts at least `time_ps` behind `tail` of `tokens` frames before.

    Below 0, the tail works on a later frame than the head. Periods never run backwards along an
    arc, so in every cycle tokens add up to more than 0.
    """

    tail: int
    head: int
    time_ps: int
    tokens: int


def sustained_period_s(
    events: Sequence[Event],
    edges: Iterable[tuple[int, int, float]],
    carried: Iterable[tuple[int, int, int]] = (),
) -> float:
    """Return the least period in seconds, exact to a picosecond.

    Starts at the busiest processor, itself a cycle, and goes from each cycle to one of a larger
    ratio until there is none (Lawler, Combinatorial Optimization, 1976, chapter 3).

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
    arcs, busiest_ps = _event_graph(events, edges, carried)
    ratio = Fraction(busiest_ps)
    while cycle := _cycle_above(ratio, arcs, len(events)):
        ratio = Fraction(sum(arc.time_ps for arc in cycle), sum(arc.tokens for arc in cycle))
    return float(ratio / PICOSECONDS)


def _event_graph(
    events: Sequence[Event],
    edges: Iterable[tuple[int, int, float]],
    carried: Iterable[tuple[int, int, int]],
) -> tuple[list[_Arc], int]:
    """Arcs between the starts of operators, and the work of the busiest processor."""
    time = [round(event.time_s * PICOSECONDS) for event in events]
    order: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        order.setdefault(event.processor, []).append(index)
    arcs: list[_Arc] = []
    for taken in order.values():
        in_turn = [*((u, v, 0) for u, v in pairwise(taken)), (taken[-1], taken[0], 1)]
        arcs += [
            _Arc(u, v, time[u], periods + events[u].stage - events[v].stage)
            for u, v, periods in in_turn
        ]
    for u, v, transfer_s in edges:
        if events[u].processor != events[v].processor:
            arcs.append(_Arc(u, v, time[u] + round(transfer_s * PICOSECONDS), 0))
            arcs.append(_Arc(v, u, time[v], channel_depth(events[u].stage, events[v].stage)))
    for u, t, v in carried:
        arcs += [_Arc(u, t, time[u], 0), _Arc(t, v, time[t], 0)]
        arcs.append(_Arc(v, u, time[v], channel_depth(events[u].stage, events[v].stage)))
    return arcs, max(sum(time[v] for v in taken) for taken in order.values())


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
