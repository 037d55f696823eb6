from __future__ import annotations

from math import inf

import pytest

from parapipe.errors import MappingError
from parapipe.solvers.paths import list_order
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay

SLOW = ((0.0, 2.0), (3.0, 0.0))  # 2 s from processor 0 to 1, 3 s back


def diamond(*, location: int | None = None) -> MappingProblem:
    """0 → (1, 2) → 3; on processor 1 everything takes twice as long."""
    flows = [Flow(0, (1, 2), SLOW), Flow(1, (3,), SLOW), Flow(2, (3,), SLOW)]
    if location is not None:
        flows.append(Flow(None, (0,), SLOW, location))
    return MappingProblem(
        ((1.0, 2.0), (4.0, 8.0), (2.0, 4.0), (1.0, 2.0)), tuple(flows), (0, ((1,), (2,)), 3)
    )


def test_on_one_processor_operators_follow_each_other_without_a_gap() -> None:
    timed = replay(diamond(), (0, 0, 0, 0), (0, 1, 2, 3))
    assert timed.start_s == (0.0, 1.0, 5.0, 7.0)
    assert timed.end_s == (1.0, 5.0, 7.0, 8.0)


def test_a_tensor_that_changes_processor_arrives_after_its_transfer() -> None:
    # 2 starts at 1 + 2 on processor 1, ends at 7, and its output is back at 10
    timed = replay(diamond(), (0, 0, 1, 0), (0, 1, 2, 3))
    assert timed.start_s == (0.0, 1.0, 3.0, 10.0)
    assert timed.end_s == (1.0, 5.0, 7.0, 11.0)


@pytest.mark.parametrize(("location", "begin_s"), [(0, 0.0), (1, 3.0)])
def test_a_tensor_from_outside_arrives_after_the_transfer_from_its_home(location, begin_s) -> None:
    timed = replay(diamond(location=location), (0, 0, 0, 0), (0, 1, 2, 3))
    assert timed.start_s[0] == begin_s


def test_a_transfer_keeps_no_processor_busy() -> None:
    # while 0's output travels for 2 s, processor 0 already runs operator 1
    timed = replay(diamond(), (0, 0, 1, 1), (0, 1, 2, 3))
    assert timed.start_s[1] == 1.0


def test_the_order_of_one_processor_is_kept() -> None:
    timed = replay(diamond(), (0, 0, 0, 0), (0, 2, 1, 3))
    assert timed.start_s == (0.0, 3.0, 1.0, 7.0)


def test_sequences_of_the_processors_may_be_given_one_behind_the_other() -> None:
    processor = (0, 0, 1, 0)
    assert replay(diamond(), processor, (2, 0, 1, 3)) == replay(diamond(), processor, (0, 1, 2, 3))


def test_an_order_in_a_circle_is_refused_with_the_operators_in_it() -> None:
    with pytest.raises(MappingError, match=r"operators \[1, 3\] wait for each other"):
        replay(diamond(), (0, 0, 1, 0), (0, 3, 1, 2))


@pytest.mark.parametrize(
    ("order", "wrong"),
    [((0, 1, 2), r"\[3\]"), ((0, 1, 1, 2, 3), r"\[1\]"), ((0, 1, 2, 3, 4), r"\[4\]")],
)
def test_an_order_that_misses_repeats_or_invents_operators_is_refused(order, wrong) -> None:
    with pytest.raises(MappingError, match=wrong):
        replay(diamond(), (0, 0, 0, 0), order)


def test_operators_on_processors_that_do_not_support_them_are_all_named() -> None:
    problem = MappingProblem(((1.0, inf), (1.0, 1.0), (1.0, inf)), (), (0, 1, 2))
    with pytest.raises(MappingError, match=r"operators \[0, 2\]"):
        replay(problem, (1, 1, 1), (0, 1, 2))


def test_a_processor_is_needed_for_every_operator() -> None:
    with pytest.raises(MappingError, match="4 operators were given 1 processors"):
        replay(diamond(), (0,), (0, 1, 2, 3))


def test_list_order_starts_what_is_ready_first_whatever_its_priority() -> None:
    # 1 has priority, but its input is 3 s away; 0 can start at once
    problem = MappingProblem(((1.0, 1.0),) * 2, (Flow(None, (1,), SLOW, 1),), (((0,), (1,)),))
    assert list_order(problem, (0, 0), (1, 0)) == (0, 1)


def test_list_order_follows_the_priority_among_operators_that_can_start_together() -> None:
    assert list_order(diamond(), (0, 0, 0, 0), (0, 2, 1, 3)) == (0, 2, 1, 3)
    assert list_order(diamond(), (0, 0, 0, 0), (0, 1, 2, 3)) == (0, 1, 2, 3)
