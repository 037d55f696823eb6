"""The sustained period: hand-solved pipelines, bounds, and a simulation as oracle."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.pipeline.sustained import Event, channel_depth, sustained_period_s


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
    events[0] = Event(events[0].processor, 0, 1.0)
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
        free = {e.processor: 0.0 for e in events}
        if starts:
            for v, e in enumerate(events):
                free[e.processor] = max(free[e.processor], starts[-1][v] + e.time_s)
        for v, event in enumerate(events):
            ready = free[event.processor]
            for a, b, transfer_s in edges:
                crosses = events[a].processor != events[b].processor
                if b == v:
                    ready = max(ready, start[a] + events[a].time_s + transfer_s * crosses)
                depth = channel_depth(events[a].stage, events[b].stage)
                if a == v and crosses and n >= depth:
                    ready = max(ready, starts[n - depth][b] + events[b].time_s)
            start[v] = ready
            free[event.processor] = ready + event.time_s
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
        busy[event.processor] = busy.get(event.processor, 0.0) + event.time_s
    assert sustained_period_s(events, edges) >= max(busy.values())
