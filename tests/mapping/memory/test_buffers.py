"""What arena problems say of their buffers."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mapping.memory import buffers
from tests.cases.arena_cases import problem_of

PERIOD = 12


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
        patch.setattr(buffers, "ROWS", compared)
        found = [each.tolist() for each in problem.overlaps]
    assert found == [
        [b for b in range(len(rows)) if b != a and alive[a] & alive[b]] for a in range(len(rows))
    ]


def test_each_pair_of_sections_is_that_of_a_pair_that_overlaps():
    problem = problem_of((1, 0, 4), (1, 3, 7), (1, 6, 10), (2, 0, 4), (2, 4, 9), period=9)
    for a, b in product(range(5), repeat=2):
        together = bool({*problem.sections[a].tolist()} & {*problem.sections[b].tolist()})
        assert together == (a == b or b in problem.overlaps[a].tolist())
