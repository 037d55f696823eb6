"""Fit the power coefficients of amlogic-a311d.yaml and amlogic-a311d-2024.yaml.

    python -m tools.calibrate_amlogic_a311d DATA_DIR [--platform NAME]

DATA_DIR holds a311d/power_summary.csv and rk3399pro/blocks_dvfs.csv; platforms/SOURCES.md says
what they are.
Time and power of blocks and whole runs come from profiles/amlogic-a311d/measured, the time of each
operator from armcl-f32.rows.csv of the platform's profile, so that energies are fitted to the times
they are used with. Where that profile scales a block's time, its joules above idle stay those that
were metered, so its power is lower by the same factor: a cluster that is slower by its clock does
the same work with less power. docs/accuracy.md compares GoogLeNet's joules of both runs.

Equation (8) of Para-Pipe for one busy processor is P = αV²f·u + βV, with u a mean of the
operator classes' utilisations, weighted by the time they take. Four steps:

1. The share of βV in P. The A311D was measured at one operating point per processor, which cannot
   tell βV from αV²f. The RK3399Pro was measured at all of them: there, per processor kind,
   P_board = P_idle + βV + αV²f·η is fitted, where η falls as memory stalls grow (cycles of a frame
   at the lowest frequency over cycles at f). P_idle of that board is not published: the lowest
   power ever seen on it is an upper bound and is taken for it, so that the share found is a lower
   bound. (Free, P_idle comes out above that bound and all βV as 0.)
2. The lag of the meter: the one with which the blocks explain the energy of whole runs best
   (`tools.block_power`; --meter-lag-ms sets it).
3. Power per class: least squares over all blocks of all networks and over the networks' energies,
   as a meter with that lag would show them.
4. α such that the hungriest class has utilisation 1.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.block_power import (
    Array,
    Blocks,
    Fit,
    MeteredRun,
    bounded_least_squares,
    fit,
    fit_meter_lag,
    run_energy_j,
)
from tools.states_amlogic_a311d import IDLE_W, MEASURED, STATES, State

Row = Mapping[str, str]

CLASSES = (
    "conv1x1", "conv3x3", "conv-other", "depthwise", "gemm", "pool", "norm",
    "elementwise", "softmax", "concat", "view",
)  # fmt: skip
CLASS_OF_TYPE = {
    "Gemm": "gemm", "AveragePool": "pool", "MaxPool": "pool", "LRN": "norm",
    "BatchNormalization": "norm", "Add": "elementwise", "Mul": "elementwise",
    "Relu": "elementwise", "Clip": "elementwise", "Concat": "concat", "Softmax": "softmax",
    "Flatten": "view", "Reshape": "view",
}  # fmt: skip
LETTERS = {"B": "big", "L": "little", "G": "gpu"}
POINT = {"big": (2.208e9, 1.01), "little": (1.8e9, 1.01), "gpu": (0.8e9, 1.15)}
# Rockchip vendor table, mV at MHz, as in SOURCES.md; 300 MHz reads 297 there.
RK_VOLTAGE_V = {
    "big": {408: 0.8, 600: 0.8, 816: 0.825, 1008: 0.875, 1200: 0.95, 1416: 1.025, 1608: 1.1,
            1800: 1.2},
    "little": {408: 0.8, 600: 0.8, 816: 0.85, 1008: 0.925, 1200: 1.0, 1416: 1.125},
    "gpu": {200: 0.8, 300: 0.8, 400: 0.825, 600: 0.925, 800: 1.1},
}  # fmt: skip


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


Setting = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Networks on the RK3399Pro at (processor, network, MHz, MHz of the GPU's host or 0).

    Parameters
    ----------
    time_ms, power_w
        Time of a frame and mean board power.
    lowest_w
        The lowest power ever seen on the board.
    """

    time_ms: Mapping[Setting, float]
    power_w: Mapping[Setting, float]
    lowest_w: float

    def terms(self, setting: Setting) -> dict[str, float]:
        """Return what the coefficients of the power above idle are multiplied with."""
        p, model, mhz, host = setting
        slow, volts = min(RK_VOLTAGE_V[p]), RK_VOLTAGE_V[p][mhz]
        eta = self.time_ms[p, model, slow, host] * slow / (self.time_ms[setting] * mhz)
        found = {f"beta {p}": volts, f"alpha {p} {model}": volts**2 * mhz / 1e3 * eta}
        if host:
            found["alpha host"] = RK_VOLTAGE_V["big"][host] ** 2 * host / 1e3
        return found


def sweep_of(rows: Sequence[Row]) -> Sweep:
    """Sum the blocks of each network at each setting."""
    time_ms: dict[Setting, float] = defaultdict(float)
    energy: dict[Setting, float] = defaultdict(float)
    for r in rows:
        if r["metric"] == "task" and r["processor"] in RK_VOLTAGE_V:
            mhz, host = (
                round(float(r[k] or 0) / 1e6) for k in ("frequency_hz", "host_frequency_hz")
            )
            setting = (r["processor"], r["model"], mhz, host)
            time_ms[setting] += float(r["time_ms"])
            energy[setting] += float(r["time_ms"]) * float(r["board_power_mw"]) / 1e3
    lowest_w = min(float(r["board_power_mw"]) for r in rows if r["board_power_mw"]) / 1e3
    return Sweep(time_ms, {k: energy[k] / t for k, t in time_ms.items()}, lowest_w)


def static_shares(sweep: Sweep) -> dict[str, float]:
    """Return βV / (βV + αV²f·η) at the top operating point of each RK3399Pro processor.

    What a GPU's host draws counts as the GPU's, as it does on the A311D.
    """
    count: dict[str, int] = defaultdict(int)
    for p, *_ in sweep.power_w:
        count[p] += 1
    equations = {setting: sweep.terms(setting) for setting in sweep.power_w}
    names = list(dict.fromkeys(name for terms in equations.values() for name in terms))
    a = np.array([[terms.get(name, 0.0) for name in names] for terms in equations.values()])
    b = np.array(list(sweep.power_w.values())) - sweep.lowest_w
    weight = np.array([count[p] ** -0.5 for p, *_ in equations])
    x = bounded_least_squares(a * weight[:, None], b * weight, np.zeros(len(names)))
    shares = {}
    for p in RK_VOLTAGE_V:
        top = max((mhz, host) for q, _, mhz, host in equations if q == p)
        rows = [row for (q, _, *at), row in zip(equations, a * x, strict=True)
                if q == p and tuple(at) == top]  # fmt: skip
        power_w = np.mean(rows, axis=0)
        shares[p] = float(power_w[names.index(f"beta {p}")] / power_w.sum())
    return shares


def operator_class(r: Row) -> str:
    """Return the class of an operator of the profile's intermediate table."""
    if r["type"] != "Conv":
        return CLASS_OF_TYPE[r["type"]]
    if r["attributes"].startswith("group="):
        return "depthwise"
    return {"1x1": "conv1x1", "3x3": "conv3x3"}.get(r["kernel"], "conv-other")


def blocks_of(state: State, processor: str) -> Blocks:
    """Read the blocks of one processor as they are in a state of the board."""
    times: dict[tuple[str, int], Array] = defaultdict(lambda: np.zeros(len(CLASSES)))
    for r in read(state.folder / "armcl-f32.rows.csv"):
        column = CLASSES.index(operator_class(r))
        times[r["model"], int(r["block"])][column] += float(r[f"{processor}_s"])
    rows = [r for r in read(MEASURED / "blocks.csv")
            if r["processor"] == processor and r["metric"] == "task"]  # fmt: skip
    keys = [(r["model"], int(r["block"])) for r in rows]
    metered_s = np.array([float(r["time_ms"]) / 1e3 for r in rows])
    metered_w = np.array([float(r["board_power_mw"]) / 1e3 - IDLE_W[r["run"]] for r in rows])
    factors = np.array([state.factor(r["run"], processor) for r in rows])
    return Blocks(
        [model for model, _ in keys],
        [block for _, block in keys],
        metered_s * factors,
        metered_w / factors,
        metered_s,
        np.array([times[key] / times[key].sum() for key in keys]),
    )


def whole_runs() -> list[MeteredRun]:
    """Read the whole runs that may be used to calibrate."""
    return [
        MeteredRun(
            r["model"],
            [LETTERS[letter] for letter in r["order(block->processor)"]],
            float(r["task_energy_mj"]) / 1e3,
        )
        for r in read(MEASURED / "end_to_end_calibration.csv")
    ]


def report(
    processor: str, blocks: Blocks, found: Fit, summary: Mapping[str, float], lag_s: float
) -> None:
    """Print the coefficients as they stand in the YAML, and what they say beside the meter."""
    frequency_hz, voltage_v = POINT[processor]
    full_w = float(found.dynamic_w.max())
    print(f"\n{processor}: static {found.static_w:.3f} W, full dynamic {full_w:.3f} W")
    print(f"  alpha_w_per_v2_hz: {full_w / voltage_v**2 / frequency_hz:.4g}")
    print(f"  beta_w_per_v: {found.static_w / voltage_v:.4g}")
    mean = float(np.average(blocks.shares @ found.dynamic_w, weights=blocks.time_s))
    print(f"  utilisation: default: {mean / full_w:.3f}")
    with_data = blocks.shares.max(axis=0) > 0
    for name, watts, known in zip(CLASSES, found.dynamic_w, with_data, strict=True):
        if known:
            print(f"    {name}: {watts / full_w:.3f}")
    shown, true = found.energy_j(blocks, lag_s), found.energy_j(blocks)
    for network, joules in shown.items():
        print(
            f"  {network:20s} summary {1e3 * summary[network]:7.1f} mJ, as the meter would show "
            f"{1e3 * joules:7.1f} ({100 * (joules / summary[network] - 1):+.1f} %), without its "
            f"lag {1e3 * true[network]:7.1f}"
        )
    errors = [abs(joules / summary[network] - 1) for network, joules in shown.items()]
    print(f"  against the summary: mean {np.mean(errors):.1%}, worst {max(errors):.1%}")


def report_end_to_end(
    runs: Sequence[MeteredRun],
    found: Mapping[str, Fit],
    all_blocks: Mapping[str, Blocks],
    idle_w: float,
) -> None:
    """Print predicted and metered energy of whole runs, one frame at a time."""
    print("\nwhole runs, board mJ: equation (8) / metered")
    power_w = {p: found[p].power_w(blocks) for p, blocks in all_blocks.items()}
    for run in runs:
        energy_j = run_energy_j(run, all_blocks, power_w, idle_w)
        letters = "".join(p[0].upper() for p in run.processors)
        print(
            f"  {run.network:14s} {letters:14s} {1e3 * energy_j:6.1f} / {1e3 * run.energy_j:6.1f} "
            f"({100 * (energy_j / run.energy_j - 1):+.1f} %)"
        )


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description="Fit the power coefficients of the A311D.")
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--platform", choices=STATES, default="amlogic-a311d")
    parser.add_argument("--meter-lag-ms", type=float, help="In place of the one that fits best.")
    options = parser.parse_args()
    state = STATES[options.platform]
    shares = static_shares(sweep_of(read(options.data / "rk3399pro/blocks_dvfs.csv")))
    print("static share, from the RK3399Pro:", {p: round(s, 3) for p, s in shares.items()})
    summary: dict[str, dict[str, float]] = defaultdict(dict)
    for r in read(options.data / "a311d/power_summary.csv"):
        summary[r["processor"]][r["model"]] = float(r["derived_energy_mj_active"]) / 1e3
    all_blocks = {p: blocks_of(state, p) for p in POINT}
    runs = whole_runs()
    lag_s = (
        fit_meter_lag(runs, all_blocks, state.idle_w)
        if options.meter_lag_ms is None
        else options.meter_lag_ms / 1e3
    )
    print(f"lag of the meter: {1e3 * lag_s:.2f} ms")
    found = {p: fit(all_blocks[p], shares[p], lag_s) for p in POINT}
    for p in POINT:
        report(p, all_blocks[p], found[p], summary[p], lag_s)
    report_end_to_end(runs, found, all_blocks, state.idle_w)


if __name__ == "__main__":
    main()
