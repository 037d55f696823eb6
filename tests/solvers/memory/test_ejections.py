"""Ejections: what they find where first fits do not, and that they end where there is nothing.

Beside them: trying all orders, and frame by frame on the circle.
"""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.memory.ejections import Ejections
from parapipe.solvers.memory.offsets import (
    ArenaProblem,
    Buffer,
    FirstFits,
    Packing,
    frames_of,
    violations,
)
from tests.cases.arena_cases import problem_of


@st.composite
def problems(draw: st.DrawFn) -> ArenaProblem:
    period = draw(st.sampled_from((None, 12)))
    buffers = []
    for i in range(draw(st.integers(1, 6))):
        begin, length = draw(st.integers(0, 11)), draw(st.integers(1, 12))
        alignment = draw(st.sampled_from((1, 1, 2, 4, 3)))
        buffers.append(Buffer(f"b{i}", draw(st.integers(1, 9)), begin, begin + length, alignment))
    return ArenaProblem(tuple(buffers), period)


def at_once(problem: ArenaProblem, a: int, b: int) -> bool:
    """Whether two buffers are alive at the same time, unit of time by unit of time."""
    times = [
        {t % (problem.period or 1 << 30) for t in range(each.begin, each.end)}
        for each in (problem.buffers[a], problem.buffers[b])
    ]
    return not times[0].isdisjoint(times[1])


def least_bytes(problem: ArenaProblem) -> int:
    """Stack the buffers in all orders, each above those before it that live at the same time."""
    count = range(len(problem.buffers))
    beside = {(a, b) for a in count for b in count if at_once(problem, a, b)}
    least = 1 << 30
    for order in permutations(count):
        ends: dict[int, int] = {}
        for b in order:
            each = problem.buffers[b]
            below = max((end for a, end in ends.items() if (a, b) in beside), default=0)
            ends[b] = -(-below // each.alignment_bytes) * each.alignment_bytes + each.size_bytes
        least = min(least, max(ends.values()))
    return least


def least_found(problem: ArenaProblem) -> Packing:
    """The smallest arena that first fits and ejections find."""
    fits = FirstFits(problem)
    first, *_ = fits.smallest_first(problem.peak_bytes)
    return Ejections(fits, first, 0).least(problem.peak_bytes, 2000)


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
    start = Packing(9, [2, 0, 1, 5, 7])
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


@settings(max_examples=150, deadline=None)
@given(problems())
def test_few_buffers_take_no_less_than_in_the_best_of_all_orders(problem):
    found = least_found(problem)
    assert found.size_bytes >= least_bytes(problem) >= problem.peak_bytes
    assert violations(problem, found.offset_bytes) == []


def test_the_published_example_takes_its_capacity():
    # That of MiniMalloc's README, which fits into 12.
    problem = problem_of((4, 0, 3), (4, 3, 9), (4, 0, 9), (4, 9, 21), (4, 0, 21))
    assert least_found(problem).size_bytes == 12


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=1, max_size=5), st.integers(1, 4))
def test_no_frame_writes_over_another_one_that_is_alive(tensors, frames):
    period, owners, buffers, taking_turns = 4, [], [], []
    for i, (size, begin, length) in enumerate(tensors):
        own = [*frames_of(Buffer(f"t{i}", size, begin, begin + length), period, frames)]
        owners.append(range(len(buffers), len(buffers) + len(own)))
        taking_turns.append(len(own))
        buffers += own
    problem = ArenaProblem(tuple(buffers), period * frames)
    offsets = least_found(problem).offset_bytes
    used: dict[tuple[int, int], tuple[int, int]] = {}  # by time and byte
    for frame in range(3 * frames + 8):
        for i, (size, begin, length) in enumerate(tensors):
            offset = offsets[owners[i][frame % taking_turns[i]]]
            for time in range(frame * period + begin, frame * period + begin + length):
                for byte in range(offset, offset + size):
                    assert used.setdefault((time, byte), (i, frame)) == (i, frame)
