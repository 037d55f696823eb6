"""How much of a budget searches get."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.processes.deadline import Deadline, arena_effort_s, search_s


@given(budget_s=st.floats(1e-6, 1e6))
def test_searches_leave_a_tenth_and_a_second_but_get_half_at_least(budget_s):
    left_s = budget_s - search_s(budget_s)
    assert left_s == pytest.approx(min(budget_s / 2, budget_s / 10 + 1))


def test_without_a_budget_searches_never_end_by_the_clock():
    assert search_s(None) == inf


@given(budget_s=st.floats(1e-6, 1e6), plans=st.integers(1, 1000))
def test_half_of_what_searches_leave_may_go_into_smaller_arenas(budget_s, plans):
    left_s = budget_s - search_s(budget_s)
    assert plans * arena_effort_s(budget_s, plans) == pytest.approx(left_s / 2)
    assert arena_effort_s(None, plans) == inf


def test_a_search_gets_its_share_of_what_is_left_and_so_do_its_parts():
    now_s = 0.0
    deadline = Deadline(20.0, clock=lambda: now_s)
    now_s = 4.0
    with deadline.shared(0.5):
        assert deadline.left_s == 8.0
        with deadline.earlier(0.25):
            assert deadline.left_s == 6.0
    assert deadline.left_s == 16.0
    with deadline.paused():
        now_s = 100.0
    assert deadline.left_s == 16.0
    with Deadline().shared(0.5):
        assert Deadline().left_s == inf
