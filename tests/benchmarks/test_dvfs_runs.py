"""Runs with a clock for each block: how they are read, and that fits find what was put in."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clocked_runs import (
    changed,
    fit,
    fit_powers,
    fit_times,
    on_cpu,
    read_runs,
    start_and_change,
    with_fits,
)
from benchmarks.dvfs_runs import Errors
from parapipe.cost.block_points import BlockPoint
from parapipe.platform.load import load_platform

SOC = load_platform("rockchip-rk3399pro")
BIG, LITTLE, GPU = (SOC.index(name) for name in ("big", "little", "gpu"))
# Profiling/Evaluations_alex.csv of Ehsan-aghapour/LW-GA at c67700a; the last one has no times.
TABLE = """model,order,frequency_indices,input_ms,task_ms,total_ms,task_mj,total_mj
AlexNet,GGLGBBLL,3-4 1-0 3 3-6 7 1 4 2,20.3232,197.72,218.043,862.323,943.128
AlexNet,LBLBGLGL,5 1 1 3 3-1 1 3-7 1,35.9638,233.832,269.795,978.521,1105.81
GoogLeNet,LBGBLLGGBBB,5 1 1-1 3 0 1 3-1 1-1 3 0 1,,,,,
"""


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "runs.csv").write_text(TABLE)
    return read_runs(tmp_path / "runs.csv", SOC)


def test_indices_count_operating_points_from_the_lowest(runs):
    (first, second), empty = runs
    assert empty == 1
    assert first.points[:3] == (
        BlockPoint(GPU, 600e6, 1200e6), BlockPoint(GPU, 300e6, 408e6), BlockPoint(LITTLE, 1008e6),
    )  # fmt: skip
    assert second.points[1] == BlockPoint(BIG, 600e6)
    assert (first.total_s, first.task_j) == pytest.approx((0.218043, 0.862323))
    assert list(changed(first)) == [0, 0, 1, 1, 1, 0, 1, 0]
    assert list(on_cpu(first, SOC)) == [0, 0, 1, 0, 1, 1, 1, 1]


class Blocks:
    """Blocks of 10, 20, 30 … ms whatever the clock; 5 ms to load."""

    platform = SOC

    def operators_s(self, run):
        return 0.01 * np.arange(1, len(run.points) + 1)

    def host_s(self, run):
        return np.zeros(len(run.points))

    def loading_s(self, _run):
        return 0.005


def test_fits_find_what_runs_were_made_with(runs):
    powers = {"big": (1.1e-9, 0.6), "little": (0.8e-9, 0.3), "gpu": (2e-9, 0.9)}
    made, blocks = [], Blocks()
    for k in range(12):
        few = runs[0][k % 2]
        points = tuple(
            BlockPoint(at.processor, own[(k + b) % len(own)].frequency_hz, at.host_hz)
            for b, at in enumerate(few.points)
            for own in (SOC.processors[at.processor].operating_points,)
        )
        run = type(few)(few.network, few.order, points, 0.005, 0.0, 0.0, 0.0, 0.0)
        times = blocks.operators_s(run) * (1 + 0.1 * changed(run)) + 0.002 * on_cpu(run, SOC)
        loader = SOC.processors[BIG].at(points[0].host_hz or points[0].frequency_hz)
        if points[0].processor == LITTLE:
            loader = SOC.processors[LITTLE].at(points[0].frequency_hz)
        working = [SOC.processors[at.processor].at(at.frequency_hz) for at in points]
        joules = sum(
            seconds * (SOC.idle_power_w + alpha * p.point.voltage_v**2 * p.point.frequency_hz
                       + beta * p.point.voltage_v)
            for p, seconds in zip([*working, loader], [*times, 0.005], strict=True)
            for alpha, beta in (powers[p.name],)
        )  # fmt: skip
        total_s = times.sum() + 0.005
        made.append(type(few)(few.network, few.order, points, 0.005, 0.0, total_s, 0.0, joules))
    found = fit_times(blocks, made, start_and_change)
    assert found == pytest.approx([0.002, 0.1])
    fitted = fit_powers(blocks, made, found)
    for name, (alpha, beta) in powers.items():
        assert fitted[name] == pytest.approx((alpha, beta))
    rules = with_fits(SOC, found, fitted)
    assert rules.block_runs.change_share == pytest.approx(0.1)
    assert rules.processors[GPU].power.beta_w_per_v == pytest.approx(0.9)


def test_what_would_be_negative_is_left_out_and_networks_count_alike():
    # x = 1 for one network of three rows, 2 for another one of a single row: their mean.
    rows = [[1.0], [1.0], [1.0], [1.0]]
    assert fit(rows, np.array([1.0, 1, 1, 2]), ["a", "a", "a", "b"]) == pytest.approx([1.5])
    # The second number would be −1; without it, the first one is the mean of 0 and 1.
    found = fit([[1.0, 1.0], [1.0, 0.0]], np.array([0.0, 1.0]), ["a", "a"])
    assert found == pytest.approx([0.5, 0.0])


def test_errors_are_those_of_the_definition():
    found = Errors.of([1.1, 0.9, 1.3], [1.0, 1.0, 1.0])
    assert (found.median, found.mean) == pytest.approx((0.1, 0.1))
    assert found.rmspe == pytest.approx((0.11 / 3) ** 0.5)
    assert found.cell == "10.0 / 19.1 (+10.0)"
