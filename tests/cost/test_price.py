"""Where a cost comes from: expressions that give the number again, and places that hold it."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import shipped_profiles
from parapipe.cost.signature import signature_of
from parapipe.platform.load import load_placed
from parapipe.platform.support import Refusal

PLATFORMS = ("amlogic-a311d", "bst-a1000", "rockchip-rk3399pro")


def again(expression):
    """Work out what an expression says, as a reader with a calculator would."""
    return eval(expression.numbers, {"max": max})


def costs_of(model, placed):
    graph = parapipe.load_model(model)
    return build_cost_table(graph, placed.platform)


def slowest(placed):
    """Return the platform at the second of each processor's operating points, or the only one."""
    points = [
        p.clock.points[: 2 if p.clock.scaling else None][-1] for p in placed.platform.processors
    ]
    return placed.platform.at([point.frequency_hz for point in points])


@pytest.mark.parametrize(
    ("model", "name", "provenances"),
    [
        ("zoo:mobilenet-v2", "amlogic-a311d", {"measured", "fitted"}),
        ("zoo:gpt:1", "amlogic-a311d", {"fitted", "nominal"}),
        ("zoo:googlenet", "rockchip-rk3399pro", {"measured"}),
        ("zoo:gpt:1", "bst-a1000", {"fitted", "nominal"}),
        ("zoo:googlenet", "bst-a1000", {"stated", "fitted", "nominal"}),
    ],
)
def test_every_time_and_energy_can_be_worked_out_from_what_is_told(model, name, provenances):
    placed = load_placed(name)
    graph = parapipe.load_model(model)
    told = set()
    for platform in {id(p): p for p in (placed.platform, slowest(placed))}.values():
        costs = build_cost_table(graph, platform)
        for v in range(len(graph.operators)):
            for p in range(len(platform.processors)):
                for part in costs.cost(v, p).parts if costs.cost(v, p) else ():
                    assert again(part.time) == pytest.approx(part.time_s, rel=1e-5, abs=1e-12)
                    assert again(part.energy) == pytest.approx(part.energy_j, rel=1e-5, abs=1e-15)
                    told.add(part.provenance)
    assert told == provenances


@pytest.mark.parametrize("name", PLATFORMS)
def test_what_is_said_to_stand_in_the_platform_file_stands_on_that_line(name):
    placed = load_placed(name)
    platform = slowest(placed)
    lines = placed.file.read_text(encoding="utf-8").splitlines()
    stated = [
        *((link.time(1000), ("links", i)) for i, link in enumerate(platform.links)),
        *(
            (made, ("processors", p))
            for p, each in enumerate(platform.processors)
            for made in (each.static_power, each.input_time(1000), each.output_time(1000))
        ),
    ]
    costs = build_cost_table(parapipe.load_model("zoo:squeezenet"), platform)
    for row in costs.entries[:20]:
        for p, cost in enumerate(row):
            for part in () if isinstance(cost, Refusal) else cost.parts:
                stated += [(part.time, ("processors", p)), (part.energy, ("processors", p))]
    checked = 0
    for made, own in stated:
        for given in made.givens:
            if given.origin.key:
                place = placed.place((*own, *given.origin.key))
                word = str(given.origin.key[-1])
                held = lines[place.line - 1].split(f"{word}:")[1].strip(" {").split(",")[0]
                assert float(held.split("#")[0].rstrip(" }")) == given.value, (place, held)
                assert place.source.split(":")[0] in ("measured", "stated", "fitted", "nominal")
                checked += 1
    assert checked > 40


def test_a_measured_time_stands_on_the_line_of_the_profile_that_is_named():
    placed = load_placed("amlogic-a311d")
    costs = costs_of("zoo:googlenet", placed)
    for row in costs.entries[:12]:
        for p, cost in enumerate(row):
            for part in cost.parts:
                (given,) = part.time.givens
                text = Path(given.origin.file).read_text(encoding="utf-8").splitlines()
                (held,) = csv.DictReader([text[0], text[given.origin.line - 1]])
                assert float(held["time_s"]) == part.time_s
                assert held["processor"] == placed.platform.names[p]


def test_a_fitted_time_names_the_fit_its_inputs_and_its_error_with_networks_left_out():
    placed = load_placed("amlogic-a311d")
    graph = parapipe.load_model("zoo:mobilenet-v2")
    costs = build_cost_table(graph, placed.platform)
    part = next(
        part
        for row in costs.entries
        for part in row[0].parts
        if part.provenance == "fitted" and part.type == "Conv"
    )
    givens = [given.origin for given in part.time.givens]
    rates = [given for given in givens if given.name.startswith("s per ")]
    assert rates
    for given in rates:
        assert given.file.endswith("armcl-f32.fit.json")
        assert "with each network left out in turn" in given.note
        assert "signatures of" in given.note
    assert {"steps", "bytes"} & {given.name for given in givens}


def test_a_time_between_two_measured_clocks_names_both_lines():
    placed = load_placed("rockchip-rk3399pro")
    graph = parapipe.load_model("zoo:googlenet")
    processor = placed.platform.processors[0]
    measured = sorted(point.frequency_hz for point in processor.clock.points)
    (profile,) = shipped_profiles(placed.platform.profile_name)
    signature = signature_of(graph.operators[0].singles[0], graph)
    assert len(measured) > 2
    low, _, high = profile.sweep(signature, processor.name)[:3]
    sparse = replace(
        profile,
        measurements=tuple(
            m
            for m in profile.measurements
            if m.frequency_hz in (low.frequency_hz, high.frequency_hz)
        ),
    )
    hz = [p.point.frequency_hz for p in placed.platform.processors]
    hz[0] = measured[1]
    moved = placed.platform.at(hz)
    found = build_cost_table(graph, moved, profiles=[sparse]).entries[0][0].parts[0]
    named = {given.origin.name: given.origin for given in found.time.givens}
    assert (named["slower"].line, named["faster"].line) == (low.line, high.line)
    assert again(found.time) == pytest.approx(found.time_s, rel=1e-5)
