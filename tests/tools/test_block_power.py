"""A meter that lags, and what it shows of blocks."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.block_power import (
    Blocks,
    MeteredRun,
    fit,
    fit_meter_lag,
    power_seen,
    run_energy_j,
    seen_share,
)


def test_a_block_of_one_lag_shows_one_part_in_e_of_its_power():
    assert seen_share(np.array([2e-3]), 2e-3) == pytest.approx([1 / exp(1)])


def test_a_meter_without_lag_shows_everything():
    assert list(seen_share(np.array([1e-6, 1.0]), 0.0)) == [1, 1]


@given(st.floats(1e-5, 1), st.floats(1e-5, 1), st.floats(1e-6, 1e-1))
def test_a_longer_block_never_shows_less(one_s, other_s, lag_s):
    short, long = seen_share(np.sort(np.array([one_s, other_s])), lag_s)
    assert 0 < short <= long + 1e-9 <= 1 + 1e-9


TIMES = np.array([1e-3, 4e-3, 20e-3, 2e-3])
TRUE_W = np.array([3.0, 2.0, 4.0, 1.0])


def metered(lag_s):
    shown = TRUE_W * seen_share(TIMES, lag_s)
    return Blocks(["a", "a", "b", "b"], [0, 1, 0, 1], TIMES, shown, TIMES, np.eye(4))


@pytest.mark.parametrize("lag_s", [0.0, 1.5e-3, 3e-3])
def test_the_lag_that_made_the_data_is_found(lag_s):
    blocks = {"cpu": metered(lag_s)}
    runs = [
        MeteredRun("a", ["cpu", "cpu"], float(TIMES[:2] @ (TRUE_W[:2] + 0.5))),
        MeteredRun("b", ["cpu", "cpu"], float(TIMES[2:] @ (TRUE_W[2:] + 0.5))),
    ]
    assert fit_meter_lag(runs, blocks, 0.5) == pytest.approx(lag_s, abs=1e-5)
    power_w = power_seen(blocks, lag_s)
    assert power_w["cpu"] == pytest.approx(TRUE_W)
    assert run_energy_j(runs[0], blocks, power_w, 0.5) == pytest.approx(runs[0].energy_j)


def test_power_by_class_takes_the_lag_back():
    found = fit(metered(1.5e-3), 0.0, 1.5e-3)
    blocks = metered(1.5e-3)
    for network, joules in found.energy_j(blocks, 1.5e-3).items():
        shown = sum(
            p * t
            for n, p, t in zip(blocks.network, blocks.power_w, blocks.time_s, strict=True)
            if n == network
        )
        assert joules == pytest.approx(shown, rel=0.05)
    assert sum(found.energy_j(blocks).values()) == pytest.approx(TIMES @ TRUE_W, rel=0.05)


def test_a_block_scaled_to_another_state_keeps_the_lag_and_the_joules_of_when_it_was_metered():
    plain = metered(1.5e-3)
    scaled = Blocks(
        plain.network, plain.block, 1.25 * TIMES, plain.power_w / 1.25, TIMES, plain.shares
    )
    (one, other) = (power_seen({"cpu": each}, 1.5e-3)["cpu"] for each in (plain, scaled))
    assert other * scaled.time_s == pytest.approx(one * plain.time_s)
