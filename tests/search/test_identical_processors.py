"""Identical processors: swapping them is no other configuration, and the first of them is shown."""

from __future__ import annotations

from itertools import permutations, product
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.pareto import nondominated
from parapipe.problems.identical_processors import is_consecutive, is_leading
from parapipe.search.candidate_selection import names_of, select_candidates
from parapipe.search.stages.options import Option
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_table import StageTable

times = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4)


def found(units, static_power_w, kinds, dynamic=1, identical=()):
    """Search a chain: processor p is of kind `kinds[p]`, unit u takes `units[u][kind]` there."""

    def options(unit, locations):
        for p, kind in enumerate(kinds):
            moved = 2 if locations and locations[0] != p else 0
            time = units[unit][kind] + moved
            yield Option(1 << p, (p,) if unit + 1 < len(units) else (), time, time * dynamic, p)

    return search(
        len(units),
        StageTable(lambda unit, locations: tuple(options(unit, locations))),
        static_power_w,
        identical=identical,
    )


def front(candidates):
    return nondominated(candidates, lambda candidate: candidate.nano_objectives)


@given(times)
def test_no_two_configurations_of_the_front_have_equal_figures(units):
    shown = [
        candidate.nano_objectives for candidate in front(found(units, (0.3, 0.1, 0.1), (0, 1, 1)))
    ]
    assert len(set(shown)) == len(shown)


@given(times)
def test_the_front_is_that_of_one_name_for_each_of_the_alike(units):
    # Wherever the odd one stands, the same figures come out.
    fronts = []
    for kinds in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        static_power_w = tuple((0.3, 0.1)[kind] for kind in kinds)
        fronts.append([c.nano_objectives for c in front(found(units, static_power_w, kinds))])
    assert fronts[0] == fronts[1] == fronts[2]


@given(times)
def test_of_two_alike_processors_the_second_is_used_only_beside_the_first(units):
    for candidate in front(found(units, (0.3, 0.1, 0.1), (0, 1, 1))):
        used = set().union(
            *({p for p in range(3) if mask >> p & 1} for mask in candidate.processors)
        )
        assert 2 not in used or 1 in used


@given(times)
def test_each_of_the_alike_keeps_its_own_name(units):
    candidates = found(units, (0.3, 0.1, 0.1), (0, 1, 1))
    names = ("npu", "dsp0", "dsp1")
    chosen = select_candidates(candidates, names, energy=True, resolution=0.0)
    numbers = dict(enumerate(chosen))
    made = names_of(numbers, names, lambda i: numbers[i].nano_objectives, front=[0])
    named = {name: numbers[i] for i, some in made.items() for name in some}
    assert named["dsp0-alone"].processors == (0b010,)
    assert named["dsp1-alone"].processors == (0b100,)
    assert named["dsp0-alone"].nano_objectives == named["dsp1-alone"].nano_objectives
    assert named["sequential"] is not named["dsp1-alone"]


@pytest.mark.parametrize("order", [*permutations((0.1, 0.2, 0.3))])
def test_static_power_adds_up_the_same_way_whatever_the_order_of_processors(order):
    # Added one after the other, 0.1 + 0.2 + 0.3 and 0.2 + 0.3 + 0.1 differ in the last place.
    candidates = found([(9,)] * 3, order, (0, 0, 0), dynamic=0)
    energies = {each.energy_nj for each in candidates if len(each.stages) == 3}
    assert energies == {fsum(order) * 11}


def test_candidates_are_sorted_by_figures_then_by_the_platforms_order():
    candidates = found([(2, 1), (1, 2)], (0.3, 0.1, 0.1), (0, 1, 1))
    keys = [(candidate.nano_objectives, candidate.processors) for candidate in candidates]
    assert keys == sorted(keys)
    assert all(a != b for a, b in product(keys, keys) if a is not b)


@given(
    st.lists(st.tuples(*[st.integers(1, 4)] * 2), min_size=1, max_size=5),
    st.permutations([0, 1, 1, 1]),
)
def test_a_search_that_counts_identical_processors_once_finds_the_same_front(units, kinds):
    static_power_w = tuple((0.3, 0.1)[kind] for kind in kinds)
    group = tuple(p for p, kind in enumerate(kinds) if kind == 1)
    every, once = (
        found(units, static_power_w, kinds, identical=groups) for groups in ((), (group,))
    )
    assert {c.nano_objectives for c in front(every)} == {c.nano_objectives for c in front(once)}
    for kind in ("sequential", "pipe-only"):
        best = [
            min((c.nano_objectives for c in some if c.kind == kind), default=None)
            for some in (every, once)
        ]
        assert best[0] == best[1]
    assert len(once) <= len(every)


def test_processors_are_identical_whose_change_of_places_changes_no_cost():
    assert is_leading(0b1011, [(0, 1, 2)])
    assert not is_leading(0b1101, [(0, 1, 2)])
    assert is_consecutive(0b0110, [(0, 1, 2)])
    assert not is_consecutive(0b0101, [(0, 1, 2)])
