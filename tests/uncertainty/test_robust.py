"""Robust fronts: quantiles by hand, dominance by comparing all pairs, and whole runs."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parapipe
from parapipe.errors import ArgumentError
from parapipe.search.options import MapOptions
from parapipe.uncertainty.robust import RobustFront, RobustRow, quantiles
from parapipe.uncertainty.samples import SampledFront, at_quantile
from tests.cases.bare_configurations import bare
from tests.cases.branchy import branchy

A311D = "amlogic-a311d"
KEYS = ("latency_s", "period_s", "energy_j")


@pytest.mark.parametrize(
    ("share", "expected"), [(0.1, 1.0), (0.11, 2.0), (0.5, 5.0), (0.9, 9.0), (0.91, 10.0)]
)
def test_a_quantile_is_the_least_draw_that_is_not_exceeded_in_that_share(share, expected):
    assert at_quantile(np.array([3.0, 1, 2, 10, 5, 4, 6, 9, 8, 7]), share) == expected


def test_each_figure_has_its_own_quantile():
    drawn = SampledFront(
        latency_s=np.array([[1.0, 2, 3, 4]]),
        period_s=np.array([[8.0, 7, 6, 5]]),
        energy_j=np.array([[1.0, 9, 1, 1]]),
    )
    assert quantiles(drawn, 0.75) == [(3.0, 7.0, 1.0)]


# latency and period as stated, and what is kept; 2 was not known before
STATED = [(10.0, 10.0), (20.0, 5.0), (11.0, 11.0)]
KEPT = [(15.0, 15.0), (25.0, 6.0), (12.0, 12.0)]


def test_what_is_best_at_the_quantile_is_shown_beside_what_is_best_as_stated():
    front = RobustFront(STATED, KEPT, energy=False)
    assert sorted(front.shown(2, resolution=0.01)) == [0, 1, 2]
    # 15 and 15 is beaten by 12 and 12
    assert sorted(front.shown(1, resolution=0.01)) == [0, 1, 2]
    near = RobustFront(STATED, [(12.0, 12.0), KEPT[1], (12.1, 11.95)], energy=False)
    assert sorted(near.shown(2, resolution=0.01)) == [0, 1]


figures = st.tuples(*[st.integers(1, 6).map(float)] * 3)


@given(st.lists(st.tuples(figures, figures), min_size=1, max_size=12), st.data())
def test_a_robust_front_holds_nothing_that_is_beaten_at_the_quantile(pairs, data):
    stated, kept = zip(*pairs, strict=True)
    known = data.draw(st.integers(1, len(pairs)))
    resolution = data.draw(st.sampled_from([0.0, 0.2]))
    front = RobustFront(stated, kept, energy=True)
    shown = front.shown(known, resolution)
    assert {*range(known)} <= {*shown}
    for other in range(len(pairs)):  # whatever is left out is matched
        assert any(
            all(a <= b * (1 + resolution) for a, b in zip(kept[i], kept[other], strict=True))
            for i in shown
        )
    shown.sort(key=lambda i: stated[i])
    every = [bare(*each) for each in stated]
    made = dict(zip(shown, front.marked(every, shown, ["one"], memory=False), strict=True))
    for i in shown:
        assert made[i].objectives == stated[i]
        assert made[i].robust != any(_beats(kept[j], kept[i]) for j in shown)
        assert made[i].pareto != any(_beats(stated[j], stated[i]) for j in shown)
    for of, name in enumerate(("robust-L", "robust-T", "robust-E")):
        (best,) = (i for i in shown if name in made[i].names)
        assert kept[best][of] == min(kept[i][of] for i in range(len(pairs)))
        assert made[best].robust


def _beats(one, other):
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return branchy(tmp_path_factory.mktemp("model") / "branchy.onnx")


@pytest.fixture(scope="module")
def front(model):
    options = {"interleave": "none", "cache": False, "jobs": 2}
    return parapipe.map(model, A311D, robust=0.8, scenarios=3, draws=40, **options)


def kept(row):
    return tuple(getattr(row.quantiles, key) for key in KEYS)


def test_what_a_front_says_to_be_kept_is_counted_in_its_draws(front):
    for i, row in enumerate(front):
        assert row.quantiles.share == 0.8
        for key in KEYS:
            in_order = sorted(getattr(front.drawn, key)[i])
            assert getattr(row.quantiles, key) == in_order[ceil(0.8 * 40) - 1]


def test_no_robust_row_of_a_front_is_beaten_at_the_quantile(front):
    assert front.document.robust.scenarios == 3
    assert front.document.options.robust == 0.8
    robust = [row for row in front if row.robust]
    assert robust
    assert not any(_beats(kept(other), kept(row)) for row in robust for other in front)
    for of, name in enumerate(("robust-L", "robust-T", "robust-E")):
        assert kept(front[name])[of] == min(kept(row)[of] for row in front)


def test_all_of_the_front_of_the_stated_costs_is_listed(front, model):
    plain = parapipe.map(model, A311D, interleave="none", cache=False, jobs=1, draws=40)
    there = {(row.drawing, row.latency_s, row.period_s) for row in front}
    assert {(row.drawing, row.latency_s, row.period_s) for row in plain} <= there
    assert len(front) == len(plain) + front.document.robust.added
    for row in front:  # marks of the front of the stated costs hold for all that is listed
        figures = [tuple(getattr(each, key) for key in KEYS) for each in (row, *front)]
        assert row.pareto == (not any(_beats(other, figures[0]) for other in figures[1:]))


def test_a_seed_gives_the_same_robust_front_with_any_number_of_jobs(front, model):
    options = {"interleave": "none", "cache": False, "jobs": 1}
    again = parapipe.map(model, A311D, robust=0.8, scenarios=3, draws=40, **options)
    assert again.to_json() == front.to_json()


def test_every_plan_of_a_robust_front_keeps_the_rules(front):
    for row in front:
        parapipe.verify_plan(row.plan())


def test_confidence_picks_what_is_least_at_the_quantile(front):
    assert front.best("latency", confidence=0.8).id == front["robust-L"].id
    assert front.best("period", confidence=0.8).id == front["robust-T"].id


def test_a_quantile_needs_draws():
    with pytest.raises(ArgumentError, match="robust needs draws"):
        MapOptions(robust=0.9, draws=0)
    for wrong in (0.0, 1.0):
        with pytest.raises(ArgumentError, match="above 0 and below 1"):
            MapOptions(robust=wrong)


def test_fewer_searches_than_asked_for_are_told():
    notes = []
    RobustRow(quantile=0.9, scenarios=8, added=3).tell(8, notes.append)
    assert notes == []
    RobustRow(quantile=0.9, scenarios=5, added=3).tell(8, notes.append)
    assert "5 of 8 searches" in notes[0]
