import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.least_squares import nonnegative, robust_nonnegative

amounts = st.floats(0, 100).map(lambda x: round(x, 3))


def matrices(rows, columns):
    row = st.lists(amounts, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows).map(np.array)


def test_a_line_through_the_points_is_found():
    design = np.array([[1.0, 0], [1, 1], [1, 2]])
    assert nonnegative(design, np.array([2.0, 5, 8])) == pytest.approx([2, 3])


def test_a_coefficient_that_would_be_negative_is_zero():
    design = np.array([[1.0, 0], [1, 1], [1, 2]])
    assert nonnegative(design, np.array([3.0, 2, 1])) == pytest.approx([2, 0])


def test_a_column_of_zeros_gets_zero():
    assert nonnegative(np.array([[0.0, 1], [0, 1]]), np.array([4.0, 6])) == pytest.approx([0, 5])


@given(matrices(6, 3), st.lists(amounts, min_size=6, max_size=6).map(np.array))
def test_no_small_step_within_bounds_is_better(design, target):
    best = nonnegative(design, target)
    assert (best >= 0).all()
    gradient = design.T @ (design @ best - target)
    tolerance = 1e-6 * (1 + np.abs(design).sum() * (1 + target.sum()))
    assert (gradient >= -tolerance).all()
    assert abs(gradient @ best) <= tolerance * (1 + best.sum())


def test_one_row_far_off_hardly_moves_a_robust_fit():
    work = np.arange(1.0, 21)
    design = np.column_stack([np.ones(20), work])
    target = 1 + 2 * work
    target[7] *= 10
    found = robust_nonnegative(design, target)
    assert found == pytest.approx([1, 2], rel=0.1)
    assert nonnegative(design, target)[0] > 5


def test_an_offset_is_taken_as_given():
    design = np.ones((3, 1))
    offset = np.array([1.0, 2, 3])
    assert robust_nonnegative(design, offset + 4, offset) == pytest.approx([4])
