"""Numbers for readers have no exponent."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.digits import plain


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (20_000, 4, "20000"),
        (123_456.7, 4, "123457"),
        (9999.6, 4, "10000"),
        (850, 2, "850"),
        (0.000_012_34, 3, "0.0000123"),
        (104.06, 4, "104.1"),
        (12.0, 4, "12"),
        (0, 4, "0"),
        (-2_000, 2, "-2000"),
    ],
)
def test_a_number_reads_as_it_is_said(value, digits, text):
    assert plain(value, digits) == text


@given(st.floats(1e-12, 1e12), st.integers(2, 6))
def test_there_is_no_exponent_and_the_digits_are_right(value, digits):
    text = plain(value, digits)
    assert re.fullmatch(r"\d+(\.\d+)?", text)
    assert float(text) == pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits))
