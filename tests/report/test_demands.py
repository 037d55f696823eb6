"""The best that keeps the demands equals brute force; else what is in the way is told."""

from __future__ import annotations

import re
from math import inf
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import DemandError
from parapipe.report.demands import Demands, best, figure


def row(name: str, latency_s: float, period_s: float, energy_j: float, idle_w: float = 2.0):
    return SimpleNamespace(
        id=name,
        latency_s=latency_s,
        period_s=period_s,
        energy_j=energy_j,
        board_energy_j=energy_j + idle_w * period_s,
    )


FRONT = (
    row("fast", 0.060, 0.060, 0.240),  # 16.7 fps, 4 W
    row("steady", 0.120, 0.040, 0.200),  # 25 fps, 5 W
    row("thrifty", 0.100, 0.100, 0.150),  # 10 fps, 1.5 W
)


@pytest.mark.parametrize(
    ("minimise", "demands", "expected"),
    [
        ("latency", Demands(), "fast"),
        ("period", Demands(), "steady"),
        ("energy", Demands(), "thrifty"),
        ("power", Demands(min_throughput_fps=12), "fast"),
        ("energy", Demands(min_throughput_fps=12), "steady"),
        ("latency", Demands(max_power_w=3.6), "thrifty"),
        ("latency", Demands(max_power_w=3.6, board=True), "thrifty"),
        ("energy", Demands(max_energy_j=0.21, min_throughput_fps=25), "steady"),
    ],
)
def test_the_best_of_those_that_keep_the_demands(minimise, demands, expected):
    assert best(FRONT, minimise, demands).id == expected


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        (
            Demands(min_throughput_fps=50, max_latency_s=1.0),
            "the front comes to 25 frames/s in place of 50 frames/s, 50 % too few (steady)",
        ),
        (
            Demands(min_throughput_fps=50, max_energy_j=0.1),
            (
                "25 frames/s in place of 50 frames/s, 50 % too few (steady); and to 150 mJ per "
                "frame in place of 100 mJ per frame, 50 % too much (thrifty)"
            ),
        ),
        (
            Demands(min_throughput_fps=20, max_latency_s=0.1),
            (
                "with the others kept, it comes to 16.67 frames/s in place of 20 frames/s, 17 % "
                "too few (fast); or to 120 ms in place of 100 ms, 20 % too much (steady)"
            ),
        ),
        (
            Demands(min_throughput_fps=20, max_latency_s=0.08, max_power_w=1.6),
            "the one that misses least comes to 80.5 ms in place of 80 ms",
        ),
        (
            Demands(max_power_w=3, board=True),
            "3.5 W in place of 3 W, 17 % too much (thrifty)",
        ),
    ],
)
def test_what_stands_in_the_way_is_named_with_how_far_off_it_is(demands, words):
    rows = (*FRONT, row("between", 0.0805, 0.05, 0.125)) if demands.max_power_w == 1.6 else FRONT
    with pytest.raises(DemandError, match=re.escape(words)):
        best(rows, "latency", demands)


figures = st.floats(0.001, 10)


@given(
    st.lists(st.tuples(figures, figures, figures), min_size=1, max_size=8),
    st.sampled_from(["latency", "period", "energy", "power"]),
    st.builds(
        Demands,
        st.sampled_from([0.0, 0.2, 1.0, 5.0]),
        st.sampled_from([inf, 5.0, 1.0]),
        st.sampled_from([inf, 5.0, 1.0]),
        st.sampled_from([inf, 20.0, 1.0]),
        st.booleans(),
    ),
)
def test_the_best_equals_brute_force(made, minimise, demands):
    rows = [row(f"c{i}", *values) for i, values in enumerate(made)]
    board = demands.board
    kept = [
        each
        for each in rows
        if 1 / each.period_s >= demands.min_throughput_fps
        and each.latency_s <= demands.max_latency_s
        and figure(each, "energy", board=board) <= demands.max_energy_j
        and figure(each, "energy", board=board) / each.period_s <= demands.max_power_w
    ]
    if not kept:
        with pytest.raises(DemandError, match="no configuration keeps all demands"):
            best(rows, minimise, demands)
        return
    found = best(rows, minimise, demands)
    assert found in kept
    assert figure(found, minimise, board=board) == min(
        figure(each, minimise, board=board) for each in kept
    )
