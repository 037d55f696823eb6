"""Times of placed operators where transfers keep something busy, solved by hand."""

from __future__ import annotations

from math import inf

import pytest

from parapipe.errors import MappingError
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import needed_transfers, one_at_a_time, replay, time_placement
from parapipe.solvers.schedule import Certificate, Schedule, Transfer
from parapipe.solvers.verify import verify
from tests.cases.occupying_cases import FAR, LINK, RECEIVER, SENDER, any_problem, fork
from tests.cases.random_dags import placements

CLAIM = Certificate("makespan", 0.0, 0.0, False, 0.0, 0, "by hand")


def test_a_sender_is_busy_with_its_transfer_right_after_it_has_made_the_tensor() -> None:
    found = replay(fork(SENDER), (0, 1, 0), (0, 1, 2))
    assert found.transfers == (Transfer(0, 1, 1.0, 4.0),)
    assert found.start_s == (0.0, 4.0, 4.0)


def test_a_receiver_is_busy_with_its_transfer_right_before_the_first_consumer() -> None:
    # another operator of the receiver comes first, and the transfer waits for it
    rows = ((1.0, inf), (inf, 2.0), (inf, 1.0))
    problem = MappingProblem(rows, (Flow(0, (2,), FAR),), (0, 1, 2), RECEIVER)
    found = replay(problem, (0, 1, 1), (0, 1, 2))
    assert found.transfers == (Transfer(0, 1, 2.0, 5.0),)
    assert found.start_s == (0.0, 0.0, 5.0)
    assert replay(problem, (0, 1, 1), (0, 2, 1)).start_s == (0.0, 5.0, 4.0)


def test_a_shared_link_takes_one_transfer_at_a_time_in_the_order_of_the_producers() -> None:
    rows = ((1.0, inf), (inf, 2.0), (inf, 1.0), (1.0, inf))
    flows = (Flow(0, (2,), FAR), Flow(1, (3,), FAR))
    problem = MappingProblem(rows, flows, (0, 1, 2, 3), LINK)
    found = replay(problem, (0, 1, 1, 0), (3, 0, 2, 1)[::-1])
    assert found.transfers == (Transfer(0, 1, 1.0, 4.0), Transfer(1, 0, 4.0, 7.0))
    assert found.makespan_s == 8.0


def test_processors_sequences_may_stand_one_behind_the_other() -> None:
    # with the producers' order of this list, the link would wait for itself in a circle
    rows = ((5.0, inf), (1.0, inf), (inf, 1.0), (inf, 1.0))
    flows = (Flow(0, (2,), FAR), Flow(1, (3,), FAR))
    problem = MappingProblem(rows, flows, (0, 1, 2, 3), LINK)
    found = replay(problem, (0, 0, 1, 1), (1, 0, 3, 2))
    assert [moved.flow for moved in found.transfers] == [1, 0]


def test_consumers_on_one_processor_share_a_transfer() -> None:
    rows = ((1.0, inf), (inf, 1.0), (inf, 1.0))
    problem = MappingProblem(rows, (Flow(0, (1, 2), FAR),), (0, 1, 2), SENDER)
    assert list(needed_transfers(problem, (0, 1, 1))) == [(0, 1)]
    assert replay(problem, (0, 1, 1), (0, 1, 2)).end_s == (1.0, 5.0, 6.0)


def test_a_tensor_from_outside_keeps_its_location_busy_from_the_start() -> None:
    problem = MappingProblem(((2.0, inf), (inf, 1.0)), (Flow(None, (1,), FAR, 0),), (0, 1), SENDER)
    found = replay(problem, (0, 1), (0, 1))
    assert found.transfers == (Transfer(0, 1, 0.0, 3.0),)
    assert found.start_s == (3.0, 3.0)


def test_pairs_that_occupy_nothing_stay_pure_delays() -> None:
    problem = fork(((None, None), (1, None)))
    found = replay(problem, (0, 1, 0), (0, 1, 2))
    assert found.transfers == ()
    assert found.start_s == (0.0, 4.0, 1.0)


def test_an_order_may_place_the_transfers_itself() -> None:
    found = replay(fork(SENDER), (0, 1, 0), (0, 2, (0, 1), 1))
    assert found.transfers == (Transfer(0, 1, 3.0, 6.0),)
    assert found.start_s == (0.0, 6.0, 1.0)


@pytest.mark.parametrize(
    "order", [(0, 2, (0, 1), (0, 1), 1), (0, 2, (1, 1), 1), (0, 2), (0, 1, 2, (0, 0))]
)
def test_an_order_with_other_transfers_than_are_needed_is_refused(order) -> None:
    with pytest.raises(MappingError, match=r"order"):
        replay(fork(SENDER), (0, 1, 0), order)


def test_an_order_that_waits_in_a_circle_is_refused() -> None:
    with pytest.raises(MappingError, match="circle"):
        replay(fork(RECEIVER), (0, 1, 0), (0, 1, (0, 1), 2))


def test_operators_one_at_a_time_wait_for_those_before_on_any_processor() -> None:
    found = one_at_a_time(fork(RECEIVER), (0, 1, 0))
    assert found.start_s == (0.0, 4.0, 5.0)


@pytest.mark.parametrize("seed", range(40))
def test_any_placement_gets_times_that_the_verifier_passes(seed) -> None:
    problem = any_problem(seed)
    order = range(problem.operators)
    for processor in placements(problem):
        in_order = replay(problem, processor, order)
        better = time_placement(problem, processor, order)
        for found in (in_order, better, one_at_a_time(problem, processor)):
            verify(
                problem,
                Schedule(processor, found.start_s, found.end_s, CLAIM, found.transfers),
            )
        assert better.makespan_s <= in_order.makespan_s
