"""Each rule on transfers, broken one at a time."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from parapipe.errors import VerificationError
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Certificate, Schedule, Transfer
from parapipe.solvers.verify import verify
from tests.cases.occupying_cases import LINK, RECEIVER, SENDER, fork

CLAIM = Certificate("makespan", 6.0, 0.0, False, 0.0, 0, "by hand")
# 0 ends at 1, its output is under way until 4, 2 runs behind that on the sender
VALID = Schedule((0, 1, 0), (0.0, 4.0, 4.0), (1.0, 5.0, 6.0), CLAIM, (Transfer(0, 1, 1.0, 4.0),))


def violations(schedule, problem):
    with pytest.raises(VerificationError) as caught:
        verify(problem, schedule)
    return caught.value.violations


@pytest.mark.parametrize("transfer_resource", [SENDER, RECEIVER, LINK])
def test_a_valid_schedule_passes_whatever_the_transfer_occupies(transfer_resource) -> None:
    verify(fork(transfer_resource), VALID)


def test_a_transfer_that_misses_is_noticed() -> None:
    (only,) = violations(replace(VALID, transfers=()), fork(SENDER))
    assert only == "flow 0 must be moved to processor 1 once, and is 0 times"


def test_a_transfer_that_stands_twice_is_noticed() -> None:
    twice = replace(VALID, transfers=VALID.transfers * 2)
    assert "flow 0 must be moved to processor 1 once, and is 2 times" in violations(
        twice, fork(SENDER)
    )


@pytest.mark.parametrize("extra", [Transfer(0, 0, 1.0, 1.0), Transfer(7, 1, 9.0, 9.0)])
def test_a_transfer_that_nobody_needs_is_noticed(extra) -> None:
    (only,) = violations(replace(VALID, transfers=(*VALID.transfers, extra)), fork(SENDER))
    assert f"moves flow {extra.flow} to processor {extra.target}, which is not needed" in only


def test_a_transfer_that_occupies_nothing_has_no_time_of_its_own() -> None:
    (only,) = violations(VALID, fork(()))
    assert only.endswith("which is not needed or occupies nothing")


@pytest.mark.parametrize("end_s", [3.5, 4.0 - 1e-9])
def test_a_wrong_length_is_noticed(end_s) -> None:
    wrong = replace(VALID, transfers=(Transfer(0, 1, 1.0, end_s),))
    assert any("where it needs 3 s" in each for each in violations(wrong, fork(RECEIVER)))


def test_a_transfer_before_its_tensor_is_made_is_noticed() -> None:
    early = replace(VALID, transfers=(Transfer(0, 1, 0.5, 3.5),))
    (only,) = violations(early, fork(LINK))
    assert only.endswith("starts at 0.5 s, and the tensor is made at 1 s")


def test_a_consumer_before_the_end_of_its_transfer_is_noticed() -> None:
    late = replace(VALID, transfers=(Transfer(0, 1, 1.5, 4.5),))
    (only,) = violations(late, fork(LINK))
    assert only == (
        "operator 1 starts at 4 s, and the transfer of flow 0 to processor 1 ends at 4.5 s"
    )


def test_an_operator_beside_a_transfer_on_its_processor_is_noticed() -> None:
    beside = replace(VALID, start_s=(0.0, 4.0, 2.0), end_s=(1.0, 5.0, 4.0))
    verify(fork(RECEIVER), beside)
    (only,) = violations(beside, fork(SENDER))
    assert only == (
        "the transfer of flow 0 to processor 1 and operator 2 are on resource 0 at the same time"
    )


def test_two_transfers_at_once_on_a_shared_link_are_noticed() -> None:
    far = ((0.0, 3.0), (3.0, 0.0))
    flows = (Flow(None, (0,), far, 0), Flow(None, (0,), far, 0))
    problem = MappingProblem(((inf, 1.0),), flows, (0,), LINK)
    claim = replace(CLAIM, objective_s=7.0)
    apart = (Transfer(0, 1, 0.0, 3.0), Transfer(1, 1, 3.0, 6.0))
    schedule = Schedule((1,), (6.0,), (7.0,), claim, apart)
    verify(problem, schedule)
    (only,) = violations(replace(schedule, transfers=(apart[0], Transfer(1, 1, 2.0, 5.0))), problem)
    assert only.endswith("are on resource 2 at the same time")


@pytest.mark.parametrize("value", [inf, nan])
def test_a_time_that_is_not_finite_is_noticed_once(value) -> None:
    wrong = replace(VALID, transfers=(Transfer(0, 1, value, 4.0),))
    (only,) = violations(wrong, fork(SENDER))
    assert only.endswith("not finite")
