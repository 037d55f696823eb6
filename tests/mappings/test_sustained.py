"""The sustained period: hand-solved pipelines, bounds, and a simulation as oracle."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mappings.event_graph import PICOSECONDS, Event, event_graph
from parapipe.mappings.mapping import channel_depth


def sustained_period_s(*graph) -> float:
    return float(event_graph(*graph).period_ps() / PICOSECONDS)


def test_one_processor_takes_the_sum_of_its_operators():
    events = [Event(0, 0, 2.0), Event(0, 0, 3.0)]
    assert sustained_period_s(events, [(0, 1, 0.0)]) == 5.0


def test_two_stages_take_the_longer_one():
    events = [Event(0, 0, 2.0), Event(1, 1, 3.0)]
    assert sustained_period_s(events, [(0, 1, 0.5)]) == 3.0


def test_a_stage_whose_processors_wait_for_each_other_overlaps_frames():
    # 0 on p, 1 on q, 2 on p: the stage takes 6 s, yet p works 4 s a frame and q 2 s. With the
    # order 0, 2 on p and one token per cycle, 0-1-2 and back to 0 needs 6 s per frame.
    events = [Event(0, 0, 2.0), Event(1, 0, 2.0), Event(0, 0, 2.0)]
    assert sustained_period_s(events, [(0, 1, 0.0), (1, 2, 0.0)]) == 6.0
    # Without the way back, q runs behind p and only the busiest counts.
    assert sustained_period_s(events[:2], [(0, 1, 0.0)]) == 2.0


def test_a_slow_transfer_is_hidden_by_two_slots_up_to_a_point():
    # Producer 1 s, transfer 5 s, consumer 1 s, two slots: 7 s for two frames.
    events = [Event(0, 0, 1.0), Event(1, 1, 1.0)]
    assert sustained_period_s(events, [(0, 1, 5.0)]) == 3.5


@pytest.mark.parametrize(("apart", "slots"), [(0, 2), (1, 2), (2, 3), (3, 4)])
def test_a_channel_has_a_slot_for_every_period_that_a_tensor_lives(apart, slots):
    assert channel_depth(1, 1 + apart) == slots


def test_a_processor_that_sends_to_the_next_stage_is_busy_with_that_too():
    # 2 s of work and 1 s of sending; the stages take 2 s and 1 + 2 s
    events = [Event(0, 1, 1.0), Event(0, 0, 2.0), Event(1, 1, 2.0)]
    assert sustained_period_s(events, [], [(1, 0, 2)]) == 3.0
    # 3 s and 1 s: beyond the longest stage
    events = [Event(0, 1, 1.0), Event(0, 0, 3.0), Event(1, 1, 2.0)]
    assert sustained_period_s(events, [], [(1, 0, 2)]) == 4.0


def test_a_link_serves_each_stage_for_its_own_frame():
    # Stage 0: 2 s on p, 1 s on the link, 1 s on q. Stage 1: 1 s on the link, 3 s on r. If the link
    # served one frame to its end before the next, that would take 1 + 1 + 1 s and more a frame.
    link = 3
    events = [
        Event(link, 1, 1.0), Event(0, 0, 2.0), Event(2, 1, 3.0), Event(link, 0, 1.0),
        Event(1, 0, 1.0),
    ]  # fmt: skip
    assert sustained_period_s(events, [], [(1, 3, 4), (4, 0, 2)]) == 3.0


def test_a_link_that_is_busiest_sets_the_period():
    events = [Event(0, 0, 1.0), Event(2, 0, 5.0), Event(1, 0, 1.0)]
    assert sustained_period_s(events, [], [(0, 1, 2)]) == 5.0


def random_carried(seed):
    """Random events, some of whose transfers occupy the sender, the receiver or one link of all."""
    events, edges = random_events(seed)
    rng = random.Random(seed)
    tokens = [(float(i), event, None) for i, event in enumerate(events)]
    delays = []
    for u, v, transfer_s in edges:
        ends = events[u].resource, events[v].resource
        if ends[0] == ends[1] or rng.random() < 0.5:
            delays.append((u, v, transfer_s))
            continue
        first = u if events[u].lag == events[v].lag else -1
        event = Event(rng.choice([*ends, 99]), events[v].lag, transfer_s)
        tokens.append((rng.uniform(first + 0.01, v - 0.01), event, (u, v)))
    tokens.sort(key=lambda token: token[0])
    made = [place for place, token in enumerate(tokens) if token[2] is None]
    carried = [(made[t[2][0]], place, made[t[2][1]]) for place, t in enumerate(tokens) if t[2]]
    moved = [(made[u], made[v], transfer_s) for u, v, transfer_s in delays]
    return [token[1] for token in tokens], moved, carried


def stepped_period_s(events, edges, carried, frames=400):
    """Earliest starts period after period: in each, a stage works on a frame of its own."""
    waits = [(a, b, s) for a, b, s in edges if events[a].resource != events[b].resource]
    channels = [(a, b) for a, b, _ in waits] + [(a, b) for a, _, b in carried]
    waits += [(a, t, 0.0) for a, t, _ in carried] + [(t, b, 0.0) for _, t, b in carried]
    starts, free = {}, {}
    for period in range(frames):
        for v, event in enumerate(events):
            n = period - event.lag
            if n < 0:
                continue
            ready = free.get(event.resource, 0.0)
            for a, b, s in waits:
                if b == v:
                    ready = max(ready, starts[n, a] + events[a].time_s + s)
            for a, b in channels:
                before = (n - channel_depth(events[a].lag, events[b].lag), b)
                if a == v and before in starts:
                    ready = max(ready, starts[before] + events[b].time_s)
            starts[n, v] = ready
            free[event.resource] = ready + event.time_s
    last, half = frames - 4, frames // 2
    return max((starts[last, v] - starts[half, v]) / (last - half) for v in range(len(events)))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_with_transfers_that_occupy_something_it_equals_a_long_simulation_too(seed):
    events, edges, carried = random_carried(seed)
    period_s = sustained_period_s(events, edges, carried)
    assert period_s == pytest.approx(stepped_period_s(events, edges, carried), rel=0.02)


def random_events(seed):
    rng = random.Random(seed)
    stages = rng.randint(1, 3)
    events = []
    for stage in range(stages):
        processors = [2 * stage, 2 * stage + 1][: rng.randint(1, 2)]
        events += [
            Event(rng.choice(processors), stage, rng.randint(0, 8) / 8)
            for _ in range(rng.randint(1, 4))
        ]
    events[0] = Event(events[0].resource, 0, 1.0)
    edges = [
        (u, v, rng.randint(0, 4) / 8)
        for v in range(len(events))
        for u in range(v)
        if rng.random() < 0.4
    ]
    return events, edges


def simulated_period_s(events, edges, frames=400):
    """Earliest starts frame after frame, straight from the rules of the executor."""
    starts = []
    for n in range(frames):
        start = {}
        free = {e.resource: 0.0 for e in events}
        if starts:
            for v, e in enumerate(events):
                free[e.resource] = max(free[e.resource], starts[-1][v] + e.time_s)
        for v, event in enumerate(events):
            ready = free[event.resource]
            for a, b, transfer_s in edges:
                crosses = events[a].resource != events[b].resource
                if b == v:
                    ready = max(ready, start[a] + events[a].time_s + transfer_s * crosses)
                depth = channel_depth(events[a].lag, events[b].lag)
                if a == v and crosses and n >= depth:
                    ready = max(ready, starts[n - depth][b] + events[b].time_s)
            start[v] = ready
            free[event.resource] = ready + event.time_s
        starts.append(start)
    half = frames // 2
    return max((starts[-1][v] - starts[half][v]) / (frames - 1 - half) for v in starts[0])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_the_period_equals_that_of_a_long_simulation(seed):
    events, edges = random_events(seed)
    assert sustained_period_s(events, edges) == pytest.approx(
        simulated_period_s(events, edges), rel=0.02
    )


@given(seed=st.integers(0, 10**9))
def test_the_period_is_at_least_the_busiest_processor(seed):
    events, edges = random_events(seed)
    busy = {}
    for event in events:
        busy[event.resource] = busy.get(event.resource, 0.0) + event.time_s
    assert sustained_period_s(events, edges) >= max(busy.values())


def largest_ratio(graph):
    """Time over tokens of every cycle, one by one."""
    longest = {}  # of several arcs that join the same events with as many tokens
    for order in graph.orders:
        for u, v in pairwise(order):
            longest[u, v, graph.lag[u] - graph.lag[v]] = graph.time_ps[u]
        u, v = order[-1], order[0]
        longest[u, v, 1 + graph.lag[u] - graph.lag[v]] = graph.time_ps[u]
    for u, v, delay_ps in graph.waits:
        time_ps = graph.time_ps[u] + delay_ps
        longest[u, v, 0] = max(time_ps, longest.get((u, v, 0), 0))
    for u, v, slots in graph.channels:
        longest[v, u, slots] = graph.time_ps[v]
    # An event for each arc: cycles of arcs, with all choices among arcs that run side by side.
    joined = nx.DiGraph(
        (a, b) for a in longest for b in longest if a[1] == b[0]
    )  # fmt: skip
    return max(
        Fraction(sum(longest[arc] for arc in cycle), sum(arc[2] for arc in cycle))
        for cycle in nx.simple_cycles(joined)
    )


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_it_is_the_largest_ratio_of_all_cycles(seed):
    events, edges, carried = random_carried(seed)
    graph = event_graph(events, edges, carried)
    if len(events) <= 6:
        assert graph.period_ps() == largest_ratio(graph)
