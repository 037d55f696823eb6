"""Ejections: what they find where first fits do not, and that they end where there is nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mapping.memory.buffers import violations
from parapipe.mapping.memory.ejections import Ejections
from parapipe.mapping.memory.first_fit import FirstFits, Placed
from tests.cases.arena_cases import problem_of


def test_ejections_find_the_peak_where_a_first_fit_does_not():
    problem = problem_of(
        (2, 4, 5), (5, 4, 8), (4, 8, 10), (4, 3, 7), (3, 0, 5), (2, 7, 8), (5, 1, 5), (6, 0, 4)
    )  # fmt: skip
    fits = FirstFits(problem)
    start = fits.placed(sorted(fits.others, key=lambda b: problem.buffers[b].begin))
    found = Ejections(fits, start, 0).least(19, 200)
    assert (start.size_bytes, found.size_bytes, problem.peak_bytes) == (23, 19, 19)
    assert violations(problem, found.offset_bytes) == []


def test_where_the_peak_cannot_be_reached_more_is_tried_and_the_least_is_kept():
    # Each of the three overlaps the other two, two at any time.
    problem = problem_of((1, 0, 4), (1, 3, 7), (1, 6, 10), (2, 0, 4), (2, 4, 9), period=9)
    fits = FirstFits(problem)
    start = Placed(9, [2, 0, 1, 5, 7])
    found = Ejections(fits, start, 0).least(problem.peak_bytes, 20_000)
    assert (problem.peak_bytes, found.size_bytes) == (4, 5)
    assert violations(problem, found.offset_bytes) == []


def test_what_lies_at_the_bottom_is_never_moved():
    fits = FirstFits(problem_of((4, 0, 9), (3, 0, 4), (3, 4, 9), (5, 0, 9)))
    start = fits.placed([1, 2])
    found = Ejections(fits, start, 0).least(0, 100)
    assert (found.size_bytes, found.offset_bytes) == (start.size_bytes, start.offset_bytes)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(1, 12)] * 3), min_size=2, max_size=30),
    st.sampled_from([1, 4]),
    st.integers(0, 3),
)
def test_offsets_are_right_and_never_worse_than_those_given(rows, alignment_bytes, seed):
    lives = ((size, begin, begin + length) for size, begin, length in rows)
    problem = problem_of(*lives, period=25, alignment_bytes=alignment_bytes)
    fits = FirstFits(problem)
    start = fits.placed(fits.others)
    found, again = (Ejections(fits, start, seed).least(0, 300) for _ in range(2))
    assert found == again
    assert violations(problem, found.offset_bytes) == []
    assert problem.peak_bytes <= found.size_bytes <= start.size_bytes
