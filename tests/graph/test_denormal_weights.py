"""Denormal numbers are counted, in whatever floating-point type."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from parapipe.graph.skim import count_denormals


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_below_the_least_normal_one_are_denormal_and_zero_is_not(dtype):
    least = np.finfo(dtype).smallest_normal
    below = np.nextafter(least, np.zeros((), dtype))
    numbers = np.array([0, -0.0, 1, np.inf, np.nan, least, -least, below, -below], dtype)
    assert count_denormals(numbers.tobytes(), dtype) == 2


def test_bfloat16_has_the_upper_half_of_float32():
    one, normal, denormal = 0x3F80, 0x0080, 0x007F
    assert count_denormals(np.array([0, one, normal, denormal], "<u2").tobytes(), "bfloat16") == 1


def test_integers_know_none():
    assert count_denormals(np.ones(8, np.int32).tobytes(), "int32") == 0


@given(arrays.arrays(np.uint32, st.integers(0, 50)))
def test_any_bits_are_counted_as_numpy_sees_them(bits):
    numbers = bits.view(np.float32).astype(np.float64)  # in which none of them is denormal
    expected = np.count_nonzero((numbers != 0) & (np.abs(numbers) < np.finfo(np.float32).tiny))
    assert count_denormals(bits.tobytes(), "float32") == expected
