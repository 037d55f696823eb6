"""No row of any front lies below a bound that the front states of all: random fronts."""

from __future__ import annotations

import random

import onnx
import pytest

import parapipe
from parapipe.search import explored_bounds
from parapipe.search.interleaved import InterleavedSearch
from parapipe.search.mapping_bounds import stage_bounds
from tests.cases.random_fronts import (
    below_bounds,
    random_model,
    random_options,
    random_platform,
)


def front_of(seed, folder, **options):
    """A front of a random model on a random platform, with random options besides those given."""
    rng = random.Random(seed)
    onnx.save(random_model(rng), folder / "m.onnx")
    (folder / "p.yaml").write_text(random_platform(rng), "utf-8")
    options = {**random_options(rng), **options}
    return parapipe.map(
        folder / "m.onnx",
        folder / "p.yaml",
        cache=False,
        draws=0,
        jobs=1,
        note=lambda _: None,
        **options,
    ).document.to_json()


@pytest.mark.parametrize("seed", [112, 116, 142, 144, 150])
def test_no_row_is_below_a_bound(seed, tmp_path):
    assert below_bounds(front_of(seed, tmp_path)) == []


@pytest.mark.parametrize("seed", [142, 144, 150])
def test_no_row_is_below_a_bound_of_a_front_that_was_ended_at_once(seed, tmp_path):
    front = front_of(seed, tmp_path, budget_s=1e-6)
    assert front["unfinished"]
    assert below_bounds(front) == []


@pytest.mark.parametrize("seed", [144, 150])
def test_bounds_of_a_front_that_was_ended_early_hold_for_the_whole_one_too(seed, tmp_path):
    early = front_of(seed, tmp_path, budget_s=1e-6, split="none")
    whole = front_of(seed, tmp_path, split="none")
    assert below_bounds({**whole, "unfinished": early["unfinished"]}) == []


@pytest.mark.parametrize("seed", [120, 144])
def test_bounds_hold_for_frames_interleaved_where_the_search_for_them_was_ended(
    seed, tmp_path, monkeypatch
):
    whole = front_of(seed, tmp_path)
    assert "interleaved" in {row["kind"] for row in whole["configurations"]}

    def ended(_search, problem, _incumbents, _deadline):
        problem.left_out("ended")
        return iter(())

    monkeypatch.setattr(InterleavedSearch, "run", ended)
    early = front_of(seed, tmp_path)
    assert below_bounds({**whole, "unfinished": early["unfinished"]}) == []


@pytest.mark.parametrize("seed", [112, 144])
def test_bounds_of_stages_by_one_cost_table_are_found_once(seed, tmp_path, monkeypatch):
    tables = []

    def counted(units, operators, choices, costs, replicable):
        tables.append(costs)
        return stage_bounds(units, operators, choices, costs, replicable)

    monkeypatch.setattr(explored_bounds, "stage_bounds", counted)
    front_of(seed, tmp_path)
    assert len(tables) == len({id(costs) for costs in tables})


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 400))
def test_no_row_is_below_a_bound_of_many_fronts(seed, tmp_path):
    whole = front_of(seed, tmp_path)
    assert below_bounds(whole) == []
    early = front_of(seed, tmp_path, budget_s=random.Random(seed).choice([0.05, 0.1, 0.2, 0.4]))
    assert below_bounds(early) == []
    if early["unfinished"] and whole["options"]["split"] == "none":
        assert below_bounds({**whole, "unfinished": early["unfinished"]}) == []
