"""Notes on clocks that were seen off the platform's."""

import pytest

from parapipe.cost.profile import Measurement
from parapipe.profiling.profiling_run import clock_notes


def measured(observed_hz):
    return Measurement(
        ("Relu",), "elementwise", 1, 1, "big", 2e9, 1e-3, 5, 0.02, "timed", observed_hz=observed_hz
    )


@pytest.mark.parametrize(
    ("seen_hz", "words"),
    [
        ((2.596e9,), "at 2596 MHz in 1 row,"),
        ((2.5961e9, 2.5964e9), "at 2596 MHz in 2 rows,"),
        ((2.8e9, 2.5e9, 2.0e9), "at 2500 to 2800 MHz in 2 rows,"),
    ],
)
def test_a_clock_that_stood_still_is_one_number(seen_hz, words):
    (note,) = clock_notes(map(measured, seen_hz))
    assert note.startswith(f"processor 'big' was seen {words} not at 2000 MHz as the platform says")
