"""Cores as people write them."""

import re

import pytest

from parapipe.runtime.machine import cores_of


def test_single_cores_and_ranges_are_read():
    assert cores_of(["big=0,2-4", "a=b=7"]) == {"big": (0, 2, 3, 4), "a=b": (7,)}


def test_the_same_twice_is_no_contradiction():
    assert cores_of(["big=0-1", "big=0,1"]) == {"big": (0, 1)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["big"], "'big' is not PROCESSOR=CORES, as in big=0,1 or big=0-3"),
        (["=1"], "'=1' is not PROCESSOR=CORES"),
        (["big=²"], "is not PROCESSOR=CORES"),
        (["big=0-"], "is not PROCESSOR=CORES"),
        (["big=3-1"], "the range 3-1, which ends before it begins"),
        (["big=0-2,1"], "'big=0-2,1' names core 1 twice"),
        (["big=0", "big=1"], "'big' is given twice, with different cores"),
    ],
)
def test_what_makes_no_sense_is_refused(values, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cores_of(values)
