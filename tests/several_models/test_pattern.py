"""How many frames of each model a pattern has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import ArgumentError
from parapipe.several_models.search import MOST_FRAMES, shortest_pattern

RATES = st.lists(st.floats(1.0, 8.0), min_size=1, max_size=4)


def test_thirty_and_ten_a_second_are_three_and_one_in_a_tenth():
    found = shortest_pattern([30, 10])
    assert found.frames == (3, 1)
    assert found.period_s == pytest.approx(0.1)
    assert found.excess == 0


def test_a_rate_that_is_off_by_a_thousandth_makes_no_long_pattern():
    found = shortest_pattern([29.97, 10])
    assert found.frames == (3, 1)
    assert 3 / found.period_s >= 29.97
    assert 1 / found.period_s == pytest.approx(10, rel=0.002)


@given(rates=RATES)
def test_no_model_gets_fewer_frames_than_are_asked(rates):
    found = shortest_pattern(rates)
    assert sum(found.frames) <= MOST_FRAMES
    given_fps = [count / found.period_s for count in found.frames]
    assert all(n >= rate * (1 - 1e-9) for n, rate in zip(given_fps, rates, strict=True))
    most = max(n / rate for n, rate in zip(given_fps, rates, strict=True))
    assert most == pytest.approx(1 + found.excess)


def test_rates_too_far_apart_are_refused():
    with pytest.raises(ArgumentError, match="nearer to each other"):
        shortest_pattern([*[1.0] * 23, 1.5, 1.5])
