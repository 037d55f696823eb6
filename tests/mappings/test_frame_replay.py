"""The replay of frames: small pipelines solved by hand."""

from __future__ import annotations

import pytest

from parapipe.mappings.event_graph import EventGraph
from parapipe.mappings.frame_replay import Admission, Replay, StuckError

SATURATED = Admission(frozenset({0}), None, 2)


def pipe(*times, delay=0, slots=2):
    """Operators one behind the other, each on a resource and a stage of its own."""
    return EventGraph(
        time_ps=times,
        lag=tuple(range(len(times))),
        orders=tuple((v,) for v in range(len(times))),
        waits=tuple((v, v + 1, delay) for v in range(len(times) - 1)),
        channels=tuple((v, v + 1, slots) for v in range(len(times) - 1)),
    )


def test_neighbours_overlap_with_two_slots_and_serialise_with_one():
    two = Replay(pipe(2, 3), 4, SATURATED).run()
    assert two.start_ps == [[0, 2, 5, 8], [2, 5, 8, 11]]
    one = Replay(pipe(2, 3, slots=1), 4, SATURATED).run()
    assert one.start_ps == [[0, 5, 10, 15], [2, 7, 12, 17]]


def test_a_transfer_delays_the_reader_and_not_the_sender():
    found = Replay(pipe(2, 1, delay=4, slots=5), 3, SATURATED).run()
    assert found.start_ps == [[0, 2, 4], [6, 8, 10]]


def test_paced_frames_come_at_their_times():
    found = Replay(pipe(2, 3), 3, Admission(frozenset({0}), 7, 2)).run()
    assert found.admitted_ps == [0, 7, 14]
    assert found.end_ps == [[2, 9, 16], [5, 12, 19]]


def test_saturated_frames_are_let_in_while_few_have_not_begun():
    found = Replay(pipe(2, 3), 5, SATURATED).run()
    assert found.start_ps[0] == [0, 2, 5, 8, 11]
    assert found.admitted_ps == [0, 0, 0, 2, 5]


def test_a_resource_takes_what_lags_for_its_own_frame():
    # Resource 0 does task 0 for frame r, then task 2 for frame r - 1; resource 1 works in between.
    graph = EventGraph(
        time_ps=(1, 5, 1),
        lag=(0, 0, 1),
        orders=((0, 2), (1,)),
        waits=((0, 1, 0), (1, 2, 0)),
        channels=((0, 1, 2), (1, 2, 2)),
    )
    found = Replay(graph, 4, SATURATED).run()
    assert found.start_ps == [[0, 1, 7, 12], [1, 6, 11, 16], [6, 11, 16, 21]]


def test_a_task_of_no_time_passes_at_once():
    assert Replay(pipe(2, 0, 3), 2, SATURATED).run().start_ps == [[0, 2], [2, 4], [2, 5]]


def test_too_few_slots_leave_everybody_waiting():
    # Task 0 waits for room until task 2 has ended for the frame before, which comes behind it.
    graph = EventGraph(
        time_ps=(1, 1, 1), lag=(0, 0, 1), orders=((0, 2), (1,)),
        waits=((0, 1, 0), (1, 2, 0)), channels=((0, 1, 2), (1, 2, 2), (0, 2, 1)),
    )  # fmt: skip
    with pytest.raises(StuckError) as caught:
        Replay(graph, 3, SATURATED).run()
    assert caught.value.waiting == [(0, 1), (1, 1)]


def test_times_and_delays_may_differ_from_frame_to_frame():
    found = Replay(
        pipe(1, 1), 3, SATURATED, work=lambda task, frame: 2 + task, delay=lambda _, frame: frame
    ).run()
    assert found.start_ps == [[0, 2, 5], [2, 5, 9]]


def test_tasks_that_run_together_slow_each_other_down():
    # Alone 2 and 6; together each takes twice as long. Lane 1: 4 ps side by side do 2 of 6, the
    # other 4 ps alone.
    graph = EventGraph((2, 6), (0, 0), ((0,), (1,)), (), ())
    both = Admission(frozenset({0, 1}), None, 2)
    found = Replay(
        graph, 1, both, slowdown=lambda running: [float(len(running))] * len(running)
    ).run()
    assert found.end_ps == [[4], [8]]
