"""The RK3399Pro's file says what its scripts make of the measurements, and what they miss."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from parapipe.cost.board_fits import fit_power
from parapipe.cost.profile import read_profile
from parapipe.platform.load import load_platform
from tools import clocks_rockchip_rk3399pro as clocks

ROOT = Path(__file__).parents[2]
SOC = load_platform("rockchip-rk3399pro")


ROWS = clocks.measured_rows()
SWEEPS = {name: clocks.sweep_of(name, ROWS) for name in clocks.PROCESSORS}


@pytest.mark.parametrize("name", SWEEPS)
def test_the_file_holds_what_the_script_fits(name):
    processor, sweep = SOC.processors[SOC.index(name)], SWEEPS[name]
    shares = clocks.fit_shares(sweep, sweep.networks)
    stated = processor.clock.scaling.compute_share
    for group, share in zip(("conv1x1", "gemm", "default"), shares, strict=True):
        assert stated[group] == pytest.approx(share, abs=5e-4)
    assert stated["conv1x1"] == stated["conv3x3"] == stated["conv-other"]
    (power,) = fit_power(clocks.power_samples(sweep, SOC.idle_power_w))
    assert processor.power.alpha_w_per_v2_hz == pytest.approx(power.alpha_w_per_v2_hz, rel=1e-3)
    assert processor.power.beta_w_per_v == pytest.approx(power.beta_w_per_v, rel=1e-3)
    switching = (processor.clock.switching.up_s, processor.clock.switching.down_s)
    assert switching == pytest.approx(clocks.switching_s(name), rel=5e-3)
    volts = {round(p.frequency_hz / 1e6): p.voltage_v for p in processor.operating_points}
    assert volts == clocks.VOLTAGE_V[name]


@pytest.mark.parametrize("name", SWEEPS)
def test_the_a311d_inherits_the_shape(name):
    there = load_platform("amlogic-a311d")
    assert (
        there.processors[there.index(name)].clock.scaling.compute_share
        == SOC.processors[SOC.index(name)].clock.scaling.compute_share
    )
    assert there.sources["clock-scaling"].provenance == "nominal"


@pytest.mark.parametrize("name", SWEEPS)
def test_times_of_left_out_networks_at_other_clocks_are_met_within_8_percent(name):
    blocks, _ = clocks.time_errors(SWEEPS[name])
    assert median(blocks) <= 0.08


@pytest.mark.parametrize("name", SWEEPS)
def test_powers_of_left_out_networks_at_left_out_clocks_are_met_within_8_percent(name):
    samples = clocks.power_samples(SWEEPS[name], SOC.idle_power_w)
    above, board = clocks.power_errors(samples, point_too=True)
    assert median(above) <= 0.08
    assert median(board) <= 0.08


def test_the_script_makes_the_committed_profile_byte_for_byte(tmp_path):
    folder = ROOT / "profiles" / "rockchip-rk3399pro"
    script = [sys.executable, "-m", "tools.profile_rockchip_rk3399pro", "--out", tmp_path]
    subprocess.run(script, check=True, capture_output=True, cwd=ROOT)
    assert (tmp_path / "armcl-f32.csv").read_bytes() == (folder / "armcl-f32.csv").read_bytes()


def test_every_signature_was_measured_at_every_operating_point_and_none_is_slower_at_a_higher():
    profile = read_profile(ROOT / "profiles" / "rockchip-rk3399pro" / "armcl-f32.csv")
    for processor in SOC.processors:
        listed = [p.frequency_hz for p in processor.operating_points]
        signatures = {m.signature for m in profile.measurements if m.processor == processor.name}
        for signature in signatures:
            sweep = profile.sweep(signature, processor.name)
            assert [m.frequency_hz for m in sweep] == listed
            times = [m.time_s for m in sweep]
            assert times == sorted(times, reverse=True)
