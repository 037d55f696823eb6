"""Frames that come at random, against a queue that is followed frame by frame."""

import random
from math import ceil

import pytest

from parapipe.pipeline.random_arrivals import at_random


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
    found = at_random(rate_fps, 0.1, 0.05)
    assert found.utilisation == pytest.approx(rate_fps / 10)
    assert found.p99_s == pytest.approx(followed(rate_fps, 0.1) + 0.05, rel=0.08)


def test_rare_frames_wait_for_at_most_a_turn():
    assert at_random(0.001, 0.1, 0.05).p99_s == pytest.approx(0.15, abs=0.002)


def test_as_many_frames_as_turns_wait_longer_and_longer():
    assert at_random(10.0, 0.1, 0.05).p99_s is None
