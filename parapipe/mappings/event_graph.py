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
from collections.abc import Mapping as ByKey
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from heapq import merge
from itertools import pairwise
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import NamedTuple

from parapipe.mappings.mapping import Mapping, Placement, channel_depth

PICOSECONDS = 10**12


@dataclass(frozen=True, slots=True)
class Event:
    """Work as the executor sees it.

    Parameters
    ----------
    resource
        Processor or link that is busy with it.
    lag
        Periods between a frame's entry and its turn.
    time_s
        Seconds.
    replicas
        How many processors take turns on it, each for its own frame.
    """

    resource: int
    lag: int
    time_s: float
    replicas: int = 1

    @property
    def last_lag(self) -> int:
        """Lag of the period in which it ends at the latest."""
        return self.lag + self.replicas - 1


# By what a resource orders its work, operators or -1 - a transfer, and the event.
_Job = tuple[tuple[float, float, int, str, int], tuple[int, ...], Event]


@dataclass(frozen=True, slots=True)
class EventGraph:
    """What happens for every frame, and what waits for what. Times are in whole picoseconds.

    Parameters
    ----------
    time_ps
        Of each event.
    lag
        Of each event: in round r it is done for frame r - lag.
    orders
        What each processor or link does in a round, in this order.
    waits
        (u, v, d): v starts at least d behind the end of u, for the same frame.
    channels
        (u, v, k): u starts for a frame once v has ended for the frame k before.
    replicas
        How many do what each order says, frames in turn; one each if left out.
    feedback
        (u, v, d, k): v starts for a frame at least d behind the end of u for the frame k before.
    """

    time_ps: tuple[int, ...]
    lag: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]
    waits: tuple[tuple[int, int, int], ...]
    channels: tuple[tuple[int, int, int], ...]
    replicas: tuple[int, ...] = ()
    feedback: tuple[tuple[int, int, int, int], ...] = ()

    @property
    def rows(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Each order, and how many do what it says."""
        return zip(self.orders, self.replicas or (1,) * len(self.orders), strict=True)

    def period_ps(self) -> Fraction:
        """Return the least picoseconds between frames, exactly: the maximum cycle ratio."""
        return self.contracted().bottleneck()[0]

    def contracted(self) -> EventGraph:
        """Return the graph with events as one that only wait for each other in their order.

        The cycles are the same. Events go by when they can first happen, as far as that is clear.
        """
        joined = {v for u, w, _ in (*self.waits, *self.channels) for v in (u, w)}
        joined |= {v for u, w, _, _ in self.feedback for v in (u, w)}
        parts: list[list[int]] = []
        for order in self.orders:
            for before, v in pairwise((-1, *order)):
                free = before >= 0 and v not in joined and before not in joined
                if free and self.lag[before] == self.lag[v]:
                    parts[-1].append(v)
                else:
                    parts.append([v])
        place = {v: i for i, part in enumerate(parts) for v in part}
        waits = [(place[u], place[v], delay_ps) for u, v, delay_ps in self.waits]
        orders = [tuple(dict.fromkeys(place[v] for v in order)) for order in self.orders]
        rank = ranks(len(parts), [*waits, *((u, v, 0) for o in orders for u, v in pairwise(o))])
        number = [0] * len(parts)
        for new, old in enumerate(sorted(range(len(parts)), key=lambda i: (rank[i], i))):
            number[old] = new
        sorted_parts = sorted(parts, key=lambda part: number[place[part[0]]])
        return EventGraph(
            tuple(sum(self.time_ps[v] for v in part) for part in sorted_parts),
            tuple(self.lag[part[0]] for part in sorted_parts),
            tuple(tuple(number[i] for i in order) for order in orders),
            tuple((number[u], number[v], delay_ps) for u, v, delay_ps in waits),
            tuple((number[place[u]], number[place[v]], slots) for u, v, slots in self.channels),
            self.replicas,
            tuple((number[place[u]], number[place[v]], d, k) for u, v, d, k in self.feedback),
        )

    def bottleneck(self) -> tuple[Fraction, tuple[int, ...]]:
        """Return the least picoseconds between frames, and events of a cycle that takes as long.

        Starts at the busiest resource, itself a cycle, and goes from each cycle to one of a larger
        ratio until there is none (Lawler, Combinatorial Optimization, 1976, chapter 3).
        """
        arcs = sorted(self.arcs(), key=attrgetter("tail"))
        loads = ((order, sum(self.time_ps[v] for v in order), count) for order, count in self.rows)
        shares = [(Fraction(work, count), order) for order, work, count in loads]
        ratio, events = max(shares, key=itemgetter(0))
        while cycle := cycle_above(ratio, arcs, len(self.time_ps)):
            ratio = Fraction(sum(arc.time_ps for arc in cycle), sum(arc.tokens for arc in cycle))
            events = tuple(arc.tail for arc in reversed(cycle))
        return ratio, events

    def arcs(self) -> Iterator[Arc]:
        """Yield what must happen before what, frames apart: orders, waits and channels."""
        for order, count in self.rows:
            for u, v in pairwise(order):
                yield Arc(u, v, self.time_ps[u], self.lag[u] - self.lag[v])
            last, first = order[-1], order[0]
            yield Arc(last, first, self.time_ps[last], count + self.lag[last] - self.lag[first])
        for u, v, delay_ps in self.waits:
            yield Arc(u, v, self.time_ps[u] + delay_ps, 0)
        for u, v, slots in self.channels:
            yield Arc(v, u, self.time_ps[v], slots)
        for u, v, delay_ps, frames in self.feedback:
            yield Arc(u, v, self.time_ps[u] + delay_ps, frames)


@dataclass(frozen=True, slots=True)
class Execution:
    """What an executor does with a mapping.

    Parameters
    ----------
    works
        What each event runs at one go, resource after resource, each in its order: operators, or
        -1 - the index of the transfer that it is.
    event
        Index of the event of each operator and transfer, called likewise.
    graph
        Times, order and waits of the events, by their indices.
    """

    works: tuple[tuple[int, ...], ...]
    event: ByKey[int, int]
    graph: EventGraph


def sustained_period_s(mapping: Mapping) -> float:
    """Return the least seconds between frames, exact to a picosecond."""
    return float(execution_of(mapping).graph.period_ps() / PICOSECONDS)


def execution_of(
    mapping: Mapping,
    runs: ByKey[int, Sequence[Sequence[Placement]]] | None = None,
    *,
    slots: Sequence[int] = (),
    moves: bool = True,
) -> Execution:
    """Return what an executor does with a mapping.

    Within a period each processor or link takes its work in the order of the starts. Of what starts
    and ends together, producers go first and their transfers behind them.

    Parameters
    ----------
    runs
        What each processor runs at one go, in its order; operators alone if left out.
    slots
        Of the channel of each transfer; those that the mapping needs if left out.
    moves
        Whether transfers that keep something busy are events; they only take their time if not.
    """
    slots = slots or mapping.channel_slots
    runs = runs or {p: [(at,) for at in order] for p, order in mapping.orders.items()}
    moved: dict[int, list[_Job]] = {}
    for number, each in enumerate(mapping.transfers):
        if each.resource is not None and moves:
            key = (each.start_s, each.end_s, each.producer, each.tensor, each.target)
            event = Event(each.resource, each.lag, each.time_s)
            moved.setdefault(each.resource, []).append((key, (-1 - number,), event))
    in_order = itemgetter(0)
    jobs = [
        work
        for resource in sorted({*runs, *moved})
        for work in merge(
            map(partial(_job_of_run, mapping), runs.get(resource, ())),
            sorted(moved.get(resource, ()), key=in_order),
            key=in_order,
        )
    ]
    events = [event for *_, event in jobs]
    place = {name: i for i, (_, names, _) in enumerate(jobs) for name in names}
    edges: list[tuple[int, int, float]] = []
    occupying: list[tuple[int, int, int]] = []
    depth: dict[tuple[int, int], int] = {}
    for edge in mapping.edges:
        u, v, moving = place[edge.producer], place[edge.consumer], edge.transfer
        if moving is None and events[u].resource == events[v].resource:
            continue  # they follow each other in its order, and need no channel
        if moving is not None and -1 - moving in place:
            occupying.append((u, place[-1 - moving], v))
        else:
            edges.append((u, v, 0.0 if moving is None else mapping.transfers[moving].time_s))
        room = mapping.slots(edge) if moving is None else slots[moving]
        depth[u, v] = min(room, depth.get((u, v), room))
    fed_back = {
        (place[each.producer], place[each.consumer], picoseconds(each.time_s), each.frames): None
        for each in mapping.feedback
    }
    graph = replace(event_graph(events, edges, occupying, depth), feedback=tuple(fed_back))
    return Execution(tuple(names for _, names, _ in jobs), place, graph)


def _job_of_run(mapping: Mapping, run: Sequence[Placement]) -> _Job:
    first = run[0]
    # As a plan says it, so that a simulation of the plan comes to the same picosecond.
    time_ps = sum(picoseconds(at.end_s - at.start_s) for at in run)
    replicas = len(mapping.replicas.get(first.processor, (0,)))
    time_s = time_ps / PICOSECONDS
    event = Event(first.processor, first.lag, time_s, replicas)
    return (*first.in_order, "", -1), tuple(at.operator for at in run), event


def event_graph(
    events: Sequence[Event],
    edges: Iterable[tuple[int, int, float]],
    occupying: Iterable[tuple[int, int, int]] = (),
    depth: ByKey[tuple[int, int], int] = MappingProxyType({}),
) -> EventGraph:
    """Return the event graph of what an executor does for every frame.

    Parameters
    ----------
    events
        Operators, and transfers that occupy something, in the order in which each processor or
        link takes them within a period.
    edges
        (producer, consumer, seconds of the transfer) by index into `events`.
    occupying
        (producer, transfer, consumer) by index into `events`, where the transfer is one of them.
    depth
        Slots of a channel by (producer, consumer), where it is not `channel_depth`.
    """
    orders: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        orders.setdefault(event.resource, []).append(index)
    waits: list[tuple[int, int, int]] = []
    joined: list[tuple[int, int]] = []
    for u, v, transfer_s in edges:
        if events[u].resource != events[v].resource:
            waits.append((u, v, picoseconds(transfer_s)))
            joined.append((u, v))
    for u, t, v in occupying:
        waits += [(u, t, 0), (t, v, 0)]
        joined.append((u, v))
    return EventGraph(
        time_ps=tuple(picoseconds(event.time_s) for event in events),
        lag=tuple(event.lag for event in events),
        orders=tuple(map(tuple, orders.values())),
        waits=tuple(dict.fromkeys(waits)),
        channels=tuple(
            (u, v, depth.get((u, v)) or channel_depth(events[u].lag, events[v].last_lag))
            for u, v in dict.fromkeys(joined)
        ),
        replicas=tuple(max(events[v].replicas for v in order) for order in orders.values()),
    )


def picoseconds(time_s: float) -> int:
    """Return a time in whole picoseconds, the nearest."""
    return round(time_s * PICOSECONDS)


class Arc(NamedTuple):
    """`head` starts at least `time_ps` behind `tail` of `tokens` frames before.

    Below 0, the tail works on a later frame than the head. Periods never run backwards along an
    arc, so in every cycle tokens add up to more than 0.
    """

    tail: int
    head: int
    time_ps: int
    tokens: int


def cycle_above(ratio: Fraction, arcs: Sequence[Arc], nodes: int) -> list[Arc]:
    """Return a cycle of a larger ratio of time over tokens, or nothing."""
    gains = [arc.time_ps * ratio.denominator - arc.tokens * ratio.numerator for arc in arcs]
    return [arcs[a] for a in gaining_cycle(gains, [(arc.tail, arc.head) for arc in arcs], nodes)]


def gaining_cycle(
    gains: Sequence[int], ends: Sequence[tuple[int, int]], nodes: int
) -> Sequence[int]:
    """Return the arcs of a cycle that gain more than 0 together, or nothing (Bellman-Ford).

    Parameters
    ----------
    gains
        Of each arc.
    ends
        Its tail and head.
    """
    steps = [(*each, gain, a) for a, (each, gain) in enumerate(zip(ends, gains, strict=True))]
    distance = [0] * nodes
    reached_by: list[int | None] = [None] * nodes
    while True:
        relaxed = -1
        for tail, head, gain, a in steps:
            if distance[tail] + gain > distance[head]:
                distance[head] = distance[tail] + gain
                reached_by[head] = a
                relaxed = head
        if relaxed < 0:
            return ()
        if cycle := _cycle_before(reached_by, ends, relaxed):
            return cycle


def ranks(nodes: int, edges: Iterable[tuple[int, int, int]]) -> list[int]:
    """Return for each node how many come before it on some path; those on circles come last."""
    behind: list[list[int]] = [[] for _ in range(nodes)]
    left = [0] * nodes
    for u, v, _ in edges:
        behind[u].append(v)
        left[v] += 1
    rank = [0 if not count else nodes for count in left]
    ready = [v for v, count in enumerate(left) if not count]
    for u in ready:
        for v in behind[u]:
            left[v] -= 1
            if not left[v]:
                rank[v] = rank[u] + 1
                ready.append(v)
    return rank


def _cycle_before(
    reached_by: Sequence[int | None], ends: Sequence[tuple[int, int]], node: int
) -> Sequence[int]:
    """Walk back from a node; return the cycle that the walk runs into, if it does."""
    passed: dict[int, int] = {}
    walk: list[int] = []
    while node not in passed:
        passed[node] = len(walk)
        arc = reached_by[node]
        if arc is None:
            return ()
        walk.append(arc)
        node, _ = ends[arc]
    return walk[passed[node] :]
