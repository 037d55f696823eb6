"""How much of a budget searches get."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.processes.deadline import arena_effort_s, search_s


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
