"""What arena problems say of their buffers."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.solvers.memory import offsets
from parapipe.solvers.memory.offsets import ArenaProblem, Buffer, check, frames_of, violations
from tests.cases.arena_cases import problem_of

PERIOD = 12
# The example of MiniMalloc's README.
EXAMPLE = problem_of((4, 0, 3), (4, 3, 9), (4, 0, 9), (4, 9, 21), (4, 0, 21))


@pytest.mark.parametrize("period", [None, PERIOD])
@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.integers(0, PERIOD - 1), st.integers(1, PERIOD)), max_size=12),
    compared=st.integers(1, 4),
)
def test_buffers_overlap_where_both_are_alive_at_some_time(period, rows, compared):
    problem = problem_of(*((1, begin, begin + length) for begin, length in rows), period=period)
    alive = [{at % (period or 99) for at in range(begin, begin + length)} for begin, length in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets, "ROWS", compared)
        found = [each.tolist() for each in problem.overlaps]
    assert found == [
        [b for b in range(len(rows)) if b != a and alive[a] & alive[b]] for a in range(len(rows))
    ]


def test_each_pair_of_sections_is_that_of_a_pair_that_overlaps():
    problem = problem_of((1, 0, 4), (1, 3, 7), (1, 6, 10), (2, 0, 4), (2, 4, 9), period=9)
    for a, b in product(range(5), repeat=2):
        together = bool({*problem.sections[a].tolist()} & {*problem.sections[b].tolist()})
        assert together == (a == b or b in problem.overlaps[a].tolist())


def test_the_readmes_own_offsets_are_right_and_others_are_not():
    assert violations(EXAMPLE, (8, 8, 4, 4, 0)) == []
    assert violations(EXAMPLE, (8, 8, 5, 4, 0)) == [
        "'b2' and 'b0' overlap",
        "'b1' and 'b2' overlap",
    ]
    assert violations(EXAMPLE, (8, 8)) == ["2 offsets for 5 buffers"]


def test_a_wrong_alignment_is_named():
    problem = ArenaProblem((Buffer("a", 3, 0, 1, 64),))
    assert violations(problem, (32,)) == ["'a' is at 32, no multiple of 64 from 0 on"]


def test_what_lives_longer_than_a_period_takes_turns():
    buffer = Buffer("t", 4, 3, 3 + 25, 2)
    assert [*frames_of(buffer, 10)] == [Buffer(f"t@{i}", 4, 0, 10, 2) for i in range(3)]
    assert [*frames_of(buffer, 10, 3)] == [
        Buffer(f"t@{i}", 4, 3 + 10 * i, 28 + 10 * i, 2) for i in range(3)
    ]
    assert [*frames_of(Buffer("t", 4, 13, 15), 10)] == [Buffer("t", 4, 3, 5)]


@pytest.mark.parametrize(("size", "begin", "end"), [(0, 0, 1), (1, 3, 3)])
def test_a_buffer_without_size_or_life_is_refused(size, begin, end):
    with pytest.raises(ValueError, match="buffer 'a': size, alignment and length"):
        Buffer("a", size, begin, end)


@pytest.mark.parametrize(("begin", "end"), [(10, 11), (1, 12), (-1, 2)])
def test_a_life_beyond_the_period_is_refused(begin, end):
    with pytest.raises(ValueError, match="'b0' has to begin within the period of 10"):
        problem_of((1, begin, end), period=10)


def test_offsets_that_are_wrong_are_refused():
    check(EXAMPLE, (8, 8, 4, 4, 0))
    with pytest.raises(VerificationError, match="do not lie right: 'b2' and 'b0' overlap; 'b1'"):
        check(EXAMPLE, (8, 8, 5, 4, 0))


def test_a_life_that_wraps_counts_on_both_sides_in_the_peak():
    assert problem_of((5, 8, 12), (5, 0, 2), (5, 2, 8), period=10).peak_bytes == 10


def test_alignments_that_do_not_divide_the_sizes_count_in_the_peak():
    lives = ((0, 4), (3, 7), (6, 10))
    problem = ArenaProblem(tuple(Buffer("b", 6, *life, 4) for life in lives), period=9)
    assert problem.peak_bytes == 8 + 6
