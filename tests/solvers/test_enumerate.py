"""All assignments at once, against brute force."""

from __future__ import annotations

import random
from math import inf

import pytest
from hypothesis import given, settings

from parapipe.solvers.assignments import enumerate as enumerate_module
from parapipe.solvers.assignments.enumerate import FEW, OPERATORS, enumerated
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.verify import energy_of
from tests.cases.energy_cases import MICRO, NANO, every_pair, pareto, random_case
from tests.cases.oracle import optimum_s
from tests.cases.random_dags import dags

NOTHING = ((0.0, 0.0), (0.0, 0.0))


@settings(max_examples=150, deadline=None)
@given(dags(most_operators=5))
def test_the_shortest_schedule_is_that_of_brute_force(problem) -> None:
    found = enumerated(problem)
    assert found is not None
    assert [each.timed.makespan_s for each in found] == [pytest.approx(optimum_s(problem))]


def test_of_two_that_start_at_once_the_one_without_time_goes_first() -> None:
    # 1 us after the start, a on p takes 70 us and b none; c reads b, 1 us away on q.
    to_p, to_q = ((0.0, 0.0), (1e-6, 0.0)), ((0.0, 1e-6), (0.0, 0.0))
    problem = MappingProblem(
        time_s=((70e-6, inf), (0.0, inf), (inf, 0.0)),
        flows=(Flow(None, (0, 1), to_p, location=1), Flow(1, (2,), to_q, location=None)),
        structure=(0, 1, 2),
    )
    (found,) = enumerated(problem)
    assert found.timed.makespan_s == pytest.approx(71e-6)


@pytest.mark.parametrize("seed", range(40))
def test_without_a_gap_it_finds_all_that_no_schedule_beats(seed) -> None:
    problem, energy_j = random_case(seed)
    found = enumerated(problem, energy_j)
    assert found is not None
    pairs = [
        (round(each.timed.makespan_s / MICRO), round(energy_of(energy_j, each.processor) / NANO))
        for each in found
    ]
    assert pareto(pairs) == pareto(every_pair(problem, energy_j))


def chain_case(seed):
    """Up to six operators one after the other, on three processors, with a tensor from outside."""
    rng = random.Random(seed)
    count = rng.randint(2, 6)

    def apart():
        return tuple(
            tuple(0.0 if p == q else rng.randint(0, 9) * MICRO for q in range(3)) for p in range(3)
        )

    rows, energy_j = [], []
    for _ in range(count):
        row = [rng.choice([*range(20), inf]) for _ in range(3)]
        row[rng.randrange(3)] = rng.randint(0, 20)
        rows.append(tuple(us * MICRO for us in row))
        energy_j.append(tuple(rng.randint(1, 30) * NANO for _ in range(3)))
    flows = [Flow(v, (v + 1,), apart()) for v in range(count - 1)]
    outside = Flow(None, (0, count - 1), apart(), location=rng.randrange(3))
    problem = MappingProblem(tuple(rows), (outside, *flows), tuple(range(count)))
    return problem, tuple(energy_j)


@pytest.mark.parametrize("most", [0, FEW])
@pytest.mark.parametrize("seed", range(30))
def test_of_a_chain_it_finds_the_same_by_labels_as_in_arrays(seed, most, monkeypatch) -> None:
    # 0: never by labels; the arrays then look at all at once
    monkeypatch.setattr(enumerate_module, "FEW", most)
    problem, energy_j = chain_case(seed)
    found = enumerated(problem, energy_j)
    assert found is not None
    pairs = [
        (round(each.timed.makespan_s / MICRO), round(energy_of(energy_j, each.processor) / NANO))
        for each in found
    ]
    assert pareto(pairs) == pareto(every_pair(problem, energy_j))


@pytest.mark.parametrize("seed", range(40, 60))
def test_every_schedule_is_matched_within_gap_and_share_and_no_bound_is_too_high(seed) -> None:
    problem, energy_j = random_case(seed)
    found = enumerated(problem, energy_j, gap=0.1, share=0.2)
    assert found is not None
    pairs = [(each.timed.makespan_s, energy_of(energy_j, each.processor)) for each in found]
    for time_us, energy_nj in every_pair(problem, energy_j):
        time_s, taken_j = time_us * MICRO, energy_nj * NANO
        most = 1.1 * 1.2 + 1e-9
        assert any(t <= time_s * most and e <= taken_j * most for t, e in pairs)
        for each in found:
            if time_s <= each.timed.makespan_s:
                assert taken_j >= each.bound_j * (1 - 1e-9)


def test_operators_of_one_processor_are_put_in_the_best_order() -> None:
    # 0 (1 s) feeds 2 on the other processor (9 s); 1 (5 s) can wait: 1 + 9, not 5 + 1 + 9
    rows = ((1.0, float("inf")), (5.0, float("inf")), (float("inf"), 9.0))
    found = enumerated(MappingProblem(rows, (Flow(0, (2,), NOTHING),), (0, 1, 2)))
    assert found is not None
    assert found[0].timed.makespan_s == 10.0


def test_what_would_take_long_is_left_to_others() -> None:
    rows = ((1.0, 2.0),) * (OPERATORS + 1)
    assert enumerated(MappingProblem(rows, (), tuple(range(OPERATORS + 1)))) is None
    occupying = ((None, 0), (1, None))
    assert enumerated(MappingProblem(rows[:2], (), (0, 1), occupying)) is None
