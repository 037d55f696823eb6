"""First fits: what lies at the bottom, and what changes of the order find."""

from __future__ import annotations

from random import Random

from parapipe.mapping.memory.arena import least_arena
from parapipe.mapping.memory.buffers import ArenaProblem, Buffer, violations
from parapipe.mapping.memory.first_fit import FirstFits


def problem_of(*rows: tuple[int, int, int], alignment_bytes: int = 1) -> ArenaProblem:
    """Buffers by size, begin and end."""
    buffers = (Buffer(f"b{i}", *row, alignment_bytes) for i, row in enumerate(rows))
    return ArenaProblem(tuple(buffers))


def test_what_meets_all_others_lies_at_the_bottom_and_is_in_no_order():
    fits = FirstFits(problem_of((4, 0, 3), (2, 0, 9), (4, 4, 9), (3, 0, 9)))
    assert (fits.bottom, fits.floor, fits.others) == ([0, 0, 0, 2], 5, [0, 2])
    assert all(sorted(order) == [0, 2] for order in fits.orders())
    found = fits.placed([0, 2])
    assert (found.offset_bytes, found.size_bytes) == ([5, 0, 5, 2], 9)


def test_sizes_that_are_no_multiples_leave_gaps_below_what_is_aligned():
    fits = FirstFits(problem_of((3, 0, 9), (3, 0, 4), (3, 5, 9), alignment_bytes=4))
    assert fits.placed([1, 2]).offset_bytes == [0, 4, 4]


def test_moving_a_buffer_gives_what_placing_all_anew_gives():
    problem = problem_of((4, 0, 3), (4, 3, 9), (3, 0, 5), (2, 4, 12), (5, 8, 20), (1, 11, 21))
    fits = FirstFits(problem)
    found, draw = fits.placed([0, 1, 2, 3, 4, 5]), Random(0)
    for _ in range(100):
        at = draw.randrange(6)
        b, to = found.order[at], draw.randrange(at + 1)
        order = [each for each in found.order if each != b]
        order.insert(to, b)
        found = fits.moved(found, b, to)
        assert found == fits.placed(order)


def test_changes_alone_find_the_peak_where_first_fits_do_not():
    problem = problem_of(
        (2, 4, 5), (5, 4, 8), (4, 8, 10), (4, 3, 7), (3, 0, 5), (2, 7, 8), (5, 1, 5), (6, 0, 4)
    )  # fmt: skip
    first = least_arena(problem, most_pairs=0, most_nodes=0, deterministic_s=0)
    changed = least_arena(problem, most_nodes=0, deterministic_s=0)
    assert (first.size_bytes, changed.size_bytes, problem.peak_bytes) == (20, 19, 19)
    assert violations(problem, changed.offset_bytes) == []
