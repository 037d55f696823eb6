from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings

from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.oracle import optimum_s
from tests.cases.random_dags import dags, least_makespan_s

FAR = ((0.0, 2.0), (3.0, 0.0))  # 2 s from processor 0 to 1, 3 s back


def test_independent_operators_are_split_evenly() -> None:
    # 7 + 5 on one, 6 + 4 + 2 on the other
    rows = tuple((t, t) for t in (7.0, 6.0, 5.0, 4.0, 2.0))
    assert optimum_s(MappingProblem(rows, (), (0, 1, 2, 3, 4))) == 12.0


def test_a_tensor_from_outside_delays_its_reader() -> None:
    # on 0 it arrives at 3 and the operator ends at 7; on 1, its location, it ends at 6.5
    rows = ((4.0, 6.5),)
    location = Flow(None, (0,), FAR, 1)
    assert optimum_s(MappingProblem(rows, (location,), (0,))) == 6.5
    assert optimum_s(MappingProblem(((4.0, inf),), (location,), (0,))) == 7.0


def test_readers_on_one_processor_share_a_transfer() -> None:
    # 0 must run on processor 0 and its readers on 1: 1 + 2, then 4 + 4
    rows = ((1.0, inf), (inf, 4.0), (inf, 4.0))
    assert optimum_s(MappingProblem(rows, (Flow(0, (1, 2), FAR),), (0, ((1,), (2,))))) == 11.0


def test_transfers_differ_with_their_direction() -> None:
    there = MappingProblem(((1.0, inf), (inf, 1.0)), (Flow(0, (1,), FAR),), (0, 1))
    back = MappingProblem(((inf, 1.0), (1.0, inf)), (Flow(0, (1,), FAR),), (0, 1))
    assert (optimum_s(there), optimum_s(back)) == (4.0, 5.0)


def test_an_operator_may_wait_though_another_one_is_ready() -> None:
    # on processor 0: operator 2 (10 s) is ready at once, but 1 comes at 1 and feeds 3's 10 s on 1
    rows = ((inf, 1.0), (1.0, inf), (10.0, inf), (inf, 10.0))
    free = ((0.0, 0.0), (0.0, 0.0))
    flows = (Flow(0, (1,), free), Flow(1, (3,), free))
    assert optimum_s(MappingProblem(rows, flows, (0, 1, 2, 3))) == 12.0


@pytest.mark.parametrize(
    ("transfer_resource", "optimum"),
    [
        ((), 5.0),  # 1, then 3 under way; 2 runs meanwhile
        (((None, 0), (1, None)), 6.0),  # 2 waits until the sender has sent
        (((None, 1), (0, None)), 5.0),
        (((None, 2), (2, None)), 5.0),
    ],
)
def test_a_transfer_may_keep_its_sender_busy(transfer_resource, optimum) -> None:
    rows = ((1.0, inf), (inf, 1.0), (2.0, inf))
    far = ((0.0, 3.0), (3.0, 0.0))
    assert (
        optimum_s(MappingProblem(rows, (Flow(0, (1,), far),), (0, 1, 2), transfer_resource))
        == optimum
    )


@settings(max_examples=60, deadline=None)
@given(dags(most_operators=5))
def test_it_agrees_with_trying_every_placement_in_every_topological_order(problem) -> None:
    assert optimum_s(problem) == pytest.approx(least_makespan_s(problem), abs=1e-12)
