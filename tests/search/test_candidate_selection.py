"""Marks of configurations, worked out again by comparing all pairs."""

from __future__ import annotations

from itertools import product
from math import isclose

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parapipe.mappings.configuration import Configuration
from parapipe.pareto import ENERGY_TIE, TIE, least, on_front
from parapipe.search.candidate_selection import mark_fronts, names_among
from tests.cases.bare_configurations import bare

PROCESSORS = ("p0", "p1", "p2")
times = st.integers(1, 4).map(float)
figures = st.tuples(times, times, times)
rows = st.lists(
    st.tuples(figures, st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 0)])),
    min_size=1,
    max_size=12,
)


def beats(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


def listed(some, *, energy=True):
    found = [bare(*each, stages=stages) for each, stages in some]
    objectives = [each.objectives[: 2 + energy] for each in found]
    names = names_among(found, objectives, PROCESSORS, memory=False)
    return mark_fronts(found, objectives, names)


@given(rows, st.booleans())
@example([((2.0, 3.0, 1.0), (0, 1)), ((1.0, 3.0, 1.0), (0,))], True)  # equal in two, less in one
def test_fronts_and_rows_are_what_comparing_all_pairs_gives(some, energy):
    made = listed(some, energy=energy)
    figures = [each.objectives[: 2 + energy] for each in made]
    assert [each.objectives for each in made] == sorted(each.objectives for each in made)
    for each, own in zip(made, figures, strict=True):
        assert each.pareto == (not any(beats(other, own) for other in figures))
        on_paper = not any(beats(other[:2], own[:2]) for other in figures)
        assert each.pareto_latency_throughput == on_paper
        if not each.names:  # nothing else is as good
            assert sum(all(a <= b for a, b in zip(o, own, strict=True)) for o in figures) == 1
    seen = [(each.objectives, each.processors) for each in made]
    assert len(seen) == len({*seen})
    for own, _ in some:  # what is left out is matched
        assert any(all(a <= b for a, b in zip(o, own, strict=False)) for o in figures)


@given(rows)
def test_each_name_is_at_the_least_of_its_kind_in_order(some):
    made = listed(some)
    named = {name: each for each in made for name in each.names}
    assert sum(len(each.names) for each in made) == len(named)
    for name, kind, order in (
        ("sequential", "sequential", (0, 1, 2)),
        ("pipe-only", "pipe-only", (1, 0, 2)),
        ("most-efficient", None, (2, 0, 1)),
    ):
        among = [each for each in made if kind in (None, each.kind)]
        assert (name in named) == bool(among)
        if among:
            ranks = [tuple(each.objectives[i] for i in order) for each in among]
            assert tuple(named[name].objectives[i] for i in order) == min(ranks)


ULP = 1 + 2**-52


@pytest.mark.parametrize(("share", "name"), [(0.9, "fast"), (1.1, "frugal")])
def test_hardly_more_energy_does_not_make_a_slow_row_the_most_efficient(share, name):
    fast, slow = bare(0.021, 0.021, 1 + share * ENERGY_TIE, (0,)), bare(0.208, 0.208, 1.0, (1,))
    found = [fast, slow]
    objectives = [each.objectives for each in found]
    made = mark_fronts(found, objectives, names_among(found, objectives, PROCESSORS, memory=False))
    (efficient,) = (each for each in made if "most-efficient" in each.names)
    assert efficient.objectives == {"fast": fast, "frugal": slow}[name].objectives
    assert all(each.pareto for each in made)


def test_rows_that_differ_in_the_last_bit_on_the_same_processors_are_one():
    some = [((1.0, 1.0, ULP), (0,)), ((ULP, ULP, 1.0), (0,))]
    (row,) = listed(some)
    assert {"sequential", "most-efficient", "p0-alone"} <= {*row.names}
    assert len(listed([some[0], (some[1][0], (1,))])) == 2  # each alone has a name
    assert len(listed([some[0], ((1 + 1e-6, 1.0, 1 - 1e-6), (0,))])) == 2


def test_processors_of_each_row_are_looked_up_once_however_many_there_are(monkeypatch):
    processors, asked = Configuration.processors.fget, []

    def counted(row):
        asked.append(row)
        return processors(row)

    monkeypatch.setattr(Configuration, "processors", property(counted))
    made = listed([((float(i), 50.0 - i, 1.0), (0, 1)) for i in range(1, 50)])
    assert len(asked) == len(made) == 49


@given(st.lists(figures, min_size=1, max_size=10))
def test_the_front_of_figures_keeps_what_is_equal(some):
    flags = on_front(some)
    assert flags == [not any(beats(other, own) for other in some) for own in some]


@given(st.lists(figures, min_size=1, max_size=10))
def test_the_least_is_lexicographic_within_ties(some):
    assert least(some, tuple) == min(some)
    near = [(a * (1 + k * TIE / 20), b, c) for k, (a, b, c) in enumerate(some)]
    found = least(near, tuple)
    assert tuple(round(each, 6) for each in found) == min(some)
    assert isclose(found[0], min(some)[0], rel_tol=2 * TIE)


def test_least_takes_figures_of_any_sign():
    pairs = [*product((-2.0, -1.0, 0.0), (1.0, 2.0))]
    assert least(pairs, tuple) == (-2.0, 1.0)
    assert least(pairs, lambda each: (-each[0], each[1])) == (0.0, 1.0)
