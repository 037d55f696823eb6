"""Offsets of buffers: solved by hand, by trying all orders, and frame by frame on the circle."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mapping.memory.arena import least_arena
from parapipe.mapping.memory.buffers import ArenaProblem, Buffer, frames_of, violations
from parapipe.mapping.memory.offset_search import OutOfNodesError, offsets_within, orders
from tests.cases.arena_cases import problem_of

# The example of MiniMalloc's README, which fits into 12.
EXAMPLE = problem_of((4, 0, 3), (4, 3, 9), (4, 0, 9), (4, 9, 21), (4, 0, 21))


@st.composite
def problems(draw: st.DrawFn, most: int = 6, *, circle: bool | None = None) -> ArenaProblem:
    period = 12 if draw(st.booleans() if circle is None else st.just(circle)) else None
    buffers = []
    for i in range(draw(st.integers(1, most))):
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


def test_the_published_example_takes_its_capacity():
    found = least_arena(EXAMPLE)
    assert (found.size_bytes, found.bound_bytes, found.proven) == (12, 12, True)
    assert violations(EXAMPLE, found.offset_bytes) == []


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


def test_a_life_that_wraps_has_one_offset_on_both_sides():
    problem = problem_of((5, 8, 12), (5, 0, 2), (5, 2, 8), period=10)
    assert problem.peak_bytes == 10
    assert least_arena(problem).size_bytes == 10  # the third lies where either of them does


def test_on_a_circle_an_arena_may_need_more_than_the_peak():
    # Each of three overlaps the other two, two at any time.
    problem = problem_of((1, 0, 4), (1, 3, 7), (1, 6, 10), period=9)
    found = least_arena(problem)
    assert problem.peak_bytes == 2
    assert (found.size_bytes, found.bound_bytes, found.proven) == (3, 3, True)


def test_alignments_that_do_not_divide_the_sizes_count_in_the_bound():
    lives = ((0, 4), (3, 7), (6, 10))
    problem = ArenaProblem(tuple(Buffer("b", 6, *life, 4) for life in lives), period=9)
    assert problem.peak_bytes == 8 + 6
    for most_nodes in (0, 1000):
        found = least_arena(problem, most_nodes=most_nodes)
        assert (found.size_bytes, found.bound_bytes) == (22, 22)  # at 0, 8 and 16


def test_what_lives_longer_than_a_period_takes_turns():
    buffer = Buffer("t", 4, 3, 3 + 25, 2)
    assert [*frames_of(buffer, 10)] == [Buffer(f"t@{i}", 4, 0, 10, 2) for i in range(3)]
    assert [*frames_of(buffer, 10, 3)] == [
        Buffer(f"t@{i}", 4, 3 + 10 * i, 28 + 10 * i, 2) for i in range(3)
    ]
    assert [*frames_of(Buffer("t", 4, 13, 15), 10)] == [Buffer("t", 4, 3, 5)]


def test_no_buffers_need_no_arena():
    assert least_arena(ArenaProblem(())).size_bytes == 0


@pytest.mark.parametrize(("size", "begin", "end"), [(0, 0, 1), (1, 3, 3)])
def test_a_buffer_without_size_or_life_is_refused(size, begin, end):
    with pytest.raises(ValueError, match="buffer 'a': size, alignment and length"):
        Buffer("a", size, begin, end)


@pytest.mark.parametrize(("begin", "end"), [(10, 11), (1, 12), (-1, 2)])
def test_a_life_beyond_the_period_is_refused(begin, end):
    with pytest.raises(ValueError, match="'b0' has to begin within the period of 10"):
        problem_of((1, begin, end), period=10)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_least_arena_is_that_of_all_orders(problem):
    found = least_arena(problem)
    assert found.proven
    assert found.size_bytes == least_bytes(problem)


@settings(max_examples=60, deadline=None)
@given(problems(most=5))
def test_cp_sat_alone_proves_the_same(problem):
    found = least_arena(problem, most_nodes=0, deterministic_s=60)
    assert found.proven
    assert found.size_bytes == least_bytes(problem)


@settings(max_examples=100, deadline=None)
@given(problems(), st.data())
def test_each_order_of_the_search_finds_what_there_is(problem, data):
    least = least_bytes(problem)
    order = data.draw(st.permutations(range(len(problem.buffers))))
    assert offsets_within(problem, order, least - 1, 10_000) is None
    offsets = offsets_within(problem, order, least, 10_000)
    assert offsets is not None
    assert violations(problem, offsets) == []


@settings(max_examples=60, deadline=None)
@given(problems(most=40))
def test_no_two_live_buffers_overlap_in_many(problem):
    found = least_arena(problem, most_changes=200, most_nodes=500, deterministic_s=0.05)
    assert found.size_bytes >= found.bound_bytes >= problem.peak_bytes
    places = [*zip(found.offset_bytes, problem.buffers, strict=True)]
    assert max(offset + each.size_bytes for offset, each in places) == found.size_bytes
    for a, (low, lower) in enumerate(places):
        assert low >= 0
        assert low % lower.alignment_bytes == 0
        for b, (high, upper) in enumerate(places[:a]):
            if at_once(problem, a, b):
                assert low + lower.size_bytes <= high or high + upper.size_bytes <= low


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
    offsets = least_arena(problem, most_nodes=200, deterministic_s=0).offset_bytes
    used: dict[tuple[int, int], tuple[int, int]] = {}  # by time and byte
    for frame in range(3 * frames + 8):
        for i, (size, begin, length) in enumerate(tensors):
            offset = offsets[owners[i][frame % taking_turns[i]]]
            for time in range(frame * period + begin, frame * period + begin + length):
                for byte in range(offset, offset + size):
                    assert used.setdefault((time, byte), (i, frame)) == (i, frame)


def test_the_search_says_that_its_nodes_are_used_up():
    with pytest.raises(OutOfNodesError):
        offsets_within(EXAMPLE, next(orders(EXAMPLE)), 12, 1)


@settings(max_examples=20, deadline=None)
@given(problems(most=40), st.integers(0, 300))
def test_equal_calls_give_equal_arenas(problem, most_nodes):
    first, again = (
        least_arena(problem, most_changes=200, most_nodes=most_nodes, deterministic_s=0.05)
        for _ in range(2)
    )
    assert first == again


def test_eight_hundred_buffers_that_lie_one_above_the_other_are_searched():
    many = problem_of(*((1 + i % 7, 0, 2 + i) for i in range(800)))
    (order, *_) = orders(many)
    found = offsets_within(many, order, many.peak_bytes, 2000)
    assert found is not None
    assert not violations(many, found)
