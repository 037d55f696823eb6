"""Flags of whole fronts, worked out again from front.json alone."""

from __future__ import annotations

import json
import random

import onnx
import pytest

import parapipe
from tests.cases.branchy import branchy
from tests.cases.random_networks import network

FIGURES = {
    "latency": "latency_s",
    "throughput": "period_s",
    "energy": "energy_j",
    "memory": "peak_memory_bytes",
}
TIMES, ENERGIES = 1e-9, 1e-3  # shares within which they are equal where a name is given


def beats(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


def figures(row, objectives):
    if row["several"] is None:
        return tuple(row[FIGURES[each]] for each in objectives)
    got = row["several"]
    factors = (got["rate_factor"], got["contended_rate_factor"])
    latencies = (each["latency_s"] for each in got["models"].values())
    energy = (row["energy_j"],) if "energy" in objectives else ()
    return (*latencies, -min(each for each in factors if each is not None), *energy)


def check_flags(front):
    """Compare flags, names and repeated rows with what the rows' figures say."""
    document = json.loads(json.dumps(front.to_json()))
    rows, objectives = document["configurations"], document["options"]["objectives"]
    without = [each for each in objectives if each in ("latency", "throughput")]
    every = [figures(row, objectives) for row in rows]
    paper = [figures(row, without) for row in rows]
    for row, own, own_paper in zip(rows, every, paper, strict=True):
        assert row["pareto"] == (not any(beats(other, own) for other in every)), row["id"]
        on_paper = not any(beats(other, own_paper) for other in paper)
        assert row["pareto_latency_throughput"] == on_paper, row["id"]
        quantiles = row["quantiles"] and tuple(row["quantiles"][FIGURES[o]] for o in objectives)
        if quantiles:
            kept = [tuple(r["quantiles"][FIGURES[o]] for o in objectives) for r in rows]
            assert row["robust"] == (not any(beats(other, quantiles) for other in kept))
        elif not row["names"]:
            assert row["pareto"], row["id"]
            assert every.count(own) == 1, row["id"]
    assert [row["latency_s"] for row in rows] == sorted(row["latency_s"] for row in rows)
    seen = [(row["drawing"], *(row[each] for each in FIGURES.values())) for row in rows]
    assert len(seen) == len({*seen})
    (efficient,) = (row for row in rows if "most-efficient" in row["names"])
    least = min(row["energy_j"] for row in rows)
    assert efficient["energy_j"] <= least * (1 + ENERGIES)
    if document["several"] is None:
        near = [row["latency_s"] for row in rows if row["energy_j"] <= least * (1 + ENERGIES)]
        assert efficient["latency_s"] <= min(near) * (1 + TIMES)


def check_chances(front):
    """Compare chances with the draws: whoever ties for the least has it."""
    for key, name in (("latency_s", "latency"), ("period_s", "throughput")):
        drawn = getattr(front.drawn, key)
        for i, row in enumerate(front):
            tied = drawn[i] <= drawn.min(axis=0) * (1 + TIMES)
            assert getattr(row.chances, name) == pytest.approx(tied.mean())
            assert row.chances.pareto >= 0
        assert sum(getattr(row.chances, name) for row in front) >= 1 - 1e-9


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A board with three identical NPUs, and costs that nobody has measured."""
    path = tmp_path_factory.mktemp("board") / "board.yaml"
    path.write_text(parapipe.new_platform(chip="rk3588").text, encoding="utf-8")
    return path


def mapped(seed, board, folder, **options):
    path = folder / "network.onnx"
    onnx.save(network(random.Random(seed)), path)
    given = {"precision": "float16", "cache": False, "jobs": 1, "resolution": 0.0, "draws": 40}
    return parapipe.map(path, board, **given | options)


WAYS = [
    {},
    {"interleave": "none"},
    {"interleave": "none", "mapper": "peft"},
    {"interleave": "none", "resolution": 0.01, "objectives": "latency-throughput"},
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_flags_follow_from_the_file(number, board, tmp_path):
    front = mapped(number, board, tmp_path, **WAYS[number])
    check_flags(front)
    check_chances(front)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("number", range(len(WAYS)))
def test_flags_of_many_fronts_follow_from_the_file(number, seed, board, tmp_path):
    front = mapped(100 + seed, board, tmp_path, **WAYS[number])
    check_flags(front)
    check_chances(front)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"objectives": "latency-throughput-energy-memory"}, marks=pytest.mark.nightly),
        pytest.param({"robust": 0.8, "scenarios": 2}, marks=pytest.mark.nightly),
    ],
)
def test_flags_of_other_objectives_follow_from_the_file(options, board, tmp_path):
    check_flags(mapped(7, board, tmp_path, interleave="none", **options))


def test_flags_of_several_models_follow_from_the_file(tmp_path):
    paths = {name: branchy(tmp_path / f"{name}.onnx", joins=n) for n, name in enumerate("ab")}
    rates = dict.fromkeys(paths, 50.0)
    front = parapipe.map(paths, "amlogic-a311d", rates=rates, cache=False, jobs=1)
    check_flags(front)
