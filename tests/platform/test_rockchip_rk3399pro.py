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


def test_the_file_holds_what_hosts_take_of_a_block_and_how_loading_follows_the_clock():
    networks = sorted({row["model"] for row in ROWS})
    cycles = median(clocks.host_cycles(ROWS, networks))
    assert SOC.block_runs.host_cycles == pytest.approx(cycles, rel=1e-3)
    share, error = clocks.loading_share(ROWS)
    assert SOC.block_runs.loading_compute_share == pytest.approx(share, abs=5e-4)
    assert error < 0.05


def test_a_host_that_takes_a_number_of_cycles_and_loads_in_cycles_is_found_again():
    def row(processor, metric, hz, host_hz, time_s):
        return {
            "processor": processor, "metric": metric, "model": "m", "block": "0",
            "frequency_hz": f"{hz}", "host_frequency_hz": f"{host_hz or ''}",
            "time_ms": f"{1e3 * time_s}",
        }  # fmt: skip

    # 20 ms and 900,000 cycles of the host, which are half a millisecond at 1.8 GHz.
    blocks = [row("gpu", "task", 8e8, hz, 0.02 + 9e5 / hz) for hz in (1.8e9, 9e8, 4.5e8)]
    assert clocks.host_cycles(blocks, ["m"]) == pytest.approx([9e5, 9e5])
    # 10 ms at the top, half of it cycles: 15 ms at half the clock, 25 ms at a quarter.
    times = {1.8e9: 0.01, 9e8: 0.015, 4.5e8: 0.025}
    loads = [row("big", "in", hz, None, time_s) for hz, time_s in times.items()]
    loads += [row("gpu", "in", 8e8, hz, time_s) for hz, time_s in times.items()]
    assert clocks.loading_share(loads) == pytest.approx((0.5, 0.0))


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
