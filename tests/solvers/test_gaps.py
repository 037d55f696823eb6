"""Gaps of a processor: what a plain walk over its operators finds, in fewer steps."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.lists import Gaps


def plain(placed, begin, lasts):
    """Walk over all operators by their ends."""
    for start, end in sorted(placed, key=lambda each: (each[1], each[0])):
        if end > begin and begin + lasts > start:
            begin = max(begin, end)
    return begin


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=25))
def test_an_operator_goes_where_a_walk_over_all_others_finds_room(asked) -> None:
    gaps, placed = Gaps(), []
    for begin, lasts in asked:
        start = gaps.first(begin, lasts)
        assert start == plain(placed, begin, lasts)
        gaps.fill(start, start + lasts)
        placed.append((start, start + lasts))


def test_what_takes_no_time_fits_between_two_operators_without_a_gap() -> None:
    gaps = Gaps()
    gaps.fill(0, 2)
    gaps.fill(2, 5)
    assert [gaps.first(1, lasts) for lasts in (0, 1)] == [2, 5]


def test_operators_are_not_put_across_one_that_takes_no_time() -> None:
    gaps = Gaps()
    gaps.fill(3, 3)
    assert [gaps.first(0, lasts) for lasts in (3, 4)] == [0, 3]
