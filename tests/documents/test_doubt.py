"""Intervals, chances and draws.json of a front."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

import parapipe
from parapipe.documents.doubt import DRAWS, load_draws
from parapipe.errors import FrontError
from parapipe.uncertainty.samples import least_chances, pareto_chances

A311D = "amlogic-a311d"


def ids(front):
    return [row.id for row in front]


def test_intervals_hold_nine_of_ten_draws_and_the_stated_figures(branchy_front):
    drawn = branchy_front.drawn
    assert drawn.count == branchy_front.document.options.draws == 200
    for i, row in enumerate(branchy_front):
        for key in ("latency_s", "period_s", "energy_j"):
            low, high = getattr(row.intervals, key)
            assert f"{key}=({low!r}, {high!r})" in repr(row.intervals)
            values = getattr(drawn, key)[i]
            assert ((low <= values) & (values <= high)).mean() == pytest.approx(0.9, abs=0.01)
            assert low < getattr(row, key) < high


def test_chances_are_shares_of_the_draws_and_equal_ones_all_have_them(branchy_front):
    drawn = branchy_front.drawn
    for objective, key, tie in (
        ("latency", "latency_s", 1e-9),
        ("throughput", "period_s", 1e-9),
        ("energy", "energy_j", 1e-3),
    ):
        values = getattr(drawn, key)
        tied = values <= values.min(axis=0) * (1 + tie)
        found = [getattr(row.chances, objective) for row in branchy_front]
        assert found == pytest.approx(tied.mean(axis=1).tolist())
        assert sum(found) == pytest.approx(tied.sum(axis=0).mean())
        assert sum(found) >= 1 - 1e-9


def test_a_tie_in_the_last_bit_is_a_tie():
    ulp = 1 + 2**-52
    least, most = [1.0, ulp, 1.0, 2.0], [ulp, 1.0, 1.0, 1.0]
    assert least_chances(np.array([least, most]), range(2)) == {0: 0.75, 1: 1.0}
    assert least_chances(np.array([[1.0], [1.01]]), range(2), 0.1) == {0: 1.0, 1: 1.0}
    assert least_chances(np.array([[1.0], [1.01]]), [1]) == {1: 1.0}
    # equal but for the last bit in one figure, less in the other one
    assert pareto_chances([np.array([[1.0], [ulp]]), np.array([[2.0], [1.0]])]) == [0.0, 1.0]
    assert pareto_chances([np.array([[1.0], [ulp]]), np.array([[1.0], [1.0]])]) == [1.0, 1.0]


def test_medians_lie_in_the_intervals(branchy_front):
    for i, row in enumerate(branchy_front):
        for key in ("latency_s", "period_s", "energy_j"):
            low, high = getattr(row.intervals, key)
            assert low <= getattr(row.medians, key) <= high
            values = sorted(getattr(branchy_front.drawn, key)[i])
            assert getattr(row.medians, key) == pytest.approx(sum(values[99:101]) / 2)
    named = branchy_front["most-efficient"]
    assert named.chances.names["most-efficient"] == named.chances.energy


def test_draws_are_read_as_they_were_written(branchy_front, branchy_folder):
    found = load_draws(branchy_folder, ids(branchy_front))
    for key in ("latency_s", "period_s", "energy_j"):
        written, read = getattr(branchy_front.drawn, key), getattr(found, key)
        assert read == pytest.approx(written, rel=1e-6)


def test_draws_of_another_front_are_refused(branchy_front, branchy_folder):
    with pytest.raises(FrontError, match="belongs to another front"):
        load_draws(branchy_folder, ids(branchy_front)[1:])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("[]", "names no schema"),
        ('{"schema": "parapipe/draws/1"}', "configurations: is missing"),
        ('{"schema": "parapipe/draws/9", "parapipe": "9"}', "written by parapipe 9"),
    ],
)
def test_damaged_draws_get_one_line(tmp_path, text, words):
    (tmp_path / DRAWS).write_text(text)
    with pytest.raises(FrontError, match=words):
        load_draws(tmp_path, ["c01"])


@pytest.fixture(scope="module")
def drawn_thrice(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")

    def front(**options):
        return parapipe.map(
            "zoo:alexnet", A311D, cache=cache, draws=60, interleave="none", **options
        )

    return front(), front(), front(seed=1)


def test_a_seed_gives_the_same_draws_and_another_one_others(drawn_thrice):
    one, two, other = drawn_thrice
    assert one.to_json() == two.to_json()
    assert (one.drawn.latency_s == two.drawn.latency_s).all()
    assert one["hybrid-T"].intervals != other["hybrid-T"].intervals
    for key in ("latency_s", "period_s"):
        for mine, others in zip(
            getattr(one["hybrid-T"].intervals, key),
            getattr(other["hybrid-T"].intervals, key),
            strict=True,
        ):
            assert mine == pytest.approx(others, rel=0.1)


def test_configurations_with_the_same_costs_err_together(drawn_thrice):
    front = drawn_thrice[0]
    alone = [i for i, row in enumerate(front) if row.kind == "sequential"]
    names = [front[i].processors[0].name for i in alone]
    drawn = np.log(front.drawn.latency_s)
    assert len({*names}) == 3
    for i, j in pairwise(alone):
        assert abs(np.corrcoef(drawn[i], drawn[j])[0, 1]) < 0.4
    gpu = alone[names.index("gpu")]
    mostly_gpu = next(
        i
        for i, row in enumerate(front)
        if row.kind != "sequential"
        and max(row.processors, key=lambda each: each.busy_s).name == "gpu"
    )
    assert np.corrcoef(drawn[gpu], drawn[mostly_gpu])[0, 1] > 0.5


def test_without_draws_there_are_no_intervals_and_an_earlier_file_goes(branchy_front, tmp_path):
    branchy_front.write(tmp_path)
    assert (tmp_path / DRAWS).exists()
    front = parapipe.map(branchy_front.document.model, A311D, draws=0)
    front.write(tmp_path)
    assert not (tmp_path / DRAWS).exists()
    stated = json.loads((tmp_path / "front.json").read_text())["configurations"]
    assert all(row["intervals"] is None is row["chances"] for row in stated)
    assert parapipe.pick(tmp_path).certainty is None
    with pytest.raises(parapipe.ParapipeError, match="has no draws"):
        parapipe.pick(tmp_path, confidence=0.9)
    assert parapipe.explain(tmp_path).doubt == ()
