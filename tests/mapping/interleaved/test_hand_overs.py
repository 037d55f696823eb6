from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mapping.interleaved.hand_overs import fewest_hand_overs
from parapipe.mapping.interleaved.loads import hand_over_s, least_period, period_s
from parapipe.mapping.problem import Flow, MappingProblem
from tests.cases.occupying_cases import FAR, any_problem
from tests.cases.random_dags import placements

ROUNDED = 1e-5


def fewest(problem, limit_s, **options):
    return fewest_hand_overs(
        problem, limit_s, time_limit_s=20, seed=0, deterministic=True, **options
    )


def test_a_chain_is_cut_once_where_the_period_allows_it() -> None:
    rows = ((1.0, 1.0),) * 4
    chain = MappingProblem(rows, tuple(Flow(v, (v + 1,), FAR) for v in range(3)), (0, 1, 2, 3))
    assert fewest(chain, 2.0) in {(0, 0, 1, 1), (1, 1, 0, 0)}
    assert len(set(fewest(chain, 4.0))) == 1
    assert fewest(chain, 1.9) is None


def test_what_a_hand_over_waits_for_makes_one_long_one_better_than_two_short_ones() -> None:
    # 0 and 2 on the first processor, 1 on either; b is long and goes from 1 to 3 on the second
    short, long = ((0.0, 1.0), (1.0, 0.0)), ((0.0, 2.5), (2.5, 0.0))
    rows = ((1.0, inf), (1.0, 1.0), (1.0, inf), (inf, 1.0))
    flows = (Flow(0, (1,), short), Flow(1, (2,), short), Flow(1, (3,), long))
    problem = MappingProblem(rows, flows, (0, 1, 2, 3))
    assert fewest(problem, 3.0) == (0, 1, 0, 1)
    assert fewest(problem, 3.0, wait_s=1.0) == (0, 0, 0, 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 1.1, 1.5, 3.0]))
def test_no_assignment_within_the_period_hands_over_less_by_brute_force(seed, times) -> None:
    problem = any_problem(seed, most_operators=6)
    least = least_period(problem, time_limit_s=20, seed=0, deterministic=True)
    limit_s = least.period_s * times
    if not limit_s:
        return
    within = [each for each in placements(problem) if period_s(problem, each) <= limit_s]
    least_s = min(hand_over_s(problem, each) for each in within)
    for start in ((), least.processor):
        found = fewest(problem, limit_s, start=start)
        assert period_s(problem, found) <= limit_s * (1 + ROUNDED)
        assert hand_over_s(problem, found) == pytest.approx(least_s, rel=ROUNDED, abs=1e-9)


def test_without_time_the_start_comes_back() -> None:
    problem = any_problem(3)
    least = least_period(problem, time_limit_s=20, seed=0, deterministic=True)
    given_ = {"time_limit_s": 0, "seed": 0}
    assert fewest_hand_overs(problem, 1.0, **given_) is None
    found = fewest_hand_overs(problem, least.period_s, start=least.processor, **given_)
    assert found == least.processor
