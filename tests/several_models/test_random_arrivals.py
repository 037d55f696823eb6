"""Frames that come at random, against a queue that is followed frame by frame."""

import random
from itertools import pairwise
from math import ceil

import pytest

from parapipe.several_models.random_arrivals import (
    latencies_through_turns,
    simulate_random_arrivals,
)


def followed(rate_fps, turn_s, frames=60_000):
    """The 99th percentile of the wait, one frame after the other."""
    draw, now_s, free, waits = random.Random(5), 0.0, 0, []
    for _ in range(frames):
        now_s += draw.expovariate(rate_fps)
        turn = max(free, ceil(now_s / turn_s))
        free = turn + 1
        waits.append(turn * turn_s - now_s)
    return sorted(waits[1000:])[int(0.99 * (frames - 1000))]


@pytest.mark.parametrize("rate_fps", [1.0, 5.0, 8.0])
def test_nearly_all_frames_wait_as_long_as_in_a_queue_that_is_followed(rate_fps):
    found = simulate_random_arrivals(rate_fps, 0.1, 0.05)
    assert found.utilisation == pytest.approx(rate_fps / 10)
    assert found.p99_s == pytest.approx(followed(rate_fps, 0.1) + 0.05, rel=0.08)


def test_rare_frames_wait_for_at_most_a_turn():
    assert simulate_random_arrivals(0.001, 0.1, 0.05).p99_s == pytest.approx(0.15, abs=0.002)


def test_as_many_frames_as_turns_wait_longer_and_longer():
    assert simulate_random_arrivals(10.0, 0.1, 0.05).p99_s is None


@pytest.mark.parametrize("rate_fps", [2.0, 7.0])
def test_turns_that_were_taken_in_equal_steps_give_what_is_predicted(rate_fps):
    turns = [(0.1 * turn, 0.1 * turn + 0.05) for turn in range(100_000)]
    took_s = sorted(latencies_through_turns(rate_fps, turns, 1))
    assert len(took_s) == pytest.approx(rate_fps * 10_000, rel=0.02)
    p99_s = took_s[int(0.99 * len(took_s))]
    assert p99_s == pytest.approx(simulate_random_arrivals(rate_fps, 0.1, 0.05).p99_s, rel=0.08)


def test_one_turn_is_for_one_frame_and_frames_without_a_turn_do_not_count():
    # 1000 frames or so come in a second with eleven turns: ten begin after it began
    took_s = latencies_through_turns(
        1000.0, [(0.1 * turn, 0.1 * turn + 0.05) for turn in range(11)], 0
    )
    assert len(took_s) == 10
    # all came within the first moments, and the turns follow one another
    steps = [later - one for one, later in pairwise(took_s)]
    assert steps == pytest.approx([0.1] * 9, abs=0.01)


def test_a_longer_turn_makes_only_its_own_frame_wait_longer():
    turns = [(0.1 * turn, 0.1 * turn + 0.05) for turn in range(1000)]
    late = [*turns[:-1], (turns[-1][0], turns[-1][1] + 3.0)]
    more = sum(latencies_through_turns(9.9, late, 3)) - sum(latencies_through_turns(9.9, turns, 3))
    assert more == pytest.approx(3.0) or more == pytest.approx(0.0)


def test_no_frame_comes_while_there_is_a_single_turn():
    assert latencies_through_turns(10.0, [(1.0, 2.0)], 0) == []
