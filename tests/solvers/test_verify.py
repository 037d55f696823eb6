from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from parapipe.errors import VerificationError
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay
from parapipe.solvers.schedule import Certificate, Schedule
from parapipe.solvers.verify import verify

SLOW = ((0.0, 2.0), (3.0, 0.0))
CLAIM = Certificate("makespan", 11.0, 11.0, True, 0.0, 0, "by hand")

# 0 → (1, 2) → 3, an outside tensor for 1 at home on processor 1; 3 runs on processor 0 only
PROBLEM = MappingProblem(
    ((1.0, 2.0), (4.0, 8.0), (2.0, 4.0), (1.0, inf)),
    (
        Flow(0, (1, 2), SLOW),
        Flow(1, (3,), SLOW),
        Flow(2, (3,), SLOW),
        Flow(None, (1,), SLOW, 1),
    ),
    (0, ((1,), (2,)), 3),
)
# 1 waits until 3 for the outside tensor; 2 until 3 for 0's output; 3 until 10 for 2's
VALID = Schedule((0, 0, 1, 0), (0.0, 3.0, 3.0, 10.0), (1.0, 7.0, 7.0, 11.0), CLAIM)


def changed(times: tuple[float, ...], index: int, value: float) -> tuple[float, ...]:
    return (*times[:index], value, *times[index + 1 :])


def violations(schedule: Schedule, problem: MappingProblem = PROBLEM) -> tuple[str, ...]:
    with pytest.raises(VerificationError) as caught:
        verify(problem, schedule)
    assert all(violation in str(caught.value) for violation in caught.value.violations)
    return caught.value.violations


def test_a_valid_schedule_passes() -> None:
    verify(PROBLEM, VALID)


def test_an_operator_that_misses_is_noticed() -> None:
    short = Schedule((0, 0, 1), (0.0, 3.0, 3.0), (1.0, 7.0, 7.0), CLAIM)
    assert violations(short) == ("it gives 3 processors, 3 starts and 3 ends for 4 operators",)


def test_a_processor_that_does_not_support_the_operator_is_noticed() -> None:
    (only,) = violations(replace(VALID, processor=(0, 0, 1, 1)))
    assert only == "operator 3 runs on processor 1, which does not support it"


@pytest.mark.parametrize("processor", [-1, 2])
def test_a_processor_that_does_not_exist_is_noticed(processor) -> None:
    (only,) = violations(replace(VALID, processor=(0, 0, 1, processor)))
    assert only == f"operator 3 runs on processor {processor}, and there are 2"


@pytest.mark.parametrize("end_s", [6.5, 7.5])
def test_a_wrong_duration_is_noticed(end_s) -> None:
    (only,) = violations(replace(VALID, end_s=changed(VALID.end_s, 1, end_s)))
    assert only == f"operator 1 runs for {end_s - 3:g} s where processor 0 needs 4 s"


def test_a_start_before_zero_is_noticed() -> None:
    early = replace(
        VALID, start_s=changed(VALID.start_s, 0, -0.5), end_s=changed(VALID.end_s, 0, 0.5)
    )
    assert violations(early) == ("operator 0 starts at -0.5 s, before 0",)


def test_two_operators_at_once_on_one_processor_are_noticed() -> None:
    independent = MappingProblem(((2.0,), (2.0,)), (), (((0,), (1,)),))
    claim = replace(CLAIM, bound_s=0.0)
    verify(independent, Schedule((0, 0), (0.0, 2.0), (2.0, 4.0), claim))
    overlap = Schedule((0, 0), (0.0, 1.5), (2.0, 3.5), claim)
    assert violations(overlap, independent) == (
        "operator 1 starts at 1.5 s on processor 0, which runs operator 0 until 2 s",
    )


def test_an_operator_inside_a_longer_one_is_noticed_even_behind_a_third() -> None:
    independent = MappingProblem(((9.0,), (1.0,), (1.0,)), (), (((0,), (1,), (2,)),))
    claim = replace(CLAIM, bound_s=0.0)
    nested = Schedule((0, 0, 0), (0.0, 1.0, 4.0), (9.0, 2.0, 5.0), claim)
    assert len(violations(nested, independent)) == 2


def test_a_consumer_before_its_input_has_arrived_is_noticed() -> None:
    early = replace(
        VALID, start_s=changed(VALID.start_s, 2, 2.5), end_s=changed(VALID.end_s, 2, 6.5)
    )
    assert violations(early) == (
        "operator 2 starts at 2.5 s, and the output of operator 0 arrives on processor 1 at 3 s",
    )


def test_a_consumer_before_an_outside_tensor_has_arrived_is_noticed() -> None:
    early = replace(
        VALID, start_s=changed(VALID.start_s, 1, 1.0), end_s=changed(VALID.end_s, 1, 5.0)
    )
    (only,) = violations(early)
    assert only.endswith("a tensor located on processor 1 arrives on processor 0 at 3 s")


@pytest.mark.parametrize("value", [inf, nan, -inf])
def test_a_time_that_is_not_finite_is_noticed(value) -> None:
    (only,) = violations(replace(VALID, start_s=changed(VALID.start_s, 3, value)))
    assert "operator 3" in only
    assert "not both finite" in only


def test_a_bound_above_the_objective_is_noticed() -> None:
    (only,) = violations(replace(VALID, certificate=replace(CLAIM, objective_s=10.0)))
    assert only == "its bound 11 s lies above its objective 10 s"


def test_a_makespan_below_its_proven_bound_is_noticed() -> None:
    claim = replace(CLAIM, objective_s=12.0, bound_s=12.0)
    (only,) = violations(replace(VALID, certificate=claim))
    assert only == "its makespan 11 s lies below its bound 12 s"


def test_a_bound_on_another_figure_may_lie_above_the_makespan() -> None:
    claim = replace(CLAIM, proves="L of equation (2)", objective_s=12.0, bound_s=12.0)
    verify(PROBLEM, replace(VALID, certificate=claim))


@pytest.mark.parametrize("figure", ["objective_s", "bound_s", "wall_s"])
def test_a_certificate_with_a_number_that_is_not_finite_is_noticed(figure) -> None:
    (only,) = violations(replace(VALID, certificate=replace(CLAIM, **{figure: nan})))
    assert "not all finite" in only


def test_all_violations_are_listed() -> None:
    bad = Schedule((1, 0, 1, 1), (-1.0, 1.0, 1.0, 4.0), (1.0, 5.0, 4.0, 5.0), CLAIM)
    found = violations(bad)
    for part in (
        "operator 3 runs on processor 1, which does not support it",
        "operator 0 starts at -1 s, before 0",
        "operator 2 runs for 3 s where processor 1 needs 4 s",
        "operator 1 starts at 1 s, and the output of operator 0",
        "operator 1 starts at 1 s, and a tensor located",
    ):
        assert any(part in violation for violation in found)
    assert len(found) == 5


def test_rounding_of_long_sums_is_allowed() -> None:
    count = 200
    chain = MappingProblem(
        ((0.1,),) * count,
        tuple(Flow(v, (v + 1,), ((0.0,),)) for v in range(count - 1)),
        tuple(range(count)),
    )
    found = replay(chain, (0,) * count, range(count))
    start_s, end_s = found.start_s, found.end_s
    # the products differ from the running sums in the last digits
    exact = Schedule(
        (0,) * count,
        tuple(0.1 * v for v in range(count)),
        tuple(0.1 * (v + 1) for v in range(count)),
        replace(CLAIM, objective_s=20.0, bound_s=20.0),
    )
    assert exact.end_s != end_s
    verify(chain, exact)
    verify(chain, replace(exact, start_s=start_s, end_s=end_s))


def test_a_picosecond_too_early_is_no_rounding() -> None:
    early = replace(
        VALID,
        start_s=changed(VALID.start_s, 2, 3 - 1e-12),
        end_s=changed(VALID.end_s, 2, 7 - 1e-12),
    )
    assert len(violations(early)) == 1


def test_operators_that_take_no_time_may_share_an_instant() -> None:
    views = MappingProblem(((0.0,), (0.0,), (1.0,)), (), (((0,), (1,), (2,)),))
    claim = replace(CLAIM, objective_s=1.0, bound_s=1.0)
    verify(views, Schedule((0, 0, 0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), claim))
    verify(views, Schedule((0, 0, 0), (1.0, 0.0, 0.0), (1.0, 0.0, 1.0), claim))
