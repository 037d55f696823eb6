"""Annealed assignments: loads that change step by step, never worse, and equal to brute force."""

from __future__ import annotations

import random
from itertools import product

import pytest

from parapipe.modulo.cyclic_problem import NEVER, CyclicProblem
from parapipe.modulo.least_period import Loads, anneal, random_change
from tests.cases.occupying_cases import any_problem


def able(cyclic):
    """Return an assignment of each operator to the first processor that runs it."""
    return [next(p for p, time in enumerate(row) if time < NEVER) for row in cyclic.time]


@pytest.mark.parametrize("seed", range(60))
def test_loads_are_those_of_the_assignment_after_every_change(seed) -> None:
    cyclic, draw = CyclicProblem(any_problem(seed)), random.Random(seed)
    state = Loads(cyclic, able(cyclic))
    for _ in range(20):
        loads, place = [*state.loads], [*state.place]
        before = state.apply(random_change(cyclic, state.place, draw))
        assert state.loads == cyclic.loads(state.place)
        if draw.random() < 0.5:
            state.restore(*before)
            assert (state.loads, state.place) == (loads, place)


@pytest.mark.parametrize("seed", range(40))
def test_the_least_load_of_a_few_operators_is_found(seed) -> None:
    cyclic = CyclicProblem(any_problem(seed))
    places = product(range(cyclic.processors), repeat=cyclic.operators)
    runs = (
        [*each] for each in places if all(cyclic.time[v][p] < NEVER for v, p in enumerate(each))
    )
    least = min(max(cyclic.loads(each)) for each in runs)
    assert max(cyclic.loads(anneal(cyclic, able(cyclic), seed=seed))) == least


def test_it_ends_where_less_is_not_asked() -> None:
    cyclic = CyclicProblem(any_problem(3))
    begin = able(cyclic)
    assert anneal(cyclic, begin, enough=max(cyclic.loads(begin))) == begin
