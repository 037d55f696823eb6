"""The best that keeps the demands equals brute force; else what is in the way is named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.documents.figure_table import Demands
from parapipe.errors import ArgumentError, DemandError
from parapipe.front.demands import best, figure


def row(
    name: str,
    latency_s: float,
    period_s: float,
    energy_j: float,
    idle_w: float = 2.0,
    *,
    sustained_period_s: float | None = None,
    static_w: float = 0.0,
    memory_bytes: int | None = 10_000_000,
    memories: Mapping[str, int] = MappingProxyType({}),
):
    processor = SimpleNamespace(static_power_w=static_w)
    return SimpleNamespace(
        processors=(processor,),
        sustained_period_s=sustained_period_s or period_s,
        id=name,
        latency_s=latency_s,
        period_s=period_s,
        arrival_s=None,
        frame_s=period_s,
        energy_j=energy_j,
        board_energy_j=energy_j + idle_w * period_s,
        peak_memory_bytes=memory_bytes,
        memories=[SimpleNamespace(name=n, peak_bytes=size) for n, size in memories.items()],
    )


FRONT = (
    row("fast", 0.060, 0.060, 0.240),  # 16.7 fps, 4 W
    row("steady", 0.120, 0.040, 0.200),  # 25 fps, 5 W
    row("thrifty", 0.100, 0.100, 0.150, memory_bytes=8_000_000),  # 10 fps, 1.5 W
)


def test_power_at_a_rate_is_energy_times_the_rate_sustained_or_not() -> None:
    slow = row("slow", 0.060, 0.060, 0.500)
    slow.arrival_s = slow.frame_s = 0.100  # 10 frames/s: 0.5 J each
    for demands in (Demands(), Demands(sustained=True)):
        assert figure(slow, "power", demands) == pytest.approx(5.0)
        assert figure(slow, "energy", demands) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("minimise", "demands", "expected"),
    [
        ("latency", Demands(), "fast"),
        ("period", Demands(), "steady"),
        ("energy", Demands(), "thrifty"),
        ("power", Demands(min_fps=12), "fast"),
        ("energy", Demands(min_fps=12), "steady"),
        ("latency", Demands(max_power_w=3.6), "thrifty"),
        ("latency", Demands(max_power_w=3.6, board=True), "thrifty"),
        ("energy", Demands(max_energy_j=0.21, min_fps=25), "steady"),
        ("memory", Demands(), "thrifty"),
        ("latency", Demands(max_memory_bytes=8e6), "thrifty"),
        ("latency", Demands(max_memory_bytes=10e6), "fast"),
    ],
)
def test_the_best_of_those_that_keep_the_demands(minimise, demands, expected):
    assert best(FRONT, minimise, demands).id == expected


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        (
            Demands(min_fps=50, max_latency_s=1.0),
            "the nearest has 25 frames/s instead of 50 frames/s, 50 % too few (steady)",
        ),
        (
            Demands(min_fps=50, max_energy_j=0.1),
            (
                "25 frames/s instead of 50 frames/s, 50 % too few (steady); and the nearest "
                "has 150 mJ per frame instead of 100 mJ per frame, 50 % too much (thrifty)"
            ),
        ),
        (
            Demands(min_fps=20, max_latency_s=0.1),
            (
                "one that meets the others has 16.67 frames/s instead of 20 frames/s, 17 % "
                "too few (fast); or 120 ms instead of 100 ms, 20 % too much (steady)"
            ),
        ),
        (
            Demands(min_fps=20, max_latency_s=0.08, max_power_w=1.6),
            "the nearest one has 80.5 ms instead of 80 ms",
        ),
        (
            Demands(max_power_w=3, board=True),
            "3.5 W instead of 3 W, 17 % too much (thrifty)",
        ),
    ],
)
def test_what_stands_in_the_way_is_named_with_how_far_off_it_is(demands, words):
    rows = (*FRONT, row("between", 0.0805, 0.05, 0.125)) if demands.max_power_w == 1.6 else FRONT
    with pytest.raises(DemandError, match=re.escape(words)):
        best(rows, "latency", demands)


def test_sustained_figures_are_those_of_that_rate():
    """0.2 J for 50 ms hold 0.05 J of 1 W static: at 40 ms 0.19 J or 4.75 W, and 2 W of idle."""
    quick = row("quick", 0.1, 0.05, 0.2, static_w=1.0, sustained_period_s=0.04)
    sustained = Demands(sustained=True)
    assert figure(quick, "power") == pytest.approx(4.0)
    assert figure(quick, "latency", sustained) == 0.1
    assert figure(quick, "period", sustained) == 0.04
    assert figure(quick, "energy", sustained) == pytest.approx(0.19)
    assert figure(quick, "power", sustained) == pytest.approx(4.75)
    assert figure(quick, "power", replace(sustained, board=True)) == pytest.approx(6.75)


def test_what_only_a_sustained_rate_keeps_is_named_and_found_with_it():
    quick = row("quick", 0.1, 0.05, 0.2, static_w=1.0, sustained_period_s=0.02)
    rows = (*FRONT, quick)
    with pytest.raises(DemandError, match=r"25 frames/s .*; quick sustains 50 frames/s: `sust"):
        best(rows, "latency", Demands(min_fps=40))
    assert best(rows, "latency", Demands(min_fps=40, sustained=True)) is quick
    assert best(rows, "period", Demands()).id == "steady"
    assert best(rows, "period", Demands(sustained=True)) is quick
    with pytest.raises(DemandError, match=r"\(quick\)$"):
        best(rows, "latency", Demands(min_fps=60, sustained=True))
    with pytest.raises(DemandError) as refused:
        best(rows, "latency", Demands(min_fps=40, max_power_w=1))
    assert "sustain" not in str(refused.value)


figures = st.floats(0.001, 10)


@given(
    st.lists(st.tuples(figures, figures, figures, st.integers(1, 4)), min_size=1, max_size=8),
    st.sampled_from(["latency", "period", "energy", "power", "memory"]),
    st.builds(
        Demands,
        min_fps=st.sampled_from([0.0, 0.2, 1.0, 5.0]),
        max_latency_s=st.sampled_from([inf, 5.0, 1.0]),
        max_energy_j=st.sampled_from([inf, 5.0, 1.0]),
        max_power_w=st.sampled_from([inf, 20.0, 1.0]),
        max_memory_bytes=st.sampled_from([None, 3, 2]),
        board=st.booleans(),
    ),
)
def test_the_best_equals_brute_force(made, minimise, demands):
    rows = [row(f"c{i}", *own, memory_bytes=size) for i, (*own, size) in enumerate(made)]
    board, asked = demands.board, demands.max_memory_bytes
    kept = [
        each
        for each in rows
        if 1 / each.period_s >= demands.min_fps
        and each.latency_s <= demands.max_latency_s
        and figure(each, "energy", Demands(board=board)) <= demands.max_energy_j
        and figure(each, "energy", Demands(board=board)) / each.period_s <= demands.max_power_w
        and (asked is None or each.peak_memory_bytes <= asked)
    ]
    if not kept:
        with pytest.raises(DemandError, match="no configuration meets all demands"):
            best(rows, minimise, demands)
        return
    found = best(rows, minimise, demands)
    assert found in kept
    assert figure(found, minimise, Demands(board=board)) == min(
        figure(each, minimise, Demands(board=board)) for each in kept
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            {"minimise": "fps"},
            "minimise must be 'latency' or 'period' or 'throughput' or 'energy' or 'power'",
        ),
        ({"max_latency_s": -1}, "max_latency_s must be a positive number of seconds"),
        ({"min_fps": "x"}, "min_fps must be a number"),
    ],
)
def test_a_front_refuses_words_and_bounds_that_are_none(branchy_front, asked, told):
    with pytest.raises(ArgumentError, match=told):
        branchy_front.best(**asked)


def test_a_configuration_goes_by_its_id_or_name_only(branchy_front, branchy_folder):
    for wrong in (1.5, ()):
        with pytest.raises(KeyError, match="by id or name"):
            branchy_front[wrong]
    stored = parapipe.load_front(branchy_folder)
    assert [row.id for row in stored] == [made.id for made in branchy_front]
    assert len(stored) == len(branchy_front)


def test_a_front_is_written_to_a_folder_named_by_a_text(branchy_front, tmp_path):
    branchy_front.write(str(tmp_path / "out"))
    assert (tmp_path / "out/front.json").is_file()


@pytest.fixture(scope="module")
def stored(branchy_folder):
    return parapipe.load_front(branchy_folder)


@settings(max_examples=50)
@given(st.data())
def test_pick_equals_filtering_front_json_by_figures_that_stand_in_it(stored, data):
    """A bound that is some configuration's own figure, to the last digit, is kept by it."""
    rows = json.loads((stored.folder / "front.json").read_text())["configurations"]
    board = data.draw(st.booleans())
    energy = "board_energy_j" if board else "energy_j"
    bounds = [(0.0, *(each["throughput_fps"] for each in rows))]
    bounds += [(inf, *(each[name] for each in rows)) for name in ("latency_s", energy)]
    fps, latency_s, energy_j = (data.draw(st.sampled_from(each)) for each in bounds)
    minimise = data.draw(st.sampled_from(["latency_s", "period_s", energy]))
    kept = [
        row
        for row in rows
        if row["throughput_fps"] >= fps
        and row["latency_s"] <= latency_s
        and row[energy] <= energy_j
    ]
    asked = {"min_fps": fps, "max_latency_s": latency_s, "max_energy_j": energy_j}
    objective = minimise.removesuffix("_s") if minimise != energy else "energy"
    if not kept:
        with pytest.raises(DemandError):
            stored.best(objective, board=board, **asked)
        return
    found = stored.best(objective, board=board, **asked)
    if objective == "period":
        assert stored.best("throughput", board=board, **asked) is found
    assert found.id in {each["id"] for each in kept}
    assert getattr(found, minimise) == min(each[minimise] for each in kept)


def test_a_throughput_asked_for_to_the_last_digit_is_kept():
    """Its period, got back from frames a second, may be less than itself."""
    periods = (number * 1e-4 for number in range(1, 10_000))
    period_s = next(each for each in periods if each > 1 / (1 / each))
    exact = row("exact", 0.1, period_s, 0.2)
    other = row("other", 0.2, period_s / 2, 0.3)
    asked = Demands(min_fps=1 / period_s)
    assert best((exact, other), "latency", asked) is exact


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"max_latency_s": 1e-9}, "over 1000 % too much"),
        ({"min_fps": 1e9}, "100 % too few"),
    ],
)
def test_what_is_far_out_of_reach_is_told_in_plain_digits(branchy_front, asked, told):
    with pytest.raises(DemandError, match=rf", {told} \(c"):
        branchy_front.best(**asked)


def test_memory_that_no_configuration_does_with_is_told_with_the_least():
    with pytest.raises(DemandError, match=r"has 8 MB instead of 4 MB, 100 % too much \(thrifty\)"):
        best(FRONT, "latency", Demands(max_memory_bytes=4e6))


TWO = (
    row("spread", 0.1, 0.1, 0.2, memories={"dram": 6_000_000, "local": 1_000_000}),
    row("lumped", 0.2, 0.2, 0.3, memories={"dram": 4_000_000, "local": 3_000_000}),
)


def test_memories_are_bounded_apart():
    both, dram = {"dram": 6e6, "local": 3e6}, {"dram": 5e6}
    assert best(TWO, "latency", Demands(max_memory_bytes=both)).id == "spread"
    assert best(TWO, "latency", Demands(max_memory_bytes=dram)).id == "lumped"
    with pytest.raises(DemandError, match=r"3 MB instead of 2 MB in 'local', 50 % .*\(lumped\)"):
        best(TWO, "latency", Demands(max_memory_bytes={"dram": 5e6, "local": 2e6}))


def test_a_memory_that_there_is_not_is_named_with_those_that_there_are():
    wrong = "no memory 'drm'; it has 'dram', 'local'; did you mean 'dram'?"
    with pytest.raises(DemandError, match=re.escape(wrong)):
        best(TWO, "latency", Demands(max_memory_bytes={"drm": 5e6}))


def test_a_front_of_an_older_version_says_nothing_of_memory():
    old = (row("old", 0.1, 0.1, 0.2, memory_bytes=None),)
    assert best(old, "latency", Demands()).id == "old"
    with pytest.raises(DemandError, match="old says nothing of memory: write the front again"):
        best(old, "latency", Demands(max_memory_bytes=4e6))
