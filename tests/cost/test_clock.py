"""Times follow the clock: measured, between measured frequencies, scaled beyond them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.clock import time_at_clock
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import signature_of
from parapipe.errors import CostError
from parapipe.platform.fields import named_value
from tests.cases.hand_built import GraphBuilder, platform, processor

GHZ = (0.4e9, 0.6e9, 1.0e9, 1.5e9, 2.0e9)


def clock(shares, points_hz=GHZ, default_hz=2.0e9):
    scaling = {"source": "guess", "compute_share": shares}
    return {
        "source": "guess",
        "default_frequency_hz": default_hz,
        "points": [{"frequency_hz": hz, "voltage_v": 0.5 + hz / 4e9} for hz in points_hz],
        **({"scaling": scaling} if shares else {}),
    }


def big(shares, **kept):
    return platform(processor("big", clock=clock(shares, **kept)))


def conv():
    return GraphBuilder(x=(1, 8, 10, 10))


def measured_at(graph, times_s):
    operator = graph.operators[0]
    return Profile(
        "mine",
        tuple(
            Measurement(
                signature_of(operator, graph), "conv3x3", operator.work.macs, 9, "big", hz,
                time_s, 1, 0, "timed",
            )
            for hz, time_s in times_s.items()
        ),
    )  # fmt: skip


def cost_at(frequency_hz, times_s, shares=None):
    builder = conv()
    builder.conv("x", 8)
    graph = builder.graph()
    at = big(shares).at([frequency_hz])
    return build_cost_table(graph, at, profiles=[measured_at(graph, times_s)]).cost(0, 0)


def test_what_is_counted_in_cycles_takes_longer_and_the_rest_does_not():
    # 0.75 of 8 ms in cycles, at half the clock: 2 × 6 + 2 ms
    one = big({"conv3x3": 0.75, "default": 0.0}).at([1.0e9]).processors[0]
    time = named_value("time", 8e-3, "s")
    assert time_at_clock(time, 2.0e9, "conv3x3", one).value == pytest.approx(14e-3)
    assert time_at_clock(time, 2.0e9, "pool", one).value == 8e-3


def test_there_and_back_is_where_it_began():
    there = big({"default": 0.6}).at([0.4e9]).processors[0]
    slow = time_at_clock(named_value("time", 5e-3, "s"), 1.5e9, "pool", there)
    back = time_at_clock(slow, 0.4e9, "pool", there.at(1.5e9))
    assert back.value == pytest.approx(5e-3)


def test_a_time_that_was_measured_at_the_frequency_is_taken():
    found = cost_at(0.6e9, {0.6e9: 7e-3, 2.0e9: 2e-3})
    assert (found.time_s, found.parts[0].provenance) == (7e-3, "measured")


def test_between_two_measured_frequencies_a_time_is_straight_over_the_time_of_a_cycle():
    # 1/f: 1.667, 1 and 0.5 ns
    found = cost_at(1.0e9, {0.6e9: 7e-3, 2.0e9: 2e-3})
    assert found.time_s == pytest.approx(2e-3 + 5e-3 * 0.5 / (1 / 0.6 - 0.5))
    assert found.parts[0].provenance == "fitted"
    assert "between 600 MHz and 2000 MHz" in found.parts[0].source


def test_beyond_them_the_nearest_is_scaled():
    found = cost_at(0.6e9, {1.5e9: 3e-3, 2.0e9: 2e-3}, {"default": 1.0})
    assert found.time_s == pytest.approx(7.5e-3)
    assert "scaled from 1500 MHz" in found.parts[0].source
    assert found.parts[0].provenance == "fitted"


def test_without_shares_other_clocks_are_refused():
    with pytest.raises(CostError, match=r"at 1500, 2000 MHz, not at 600 MHz; .*clock\.scaling"):
        cost_at(0.6e9, {1.5e9: 3e-3, 2.0e9: 2e-3})


def test_without_shares_a_nominal_time_holds_at_its_own_frequency_only():
    builder = conv()
    builder.conv("x", 8)
    assert build_cost_table(builder.graph(), big(None), profiles=[]).time_s(0, 0) > 0
    with pytest.raises(CostError, match=r"runs at 600 MHz, its times are known at 2000 MHz"):
        build_cost_table(builder.graph(), big(None).at([0.6e9]), profiles=[])


def test_what_has_no_time_for_one_reason_is_told_with_the_reason_once():
    builder = conv()
    builder.conv("x", 8)
    builder.add("Relu", ["x"], (1, 8, 8, 8))
    with pytest.raises(CostError) as caught:
        build_cost_table(builder.graph(), big(None).at([0.6e9]), profiles=[])
    text = str(caught.value)
    assert text.startswith("there is no time of 1 Conv, 1 Relu (")
    assert text.count("runs at 600 MHz") == 1


def test_joules_are_those_of_the_point():
    # α = 2e-9, V = 0.75 V at 1 GHz: 2e-9 × 0.5625 × 1e9 W
    found = cost_at(1.0e9, {1.0e9: 4e-3})
    assert found.energy_j == pytest.approx(4e-3 * 1.125)


@given(
    times_s=st.lists(st.floats(1e-6, 1e-1), min_size=1, max_size=4),
    chosen=st.lists(st.sampled_from(GHZ), min_size=4, max_size=4, unique=True),
    share=st.floats(0, 1),
    other=st.floats(0, 1),
)
def test_a_higher_frequency_is_never_slower(times_s, chosen, share, other):
    builder = conv()
    read = builder.conv("x", 8)  # measured, monotone
    builder.conv(read, 8, (1, 1))  # fitted or nominal
    builder.add("Relu", [read], (1, 8, 10, 10))
    graph = builder.graph()
    count = min(len(times_s), len(chosen))
    sweep = dict(zip(sorted(chosen[:count]), sorted(times_s[:count], reverse=True), strict=True))
    profile = measured_at(graph, sweep)
    known = big({"conv3x3": share, "default": other})
    tables = [build_cost_table(graph, known.at([hz]), profiles=[profile]) for hz in GHZ]
    for v in range(3):
        times = [table.time_s(v, 0) for table in tables]
        assert all(fast <= slow * (1 + 1e-12) for slow, fast in pairwise(times))
