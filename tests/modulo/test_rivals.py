"""What models reach on processors of their own, against all ways to share out and to assign."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.modulo.baselines import Baselines
from parapipe.solvers.problem import MappingProblem

SEEDS = st.integers(0, 10**9)


def model(times):
    """A model of operators with these times, and nothing between them."""
    return MappingProblem(tuple(times), (), tuple(range(len(times))))


def random_models(seed):
    """Two or three models of one or two operators, and how many frames a pattern has of each."""
    rng = random.Random(seed)
    processors = rng.randint(2, 4)
    longest = rng.choice([4, 20])
    models = [
        model(
            [
                tuple(float(rng.randint(1, longest)) for _ in range(processors))
                for _ in range(rng.randint(1, 2))
            ]
        )
        for _ in range(rng.randint(1, min(3, processors)))
    ]
    return models, [rng.randint(1, 3) for _ in models]


def least_load(rows, processors):
    """The least greatest load of operators on some processors, of all assignments."""
    reached = {(0.0,) * len(processors)}
    for row in rows:
        reached = {
            (*loads[:i], loads[i] + row[p], *loads[i + 1 :])
            for loads in reached
            for i, p in enumerate(processors)
        }
    return min(map(max, reached))


def least_of_all_shares(models, counts):
    """The least period with processors of its own for each model, each frame where it likes."""
    least = float("inf")
    for owner in product(range(-1, len(models)), repeat=models[0].processors):
        sets = [[p for p, each in enumerate(owner) if each == m] for m in range(len(models))]
        if all(sets):
            loads = [
                least_load(each.time_s * count, own)
                for each, count, own in zip(models, counts, sets, strict=True)
            ]
            least = min(least, max(loads))
    return least


@settings(max_examples=25)
@given(seed=SEEDS)
def test_processors_of_its_own_are_the_best_of_all_shares_and_assignments(seed):
    models, counts = random_models(seed)
    found = Baselines(models, counts, 0).own_processors()
    assert found.period_s == pytest.approx(least_of_all_shares(models, counts))
    place = iter(found.processor)
    for each, count, own in zip(models, counts, found.sets, strict=True):
        assert {next(place) for _ in range(each.operators * count)} <= {*own}


@settings(max_examples=15)
@given(seed=SEEDS)
def test_in_turn_each_model_has_its_frames_where_they_are_through_first(seed):
    models, counts = random_models(seed)
    everyone = range(models[0].processors)
    loads = [
        least_load(each.time_s * count, everyone)
        for each, count in zip(models, counts, strict=True)
    ]
    assert Baselines(models, counts, 0).in_turn().period_s == pytest.approx(sum(loads))


def test_two_frames_of_one_operator_take_a_processor_each():
    found = Baselines([model([(10.0, 10.0, 99.0)]), model([(9.0, 9.0, 12.0)])], [2, 1], 0)
    assert found.alone(0, (0, 1)).period_s == 10.0
    assert found.one(0, (0, 1)).period_s == 10.0
    own = found.own_processors()
    assert (own.period_s, own.sets) == (12.0, ((0, 1), (2,)))


@pytest.mark.parametrize(("period_s", "fits"), [(9.999, False), (10.0, True), (20.0, True)])
def test_frames_fit_from_the_least_period_on(period_s, fits):
    found = Baselines([model([(10.0, 10.0)])], [2], 0)
    assert found.fits(0, (0, 1), period_s) is fits
