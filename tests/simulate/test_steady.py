"""A replay without chance comes to repeat itself, with exactly the maximum cycle ratio."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mappings.event_graph import PICOSECONDS, EventGraph
from parapipe.mappings.frame_replay import Admission, Replay
from parapipe.mappings.steady_state import Steady, slowest_pace, steady
from parapipe.plan.build import build_plan
from parapipe.plan.program import program
from parapipe.simulate.simulation import simulate
from tests.cases.interleaved import plan_of, random_document
from tests.cases.moving_networks import moving_graph
from tests.cases.plan_cases import random_case


def played(graph, frames):
    first = frozenset(
        v for v in range(len(graph.time_ps)) if all(b != v for _, b, _ in graph.waits)
    )
    return steady(graph, Replay(graph, frames, Admission(first, None, 2)).run().start_ps)


def recurring(graph):
    """Play more and more frames until it recurs."""
    return next(found for n in (30, 300, 3000) if (found := played(graph, n)))


def random_graph(seed):
    """Random stages, some transfers of which are tasks of the sender, the receiver or one link."""
    rng = random.Random(seed)
    stages = rng.randint(1, 3)
    resources = {p: [] for p in range(2 * stages)}
    link: list[int] = []
    time_ps, lag, waits, channels, resource_of = [], [], [], [], []

    def add(stage, resource, longest):
        time_ps.append(rng.randint(0, longest))
        lag.append(stage)
        resource_of.append(resource)
        resource.append(len(time_ps) - 1)
        return resource[-1]

    operators = []
    for stage in range(stages):
        for _ in range(rng.randint(1, 4)):
            resource = resources[2 * stage + rng.randint(0, 1)]
            moved = []
            for u in operators:
                if rng.random() < 0.4 and resource_of[u] is not resource:
                    # a sender of an earlier stage sends while it works on a later frame
                    busy = rng.choice([None, resource, link])
                    moved.append((u, None if busy is None else add(stage, busy, 4)))
            v = add(stage, resource, 8)
            for u, t in moved:
                slots = max(2, lag[v] - lag[u] + 1)
                channels.append((u, v, slots))
                waits += [(u, v, rng.randint(0, 4))] if t is None else [(u, t, 0), (t, v, 0)]
            operators.append(v)
    time_ps[operators[0]] = 8
    taken = tuple(tuple(resource) for resource in (*resources.values(), link) if resource)
    return EventGraph(tuple(time_ps), tuple(lag), taken, tuple(waits), tuple(channels))


@given(seed=st.integers(0, 10**9))
def test_a_saturated_replay_recurs_with_the_maximum_cycle_ratio(seed):
    graph = random_graph(seed)
    assert recurring(graph).period_ps == graph.period_ps()


@given(seed=st.integers(0, 10**9), unit=st.sampled_from(["operator", "segment"]))
def test_so_does_that_of_any_plan(seed, unit):
    graph = program(build_plan(*random_case(seed)), unit=unit).graph
    assert recurring(graph).period_ps == graph.period_ps()


def pace(plan, frames, unit):
    return simulate(plan, frames=frames, saturate=True, unit=unit).pace_ps


def frames_of(rng, graph):
    """Any number of frames above a few times the lags."""
    return rng.randint(5 * (max(graph.lag) + 2), 40 * (max(graph.lag) + 2))


@given(seed=st.integers(0, 10**9), unit=st.sampled_from(["operator", "segment"]))
def test_the_pace_of_saturated_stages_is_the_maximum_cycle_ratio(seed, unit):
    rng, plan = random.Random(seed), build_plan(*random_case(seed))
    graph = program(plan, unit=unit).graph
    assert pace(plan, frames_of(rng, graph), unit) == graph.period_ps()


@given(seed=st.integers(0, 10**9))
def test_so_is_that_of_interleaved_frames(seed):
    rng = random.Random(seed)
    document = random_document(moving_graph(rng, rng.randint(2, 12)), seed)
    if document is not None:
        plan = plan_of(document)
        graph = program(plan).graph
        found = pace(plan, frames_of(rng, graph), "operator")
        assert found == graph.period_ps()
        assert float(found / PICOSECONDS) == plan.predicted.sustained_period_s


@given(seed=st.integers(0, 10**9), unit=st.sampled_from(["operator", "segment"]))
def test_the_slowest_task_has_that_pace_though_not_all_recur(seed, unit):
    graph = program(build_plan(*random_case(seed)), unit=unit).graph
    first = frozenset(range(len(graph.time_ps)))
    frames = 40 * (max(graph.lag) + 2)
    assert slowest_pace(graph, Replay(graph, frames, Admission(first, None, 2)).run().start_ps) == (
        graph.period_ps()
    )


@pytest.mark.parametrize("frames", [12, 30, 31, 100])
def test_a_queue_that_is_used_up_slowly_makes_no_pace_faster(frames):
    graph = interleaved_pair()
    starts = Replay(graph, frames, Admission(frozenset({0}), None, 2)).run().start_ps
    assert steady(graph, starts) is None
    assert slowest_pace(graph, starts) == graph.period_ps() == 300


def interleaved_pair():
    """A chain of five in turn on two processors, one of which takes 300 a frame, the other 299."""
    chain = [(v, v + 1) for v in range(4)]
    return EventGraph(
        (100, 100, 100, 199, 100),
        (0, 1, 2, 3, 4),
        ((0, 2, 4), (1, 3)),
        tuple((u, v, 0) for u, v in chain),
        tuple((u, v, 3) for u, v in chain),
    )


def test_too_few_frames_have_no_pace():
    graph = interleaved_pair()
    for frames, pace_ps in ((4, None), (5, None), (7, 300)):
        starts = Replay(graph, frames, Admission(frozenset({0}), None, 2)).run().start_ps
        assert slowest_pace(graph, starts) == pace_ps


@settings(max_examples=50)
@given(seed=st.integers(0, 10**9), queue=st.integers(1, 4))
def test_so_it_does_with_other_queues_and_longer_ones_never_take_longer(seed, queue):
    plan = build_plan(*random_case(seed))
    graph = program(plan, queue=queue).graph
    assert recurring(graph).period_ps == graph.period_ps()
    assert program(plan, queue=queue + 1).graph.period_ps() <= graph.period_ps()


def test_what_recurs_may_be_several_frames():
    # Two frames in 7 ps: made 1, moved 5, read 1, two slots.
    graph = EventGraph((1, 1), (0, 1), ((0,), (1,)), ((0, 1, 5),), ((0, 1, 2),))
    assert played(graph, 20) == Steady(Fraction(7, 2), 2, 0)


def test_parts_that_no_tensor_joins_go_at_their_own_pace_and_the_slowest_counts():
    graph = EventGraph((3, 5), (0, 0), ((0,), (1,)), (), ())
    assert played(graph, 10) == Steady(Fraction(5), 1, 0)


def test_too_few_frames_show_nothing():
    graph = EventGraph((1, 1), (0, 1), ((0,), (1,)), ((0, 1, 5),), ((0, 1, 2),))
    assert played(graph, 3) is None
