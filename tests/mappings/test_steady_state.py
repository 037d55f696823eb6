"""Frames until all recurs, while what runs together slows each other down: solved by hand."""

from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mappings.event_graph import EventGraph
from parapipe.mappings.frame_replay import Admission, Replay
from parapipe.mappings.steady_state import recurrence
from tests.mappings.test_frame_replay import SATURATED, pipe

PS = 10**6


def doubled(running):
    """Everything takes twice as long beside something else."""
    return [2.0 if len(running) > 1 else 1.0] * len(running)


def test_a_stage_that_is_always_at_work_is_slowed_down_while_the_other_one_runs():
    # Alone 4 and 2. The second one runs for 4 of each period, both at half their speed; the first
    # one has done 2 by then, and does the other 2 alone.
    found = recurrence(pipe(4 * PS, 2 * PS), SATURATED, doubled)
    assert (found.period_ps, found.frames, found.exact) == (6 * PS, 1, True)
    (first,), (second,) = found.spans
    assert (first.end_ps - first.start_ps, second.end_ps - second.start_ps) == (6 * PS, 4 * PS)


def test_frames_that_come_at_long_intervals_meet_nobody():
    found = recurrence(pipe(4 * PS, 2 * PS), Admission(frozenset({0}), 7 * PS, 2), doubled)
    (first,), (second,) = found.spans
    assert (first.end_ps - first.start_ps, second.end_ps - second.start_ps) == (4 * PS, 2 * PS)
    assert found.period_ps == 7 * PS


def test_two_that_take_turns_meet_themselves():
    graph = EventGraph((6 * PS,), (0,), ((0,),), (), (), (2,))
    found = recurrence(graph, SATURATED, doubled)
    assert found.period_ps == 6 * PS  # two at half their speed


def test_what_does_not_recur_is_said_to_be_a_mean():
    # Two that nothing joins, at paces whose ratio is large.
    graph = EventGraph((1, 10**9 + 7), (0, 0), ((0,), (1,)), (), ())
    found = recurrence(graph, Admission(frozenset({0, 1}), None, 2), None, 20)
    assert not found.exact
    assert found.period_ps == 10**9 + 7


def test_an_interval_need_not_be_whole():
    found = Replay(pipe(1), 4, Admission(frozenset({0}), Fraction(5, 2), 2)).run()
    assert found.admitted_ps == [0, 3, 5, 8]
    assert recurrence(pipe(1), Admission(frozenset({0}), Fraction(5, 2), 2), None).frames == 2


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_what_recurs_goes_on_for_ever_and_lies_between_the_times_alone_and_the_longest(seed):
    rng = random.Random(seed)
    graph = pipe(*(rng.randint(1, 9) * PS for _ in range(rng.randint(1, 4))), slots=2)
    alone = list(graph.time_ps)
    law = {}

    def slowdown(running):
        key = frozenset(task for task, _ in running)
        if len(key) < 2:
            return [1.0] * len(running)
        return [law.setdefault((key, task), rng.uniform(1, 3)) for task, _ in running]

    found = recurrence(graph, SATURATED, slowdown)
    longest = [time * 3 for time in alone]
    assert max(alone) <= found.period_ps <= max(longest)
    if found.exact:
        frames = found.spans[0][0].frame + 4 * found.frames + len(alone)
        again = Replay(graph, frames + 8, SATURATED, slowdown=slowdown).run()
        for task, spans in enumerate(found.spans):
            for span in spans:
                later = span.frame + found.frames
                assert again.start_ps[task][later] == span.start_ps + found.took_ps
                assert again.end_ps[task][later] == span.end_ps + found.took_ps


def test_work_that_is_left_is_rounded_to_the_picosecond():
    # 5 and 1 at factors of 3: the second one ends at 3, when a whole 1 of the first is done.
    found = Replay(
        EventGraph((5, 1), (0, 0), ((0,), (1,)), (), ()), 1,
        Admission(frozenset({0, 1}), None, 2),
        slowdown=lambda running: [3.0 if len(running) > 1 else 1.0] * len(running),
    ).run()  # fmt: skip
    assert found.end_ps == [[7], [3]]
