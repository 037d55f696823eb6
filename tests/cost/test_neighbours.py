import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.least_squares import Neighbours, neighbours_of

FIT = np.array([1.0, 2.0])
amount = st.floats(0.1, 100)
pairs = st.tuples(amount, amount)


def near(*operators):
    """Return neighbours given as (amount, amount, ratio)."""
    table = np.array(operators)
    return Neighbours(table[:, :2], table[:, 2])


def test_near_a_slow_operator_times_are_longer_and_far_from_it_as_fitted():
    slow = near((10, 10, 1.5))
    assert slow.decide(np.array([10.0, 10]), FIT).time_s == pytest.approx(45)
    assert slow.decide(np.array([9.0, 10]), FIT).time_s == 29
    assert slow.decide(np.array([30.0, 30]), FIT).time_s == 90


def test_near_a_quick_operator_times_are_shorter_and_far_from_it_as_fitted():
    quick = near((10, 10, 0.5))
    assert quick.decide(np.array([10.0, 10]), FIT).time_s == pytest.approx(15)
    assert quick.decide(np.array([11.5, 10]), FIT).time_s == 31.5
    assert quick.decide(np.array([3.0, 3]), FIT).time_s == 9


@given(st.lists(st.tuples(amount, amount, st.floats(0.3, 3)), min_size=1, max_size=6), pairs, pairs)
def test_more_of_anything_is_never_cheaper_whatever_the_neighbours(operators, less, extra):
    neighbours = near(*operators)
    small, large = np.array(less), np.array(less) + np.array(extra)
    assert (
        0
        <= neighbours.decide(small, FIT).time_s
        <= neighbours.decide(large, FIT).time_s * (1 + 1e-12)
    )


def test_operators_that_a_fit_misses_together_become_neighbours():
    amounts = np.array([[10.0, 10], [10.2, 10.1], [80, 80], [81, 80], [300, 1], [1, 300]])
    times_s = amounts @ FIT * np.array([1.4, 1.4, 0.7, 0.7, 1, 1])
    found = neighbours_of(amounts, times_s, FIT)
    assert found is not None
    assert found.decide(amounts[0], FIT).time_s == pytest.approx(30 * 1.4 ** (2 / 3), rel=0.02)


def test_operators_that_a_fit_meets_are_no_neighbours():
    amounts = np.array([[10.0, 10], [10.2, 10.1], [80, 80], [81, 80]])
    assert neighbours_of(amounts, amounts @ FIT, FIT) is None
    assert neighbours_of(amounts, amounts @ FIT * np.array([1.2, 0.8, 1.2, 0.8]), FIT) is None


def test_a_fit_that_takes_no_time_has_no_neighbours():
    assert neighbours_of(np.array([[0.0, 1]]), np.ones(1), np.array([1.0, 0])) is None


def test_many_operators_take_what_each_takes_alone() -> None:
    rng = np.random.default_rng(3)
    measured = rng.uniform(1, 100, (300, 2))
    found = Neighbours(measured, rng.uniform(0.5, 2, 300))
    asked = measured * rng.uniform(0.95, 1.05, measured.shape)
    times_s = found.times_s(asked, FIT)
    assert times_s == pytest.approx([found.decide(each, FIT).time_s for each in asked])
    for i in range(0, 300, 37):
        others = Neighbours(np.delete(measured, i, 0), np.delete(found.ratios, i))
        alone = others.decide(measured[i], FIT).time_s
        assert found.times_s(measured, FIT, leave_out=True)[i] == pytest.approx(alone)
