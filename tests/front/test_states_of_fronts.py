"""Fronts of both states of a chip, and what is good in both."""

import json
from dataclasses import astuple

import numpy as np
import pytest

import parapipe
from parapipe.errors import ArgumentError, FrontError, PlatformError
from parapipe.front.states import _beats
from tests.cases.small_models import parsed
from tests.cases.soc_texts import spoil

OPTIONS = {"interleave": "none", "draws": 0, "cache": False, "mapper": "heft"}
SPLIT = OPTIONS | {"interleave": "auto", "split": "auto", "note": lambda _note: None}
OTHER = {"cold": "sustained", "sustained": "cold"}
FALLS = "default_frequency_hz: 2e9\n      sustained_frequency_hz: 1e9"
SCALING = (
    "      scaling: {compute_share: {default: 1}, source: guess}\n      source: guess\n    launch"
)


@pytest.fixture(scope="module")
def hot(tmp_path_factory):
    path = tmp_path_factory.mktemp("hot") / "hot.yaml"
    changes = ("default_frequency_hz: 2e9", FALLS), ("      source: guess\n    launch", SCALING)
    path.write_text(spoil(*changes))
    return path


@pytest.fixture(scope="module")
def fronts(hot):
    return parapipe.map_states("zoo:squeezenet", hot, **OPTIONS)


def test_each_front_is_that_of_map_in_its_state(fronts, hot):
    for state, front in fronts.fronts.items():
        alone = parapipe.map("zoo:squeezenet", hot, thermal_state=state, **OPTIONS)
        assert front.document.configurations == alone.document.configurations
        assert front.document.options.thermal_state == state


def test_a_processor_at_half_its_clock_takes_twice_as_long(fronts):
    cold, sustained = (fronts.fronts[state]["cpu-alone"] for state in ("cold", "sustained"))
    assert sustained.latency_s == pytest.approx(2 * cold.latency_s, rel=1e-9)


def test_every_configuration_of_a_front_is_told_with_what_it_takes_in_its_state(fronts):
    for state, front in fronts.fronts.items():
        own = [row for row in fronts.rows if row.state == state]
        assert [row.id for row in own] == [each.id for each in front if each.pareto]
        for row in own:
            assert getattr(row, state).period_s == pytest.approx(front[row.id].period_s)


def test_what_survives_is_beaten_by_nothing_on_the_other_front(fronts):
    for row in fronts.rows:
        other = "sustained" if row.state == "cold" else "cold"
        mine = getattr(row, other)
        figures = (mine.latency_s, mine.period_s, mine.energy_j)
        rivals = [each for each in fronts.fronts[other] if each.pareto]
        beaten = any(
            all(r <= own for r, own in zip(each, figures, strict=True))
            and any(r * 1.01 < own for r, own in zip(each, figures, strict=True))
            for each in ((c.latency_s, c.period_s, c.energy_j) for c in rivals)
        )
        assert row.survives is not beaten
    assert any(row.survives for row in fronts.rows)


def test_both_sides_of_what_beats():
    assert _beats((1.0, 1.0), (1.0, 1.02), 0.01)
    assert not _beats((1.0, 1.0), (1.0, 1.01), 0.01)
    assert not _beats((1.0, 1.0), (0.99, 2.0), 0.01)


def test_the_fronts_are_written_with_what_survives(fronts, tmp_path):
    fronts.write(tmp_path)
    assert (tmp_path / "cold" / "front.json").exists()
    assert (tmp_path / "sustained" / "front.json").exists()
    rows = json.loads((tmp_path / "states.json").read_text())["configurations"]
    assert len(rows) == len(fronts.rows)
    for place in (tmp_path, tmp_path / "states.json"):
        with pytest.raises(FrontError, match=r"holds several states, .* as in .*/cold$"):
            parapipe.explain(place)


def test_a_state_cannot_be_chosen_and_long_runs_must_be_described(hot):
    with pytest.raises(ArgumentError, match="takes no `thermal_state`"):
        parapipe.map_states("zoo:squeezenet", hot, thermal_state="cold")
    with pytest.raises(PlatformError, match="says nothing of long runs"):
        parapipe.map_states("zoo:squeezenet", "amlogic-a311d", **OPTIONS)


def test_a_front_names_a_state_only_if_one_was_asked_for(fronts, hot):
    usual = parapipe.map("zoo:squeezenet", hot, **OPTIONS)
    assert "thermal_state" not in usual.to_json()["options"]
    assert fronts.fronts["cold"].to_json()["options"]["thermal_state"] == "cold"


def test_a_sustained_front_is_explained_at_its_clocks(hot, tmp_path):
    front = parapipe.map("zoo:squeezenet", hot, thermal_state="sustained", **OPTIONS)
    front.write(tmp_path)
    explanation = parapipe.explain(tmp_path, "cpu-alone")
    assert explanation.figures.latency_s.value == pytest.approx(front["cpu-alone"].latency_s)


@pytest.fixture(scope="module")
def two_convolutions(tmp_path_factory):
    """Some milliseconds of work, which is worth splitting."""
    weights = {name: np.full((48, 48, 3, 3), 0.01, np.float32) for name in ("w", "u")}
    text = """agraph (float[1,48,48,48] x) => (float[1,48,48,48] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w) y = Conv <pads = [1, 1, 1, 1]> (a, u) }"""
    path = tmp_path_factory.mktemp("model") / "two.onnx"
    path.write_bytes(parsed(text, opset=14, **weights).SerializeToString())
    return path


@pytest.fixture(scope="module")
def in_turn(two_convolutions, hot):
    return parapipe.map_states(two_convolutions, hot, **SPLIT)


def test_frames_that_take_turns_and_operators_in_parts_are_compared_too(in_turn):
    fronts = in_turn.fronts
    rows = {(row.state, row.id): row for row in in_turn.rows}
    kinds = set()
    for state, front in fronts.items():
        for each in (each for each in front if each.pareto):
            row = rows[state, each.id]
            assert row.survives is not None
            assert row.cold.period_s < row.sustained.period_s * (1 + 1e-9)
            assert row.sustained.period_s <= 2 * row.cold.period_s * (1 + 1e-9)
            kinds.add((each.kind, each.configuration.split is not None))
    assert ("interleaved", True) in kinds


def test_where_heat_changes_nothing_both_states_have_the_same_figures(two_convolutions, tmp_path):
    stays = "default_frequency_hz: 2e9\n      sustained_frequency_hz: 2e9"
    path = tmp_path / "cool.yaml"
    path.write_text(spoil(("default_frequency_hz: 2e9", stays)))
    found = parapipe.map_states(two_convolutions, path, **SPLIT)
    kinds = set()
    for row in found.rows:
        own, other = (getattr(row, state) for state in (row.state, OTHER[row.state]))
        mapped = found.fronts[row.state][row.id]
        kinds.add((mapped.kind, mapped.configuration.split is not None))
        if mapped.kind == "interleaved":  # what is left of a longer period is not kept
            assert own.period_s * 0.9 < other.period_s <= own.period_s * (1 + 1e-9)
        else:
            assert astuple(other) == pytest.approx(astuple(own))
    assert ("interleaved", True) in kinds
