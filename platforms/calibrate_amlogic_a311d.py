"""Fit the power coefficients of amlogic-a311d.yaml: python calibrate_amlogic_a311d.py DATA_DIR.

DATA_DIR holds a311d/ (blocks.csv, power_summary.csv, end_to_end_calibration.csv) and
rk3399pro/blocks_dvfs.csv; SOURCES.md says what they are. The time of each operator comes from
profiles/amlogic-a311d/armcl-f32.rows.csv, so that energies are fitted to the times they are used
with.

Equation (8) of Para-Pipe for one busy processor is P = αV²f·u + βV, with u a mean of the
operator classes' utilisations, weighted by the time they take. Three steps:

1. The share of βV in P. The A311D was measured at one operating point per processor, which cannot
   tell βV from αV²f. The RK3399Pro was measured at all of them: there, per processor kind,
   P_board = P_idle + βV + αV²f·η is fitted, where η falls as memory stalls grow (cycles of a frame
   at the lowest frequency over cycles at f). P_idle of that board is not published: the lowest
   power ever seen on it is an upper bound and is taken for it, so that the share found is a lower
   bound. (Free, P_idle comes out above that bound and all βV as 0.)
2. Utilisation per class: least squares over all blocks of all networks (a block weighs as its share
   of its network's time) and over the networks' energies, with a pull to the processor's mean,
   which is also what classes without data take.
3. α such that the hungriest class has utilisation 1.

With --meter-lag-ms L the meter is taken to miss the first L milliseconds' worth of each block
(factor exp(-L/t) on its power). The shipped numbers have L = 0: they are what the meter said.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
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
OPERATORS = Path(__file__).parents[1] / "profiles/amlogic-a311d/armcl-f32.rows.csv"
IDLE_W = {"parapipe-2024": 2.19, "revision-2025": 2.02}
POINT = {"big": (2.208e9, 1.01), "little": (1.8e9, 1.01), "gpu": (0.8e9, 1.15)}
# Rockchip vendor table, mV at MHz, as in SOURCES.md; 300 MHz reads 297 there.
RK_VOLTAGE_V = {
    "big": {408: 0.8, 600: 0.8, 816: 0.825, 1008: 0.875, 1200: 0.95, 1416: 1.025, 1608: 1.1,
            1800: 1.2},
    "little": {408: 0.8, 600: 0.8, 816: 0.85, 1008: 0.925, 1200: 1.0, 1416: 1.125},
    "gpu": {200: 0.8, 300: 0.8, 400: 0.825, 600: 0.925, 800: 1.1},
}  # fmt: skip
NETWORK_WEIGHT = 10.0
PULL = 0.01
LEAST_SHARE_OF_MEAN = 0.1  # no class runs on nothing
ROUNDS = 2
# Aimed at; GoogLeNet is the network whose joules are quoted.
TOLERANCE = defaultdict(lambda: 0.12, {"GoogLeNet": 0.04})


def bounded_least_squares(a: Array, b: Array, low: Array, sweeps: int = 20_000) -> Array:
    """Return the x >= low with the least |a x - b|², by coordinate descent."""
    gram, rhs = a.T @ a, a.T @ b
    x = low.astype(np.float64)
    for _ in range(sweeps):
        before = x.copy()
        for i in range(len(x)):
            if gram[i, i] > 0:
                x[i] = max(low[i], x[i] + (rhs[i] - gram[i] @ x) / gram[i, i])
        if np.abs(x - before).max() <= 1e-12 * max(1.0, np.abs(x).max()):
            break
    return x


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


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks of all networks on one processor.

    Parameters
    ----------
    network
        Name of each block's network.
    time_s, power_w
        Seconds and active watts (board minus idle) of each block; means over repeats.
    shares
        Share of each class in the block's time: blocks × classes.
    """

    network: list[str]
    time_s: Array
    power_w: Array
    shares: Array


def blocks_of(processor: str, folder: Path) -> Blocks:
    """Read the blocks of one processor."""
    times: dict[tuple[str, str], Array] = defaultdict(lambda: np.zeros(len(CLASSES)))
    for r in read(OPERATORS):
        column = CLASSES.index(operator_class(r))
        times[r["model"], r["block"]][column] += float(r[f"{processor}_s"])
    seen: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for r in read(folder / "a311d/blocks.csv"):
        if r["processor"] == processor and r["metric"] == "task":
            active_w = float(r["board_power_mw"]) / 1e3 - IDLE_W[r["run"]]
            seen[r["model"], r["block"]].append((float(r["time_ms"]) / 1e3, active_w))
    keys = list(seen)
    means = np.array([np.mean(seen[key], axis=0) for key in keys])
    shares = np.array([times[key] / times[key].sum() for key in keys])
    return Blocks([model for model, _ in keys], means[:, 0], means[:, 1], shares)


@dataclass(frozen=True, slots=True)
class Fit:
    """Static watts of a processor and the dynamic watts of each class, as drawn."""

    static_w: float
    dynamic_w: Array

    def energy_j(self, blocks: Blocks, lag_s: float = 0.0) -> dict[str, float]:
        """Return the joules of each network by equation (8), as a meter with that lag sees them."""
        power_w = self.static_w + blocks.shares @ self.dynamic_w
        return _by_network(blocks, power_w * blocks.time_s * np.exp(-lag_s / blocks.time_s))


def _by_network(blocks: Blocks, values: Array) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for network, value in zip(blocks.network, values, strict=True):
        total[network] += float(value)
    return dict(total)


def fit(blocks: Blocks, static_share: float, lag_s: float = 0.0) -> Fit:
    """Fit the dynamic watts of each class.

    Networks that are missed by more than the tolerance weigh more in the next round.
    """
    energy, time = (
        _by_network(blocks, blocks.power_w * blocks.time_s),
        _by_network(blocks, blocks.time_s),
    )
    mean_w = sum(energy.values()) / sum(time.values())
    seen = np.exp(-lag_s / blocks.time_s)
    static_w = static_share * mean_w / (seen @ blocks.time_s / blocks.time_s.sum())
    mean_w -= static_share * mean_w
    target = blocks.power_w - static_w * seen
    shares = blocks.shares * seen[:, None]
    of_block = np.sqrt(blocks.time_s / np.array([time[n] for n in blocks.network]))
    member = np.array([[float(n == name) for n in blocks.network] for name in energy])
    joules = np.array(list(energy.values()))
    network_rows = member @ (shares * blocks.time_s[:, None]) / joules[:, None]
    network_target = member @ (target * blocks.time_s) / joules
    tolerance = np.array([TOLERANCE[n] for n in energy])
    weight = (0.12 / tolerance) ** 2
    pull = np.sqrt(PULL) / mean_w
    low = np.full(len(CLASSES), LEAST_SHARE_OF_MEAN * mean_w)
    x = low
    for _ in range(ROUNDS):
        of_network = np.sqrt(NETWORK_WEIGHT * weight)
        a = np.vstack(
            [
                shares * of_block[:, None] / mean_w,
                network_rows * of_network[:, None],
                pull * np.eye(len(CLASSES)),
            ]
        )
        b = np.concatenate(
            [
                target * of_block / mean_w,
                network_target * of_network,
                np.full(len(CLASSES), pull * mean_w),
            ]
        )
        x = bounded_least_squares(a, b, low)
        missed = (network_rows @ x - network_target) / tolerance
        weight = weight * (1 + missed**2)
    return Fit(float(static_w), x)


def report(
    processor: str, blocks: Blocks, found: Fit, summary: Mapping[str, float], lag_s: float
) -> None:
    """Print the coefficients as they stand in the YAML, and what they miss."""
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
    energy = found.energy_j(blocks, lag_s)
    mean_of_repeats = _by_network(blocks, blocks.power_w * blocks.time_s)
    errors = []
    for network, joules in energy.items():
        errors.append(abs(joules / summary[network] - 1))
        print(
            f"  {network:20s} {1e3 * joules:7.1f} mJ, summary {1e3 * summary[network]:7.1f} "
            f"({100 * (joules / summary[network] - 1):+.1f} %), "
            f"mean of repeats ({100 * (joules / mean_of_repeats[network] - 1):+.1f} %)"
        )
    print(f"  against the summary: mean {np.mean(errors):.1%}, worst {max(errors):.1%}")


def report_end_to_end(
    folder: Path, found: Mapping[str, Fit], all_blocks: Mapping[str, Blocks]
) -> None:
    """Print predicted and metered active power of whole networks on one processor."""
    print("\nwhole networks on one processor, active W (board minus 2.02): equation (8) / metered")
    letters = {"B": "big", "L": "little", "G": "gpu"}
    for r in read(folder / "a311d/end_to_end_calibration.csv"):
        order = r["order(block->processor)"]
        if r["run"] == "revision-2025" and len(set(order)) == 1:
            p, network = letters[order[0]], r["model"]
            blocks = all_blocks[p]
            power_w = (
                found[p].energy_j(blocks)[network] / _by_network(blocks, blocks.time_s)[network]
            )
            metered_w = float(r["task_board_power_mw"]) / 1e3 - IDLE_W["revision-2025"]
            print(f"  {network:14s} {p:6s} {power_w:.2f} / {metered_w:.2f}")


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description="Fit the power coefficients of the A311D.")
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--meter-lag-ms", type=float, default=0.0)
    options = parser.parse_args()
    shares = static_shares(sweep_of(read(options.data / "rk3399pro/blocks_dvfs.csv")))
    print("static share, from the RK3399Pro:", {p: round(s, 3) for p, s in shares.items()})
    summary: dict[str, dict[str, float]] = defaultdict(dict)
    for r in read(options.data / "a311d/power_summary.csv"):
        summary[r["processor"]][r["model"]] = float(r["derived_energy_mj_active"]) / 1e3
    all_blocks = {p: blocks_of(p, options.data) for p in POINT}
    found = {p: fit(all_blocks[p], shares[p], options.meter_lag_ms / 1e3) for p in POINT}
    for p in POINT:
        report(p, all_blocks[p], found[p], summary[p], options.meter_lag_ms / 1e3)
    report_end_to_end(options.data, found, all_blocks)


if __name__ == "__main__":
    main()
