"""How long a pattern is, against the least loads of all assignments."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.several_models.search import MOST_TIMES, WORTH, best_length
from tests.cases.plan_cases import graph_of, operator
from tests.cases.several_cases import patterns

SEEDS = st.integers(0, 10**9)


def model(times):
    """A chain of operators with these times."""
    made = [operator(f"t{v}", f"t{v - 1}" if v else "x") for v in range(len(times))]
    return graph_of(made, inputs=["x"], outputs=[made[-1].id]), [[*row] for row in times]


def length_of(models, counts, period_s):
    search = patterns([model(times) for times in models], counts, period_s=period_s)
    return best_length(search, search.reached())


def least_s(models, counts, times):
    """The least greatest load of patterns in a row on two processors, for each of them."""
    rows = [row for m, n in zip(models, counts, strict=True) for row in m for _ in range(n * times)]
    reached = {(0.0, 0.0)}
    for row in rows:
        reached = {(a + row[0], b) for a, b in reached} | {(a, b + row[1]) for a, b in reached}
    return min(map(max, reached)) / times


def test_two_frames_of_a_long_operator_take_turns_on_two_processors():
    found = length_of([[(10.0, 10.0)], [(1.0, 1.0)]], (1, 1), 6.67)
    assert (found.times, found.least.period_s, found.each_s) == (2, 11.0, 5.5)


@pytest.mark.parametrize(("small_s", "times"), [(9.1, 1), (9.0, 2)])
def test_a_pattern_is_longer_if_that_is_worth_a_twentieth(small_s, times):
    # one frame of each takes 10 s on one of both, and no pattern less than half of the sum
    assert (10 / ((10 + small_s) / 2) > 1 + WORTH) == (times > 1)
    assert length_of([[(10.0, 10.0)], [(small_s, small_s)]], (1, 1), 20.0).times == times


@pytest.mark.parametrize(("period_s", "times"), [(10.0, 1), (9.99, 2)])
def test_a_pattern_is_as_long_as_the_rates_ask(period_s, times):
    assert length_of([[(10.0, 10.0)], [(9.1, 9.1)]], (1, 1), period_s).times == times


@settings(max_examples=25)
@given(seed=SEEDS)
def test_no_other_length_keeps_the_rates_or_lets_them_grow_much_more(seed):
    rng = random.Random(seed)
    models = [
        [tuple(float(rng.randint(1, 9)) for _ in range(2)) for _ in range(rng.randint(1, 2))]
        for _ in range(rng.randint(1, 2))
    ]
    counts = tuple(rng.randint(1, 2) for _ in models)
    least = {k: least_s(models, counts, k) for k in range(1, MOST_TIMES + 1)}
    period_s = rng.choice([*least.values()]) * rng.uniform(0.9, 1.5)
    found = length_of(models, counts, period_s)
    assert found.each_s == pytest.approx(least[found.times])
    best_s = min(least.values())
    if best_s <= period_s:
        assert found.each_s <= period_s * (1 + 1e-9)
        assert found.each_s <= best_s * (1 + WORTH) * (1 + 1e-9)
    assert all(least[times] > found.each_s for times in range(1, found.times))
