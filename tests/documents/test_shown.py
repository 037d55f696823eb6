"""Which figure a reader sees: one that lies in its interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.documents.shown import SKEWED, ShownFigure, medians_of, shown_figure, shown_values

positive = st.floats(1e-6, 1e6)


@given(positive, st.lists(positive, min_size=3, max_size=3))
def test_the_shown_figure_lies_in_its_interval(stated, ends):
    low, median, high = sorted(ends)
    figure = ShownFigure(stated, low, high, median)
    assert low * (1 - 1e-8) <= figure.value <= high * (1 + 1e-8)
    assert figure.value in (stated, median)
    assert figure.value == stated or not low <= stated <= high
    if figure.even:
        assert figure.half_width <= 1


@pytest.mark.parametrize(("high", "even"), [(1.29, True), (1.31, False)])
def test_an_interval_is_even_up_to_a_ratio_of_its_sides(high, even):
    assert SKEWED == 1.5
    assert ShownFigure(1.0, 0.8, high, 1.0).even == even
    assert ShownFigure(1.0, 1 - (high - 1), 1.2, 1.0).even == even


def test_a_figure_without_doubt_is_even_whatever_rounding_does():
    for near in (0.1 + 0.2, 0.3):
        assert ShownFigure(0.3, near, near, near).even
    assert not ShownFigure(0.3, 0.301, 0.302, 0.3015).inside


def test_throughput_is_the_reciprocal_of_the_period():
    row = {
        "period_s": 0.1,
        "throughput_fps": 10.0,
        "intervals": {"period_s": (0.2, 0.5)},
        "medians": {"period_s": 0.25},
    }
    figure = shown_figure(row, "throughput_fps")
    assert (figure.low, figure.value, figure.high) == (2.0, 4.0, 5.0)
    assert shown_figure(row, "peak_memory_bytes") is None
    assert shown_figure({**row, "medians": None}, "period_s") is None


def test_medians_are_shown_of_a_figure_of_all_rows_as_one_has_to_be():
    def row(median_s):
        return {
            "period_s": 0.1,
            "throughput_fps": 10.0,
            "intervals": {"period_s": (median_s / 2, median_s * 1.5)},
            "medians": {"period_s": median_s},
        }

    assert medians_of([row(0.1), row(0.12)]) == frozenset()
    assert medians_of([row(0.1), row(0.5)]) == {"throughput_fps"}
    assert medians_of([{"period_s": 0.1}]) == frozenset()


def row_of(stated_s, low_s, median_s, high_s):
    return {
        "latency_s": stated_s,
        "intervals": {"latency_s": (low_s, high_s)},
        "medians": {"latency_s": median_s},
    }


def test_rows_are_shown_by_medians_all_or_none():
    inside, outside = row_of(1.0, 0.8, 1.1, 1.4), row_of(1.0, 1.2, 1.5, 2.0)
    assert shown_values([inside], "latency_s") == [1.0]
    assert shown_values([inside, outside], "latency_s") == [1.1, 1.5]
    assert shown_values([{"latency_s": 3.0}, outside], "latency_s") == [3.0, 1.5]
