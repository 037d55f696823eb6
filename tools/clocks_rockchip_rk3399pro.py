"""Fit how times and power of the RK3399Pro follow its clocks.

    python -m tools.clocks_rockchip_rk3399pro

It reads what was measured, profiles/rockchip-rk3399pro/measured/, and prints the numbers of
rockchip-rk3399pro.yaml and what they miss, networks left out in turn. SOURCES.md says more.

Times. A block takes t(f) = Σ wᵢ·(sᵢ·f₀/f + 1 − sᵢ), with f₀ the highest frequency, wᵢ the time of
its operator i there and sᵢ the compute share of the operator's class. Only blocks were timed, so a
block's time at f₀ is shared out over its operators as on the same kind of processor of the A311D,
which ran the same networks with the same library. Three networks cannot tell many classes apart:
there is a share for convolutions but depthwise ones, one for fully connected layers and one for the
rest. They are fitted to t(f)/t(f₀) by robust least squares; a share above one counts as one.

Power. Equation (8) of Para-Pipe, P = αV²f·U + βV with U = 1, fitted to the mean board power of each
network at each point, less the lowest power that was ever seen on the board, by
`parapipe.cost.board_fits`. The GPU's is that with its host at the highest frequency, host included.

Hosts. A block on the GPU takes c·(1/f_host − 1/f₀) longer than with its host at f₀: c is the median
over blocks and clocks. Loading a frame takes t(f₀)·(s·f₀/f + 1 − s) on a CPU cluster, and on the
GPU with f the clock of its host, which loads: s is fitted as those of blocks.

Switching. Medians over pairs of operating points, up and down; for the GPU of the run with 8
changes a pair, since the one with 4000 is of changes that had not taken place when they returned.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from parapipe.cost.board_fits import PowerSample, fit_power
from parapipe.cost.least_squares import Array, robust_nonnegative

PROFILES = Path(__file__).parents[1] / "profiles"
PROCESSORS = ("big", "little", "gpu")
GROUPS = ("conv", "gemm", "default")
HOST_HZ = 1.8e9
# Vendor's device tree, V at MHz, see SOURCES.md; what was measured as 300 MHz reads 297 there.
VOLTAGE_V = {
    "big": {408: 0.8, 600: 0.8, 816: 0.825, 1008: 0.875, 1200: 0.95, 1416: 1.025, 1608: 1.1,
            1800: 1.2},
    "little": {408: 0.8, 600: 0.8, 816: 0.85, 1008: 0.925, 1200: 1.0, 1416: 1.125},
    "gpu": {200: 0.8, 300: 0.8, 400: 0.825, 600: 0.925, 800: 1.1},
}  # fmt: skip
GPU_CHANGES = 8

Row = Mapping[str, str]
Block = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The blocks of all networks on one processor.

    Parameters
    ----------
    time_s, energy_j
        By frequency and block: seconds, and joules of the whole board.
    weights
        By block: share of each of `GROUPS` in its time at the highest frequency.
    """

    processor: str
    time_s: Mapping[float, Mapping[Block, float]]
    energy_j: Mapping[float, Mapping[Block, float]]
    weights: Mapping[Block, Array]

    @property
    def top_hz(self) -> float:
        """The highest frequency."""
        return max(self.time_s)

    @property
    def blocks(self) -> list[Block]:
        """All blocks, in order."""
        return sorted(self.weights)

    @property
    def networks(self) -> list[str]:
        """All networks, in order."""
        return sorted({network for network, _ in self.weights})


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def group_of(row: Row) -> int:
    """Return the position in `GROUPS` of an operator of the A311D's table of rows."""
    if row["type"] == "Gemm":
        return 1
    return 0 if row["type"] == "Conv" and not row["attributes"].startswith("group=") else 2


def measured_rows() -> list[Row]:
    """Return what was measured of blocks."""
    return read(PROFILES / "rockchip-rk3399pro/measured/blocks.csv")


def sweep_of(processor: str, rows: Iterable[Row]) -> Sweep:
    """Collect the blocks of a processor; the GPU's with its host at the highest frequency."""
    time_s: dict[float, dict[Block, float]] = defaultdict(dict)
    energy_j: dict[float, dict[Block, float]] = defaultdict(dict)
    for row in rows:
        hosted = float(row["host_frequency_hz"] or HOST_HZ)
        if (row["processor"], row["metric"], hosted) == (processor, "task", HOST_HZ):
            at, block = float(row["frequency_hz"]), (row["model"], int(row["block"]))
            time_s[at][block] = float(row["time_ms"]) / 1e3
            energy_j[at][block] = time_s[at][block] * float(row["board_power_mw"]) / 1e3
    blocks = set(next(iter(time_s.values())))
    seconds: dict[Block, Array] = defaultdict(lambda: np.zeros(len(GROUPS)))
    for row in read(PROFILES / "amlogic-a311d-2024/armcl-f32.rows.csv"):
        block = (row["model"], int(row["block"]))
        if block in blocks:
            seconds[block][group_of(row)] += float(row[f"{processor}_s"])
    weights = {block: found / found.sum() for block, found in seconds.items()}
    return Sweep(processor, time_s, energy_j, weights)


def fit_shares(sweep: Sweep, networks: Sequence[str]) -> Array:
    """Return the compute share of each of `GROUPS`, fitted to these networks."""
    chosen = [block for block in sweep.blocks if block[0] in networks]
    slower = [hz for hz in sorted(sweep.time_s) if hz < sweep.top_hz]
    top = sweep.time_s[sweep.top_hz]
    design = [sweep.weights[block] * (sweep.top_hz / hz - 1) for hz in slower for block in chosen]
    ratios = [sweep.time_s[hz][block] / top[block] for hz in slower for block in chosen]
    found = robust_nonnegative(np.array(design), np.array(ratios), np.ones(len(ratios)))
    return np.minimum(found, 1.0)


def predicted_s(sweep: Sweep, shares: Array, frequency_hz: float, block: Block) -> float:
    """Return the time of a block from that at the highest frequency."""
    slower = float(sweep.weights[block] @ shares) * (sweep.top_hz / frequency_hz - 1)
    return sweep.time_s[sweep.top_hz][block] * (1 + slower)


def time_errors(sweep: Sweep) -> tuple[list[float], list[float]]:
    """Return relative errors of blocks and of networks, each left out of the fit in its turn."""
    of_blocks: list[float] = []
    of_networks: list[float] = []
    for network in sweep.networks:
        shares = fit_shares(sweep, [other for other in sweep.networks if other != network])
        own = [block for block in sweep.blocks if block[0] == network]
        for hz in sorted(sweep.time_s):
            if hz < sweep.top_hz:
                found = [predicted_s(sweep, shares, hz, block) for block in own]
                true = [sweep.time_s[hz][block] for block in own]
                of_blocks += [abs(a / b - 1) for a, b in zip(found, true, strict=True)]
                of_networks.append(abs(sum(found) / sum(true) - 1))
    return of_blocks, of_networks


def power_samples(sweep: Sweep, idle_w: float) -> list[PowerSample]:
    """Return the mean board power of each network at each point."""
    return [
        PowerSample(
            processor=sweep.processor,
            frequency_hz=hz,
            voltage_v=VOLTAGE_V[sweep.processor][round(hz / 1e6)],
            power_w=sum(e for (name, _), e in sweep.energy_j[hz].items() if name == network)
            / sum(t for (name, _), t in sweep.time_s[hz].items() if name == network),
            idle_power_w=idle_w,
            network=network,
        )
        for hz in sorted(sweep.time_s)
        for network in sweep.networks
    ]


def power_errors(
    samples: Sequence[PowerSample], *, point_too: bool
) -> tuple[list[float], list[float]]:
    """Return relative errors of power above idle and of board power, networks left out in turn.

    Parameters
    ----------
    point_too
        Leave out the operating point that is predicted, too.
    """
    above: list[float] = []
    board: list[float] = []
    for sample in samples:
        rest = [
            other
            for other in samples
            if other.network != sample.network
            and not (point_too and other.frequency_hz == sample.frequency_hz)
        ]
        (fit,) = fit_power(rest)
        missed = fit.power_w(sample.frequency_hz, sample.voltage_v)
        missed = abs(missed + sample.idle_power_w - sample.power_w)
        above.append(missed / (sample.power_w - sample.idle_power_w))
        board.append(missed / sample.power_w)
    return above, board


def host_cycles(rows: Iterable[Row], networks: Sequence[str]) -> list[float]:
    """Return the cycles of its host that each block of these networks takes on the GPU.

    One number for each block and pair of clocks, where that of the host is not the highest.
    """
    times_s: dict[tuple[str, str, str], dict[float, float]] = defaultdict(dict)
    for row in rows:
        if (row["processor"], row["metric"]) == ("gpu", "task") and row["model"] in networks:
            host_hz = float(row["host_frequency_hz"])
            key = row["model"], row["block"], row["frequency_hz"]
            times_s[key][host_hz] = float(row["time_ms"]) / 1e3
    return [
        (seconds - at[HOST_HZ]) / (1 / host_hz - 1 / HOST_HZ)
        for at in times_s.values()
        for host_hz, seconds in at.items()
        if host_hz < HOST_HZ
    ]


def loading_share(rows: Iterable[Row]) -> tuple[float, float]:
    """Return the compute share of loading a frame, and the largest relative error with it."""
    times_s: dict[tuple[str, str, str], dict[float, float]] = defaultdict(dict)
    for row in rows:
        if row["metric"] == "in" and row["processor"] in PROCESSORS:
            hosted = row["processor"] == "gpu"
            loading_hz = float(row["host_frequency_hz" if hosted else "frequency_hz"])
            key = row["model"], row["processor"], row["frequency_hz"] if hosted else ""
            times_s[key][loading_hz] = float(row["time_ms"])
    pairs = [
        (max(at) / hz - 1, seconds / at[max(at)])
        for at in times_s.values()
        for hz, seconds in at.items()
        if hz < max(at)
    ]
    slower, ratio = (np.array(each) for each in zip(*pairs, strict=True))
    (share,) = robust_nonnegative(slower[:, None], ratio, np.ones(len(ratio)))
    share = min(float(share), 1.0)
    return share, float(np.max(np.abs((1 + share * slower) / ratio - 1)))


def switching_s(processor: str) -> tuple[float, float]:
    """Return the median seconds of switching up, and of switching down."""
    delays: dict[bool, list[float]] = {True: [], False: []}
    for row in read(PROFILES / "rockchip-rk3399pro/measured/switching.csv"):
        start, end = int(row["from_index"]), int(row["to_index"])
        counted = processor != "gpu" or int(row["iterations"]) == GPU_CHANGES
        if row["processor"] == processor and start != end and counted:
            delays[end > start].append(float(row["delay_ns"]) / 1e9)
    return median(delays[True]), median(delays[False])


def main() -> None:
    """Fit and print."""
    rows = measured_rows()
    idle_w = min(float(row["board_power_mw"]) for row in rows if row["board_power_mw"]) / 1e3
    print(f"board: idle_power_w: {idle_w:.4g}")
    pooled: dict[str, list[float]] = defaultdict(list)
    for processor in PROCESSORS:
        sweep = sweep_of(processor, rows)
        shares = fit_shares(sweep, sweep.networks)
        told = ", ".join(f"{name} {share:.3f}" for name, share in zip(GROUPS, shares, strict=True))
        blocks, networks = time_errors(sweep)
        samples = power_samples(sweep, idle_w)
        (power,) = fit_power(samples)
        above, board = power_errors(samples, point_too=True)
        up_s, down_s = switching_s(processor)
        print(f"\n{processor}: compute_share: {told}")
        print(f"  alpha_w_per_v2_hz: {power.alpha_w_per_v2_hz:.4g}, beta_w_per_v: "
              f"{power.beta_w_per_v:.4g}")  # fmt: skip
        print(f"  switching: up_s: {up_s:.3g}, down_s: {down_s:.3g}")
        print("  left out: median and largest error of")
        for name, errors in (
            ("time of a block", blocks),
            ("time of a network", networks),
            ("power above idle", above),
            ("power of the board", board),
        ):
            print(f"    {name:<20}{median(errors):6.1%} {max(errors):6.1%}")
            pooled[name] += errors
    counts = host_cycles(rows, sorted({row["model"] for row in rows}))
    share, error = loading_share(rows)
    print(f"\nblock_runs: host_cycles: {median(counts):.3g}", end="")
    print(f", loading_compute_share: {share:.3f} (largest error {error:.1%})")
    print("\nall processors: median error of", end=" ")
    print(", ".join(f"{name} {median(errors):.1%}" for name, errors in pooled.items()))


if __name__ == "__main__":
    main()
