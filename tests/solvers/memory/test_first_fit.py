"""First fits: what lies at the bottom, and what is aligned."""

from __future__ import annotations

from parapipe.solvers.memory.offsets import FirstFits
from tests.cases.arena_cases import problem_of


def test_what_meets_all_others_lies_at_the_bottom_and_is_in_no_order():
    fits = FirstFits(problem_of((4, 0, 3), (2, 0, 9), (4, 4, 9), (3, 0, 9)))
    assert (fits.bottom, fits.floor, fits.others) == ([0, 0, 0, 2], 5, [0, 2])
    assert all(sorted(order) == [0, 2] for order in fits.orders())
    found = fits.placed([0, 2])
    assert (found.offset_bytes, found.size_bytes) == ([5, 0, 5, 2], 9)


def test_sizes_that_are_no_multiples_leave_gaps_below_what_is_aligned():
    fits = FirstFits(problem_of((3, 0, 9), (3, 0, 4), (3, 5, 9), alignment_bytes=4))
    assert fits.placed([1, 2]).offset_bytes == [0, 4, 4]
