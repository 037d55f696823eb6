"""Power of operator classes out of the metered power of blocks, read by a meter that lags.

Equation (8) of Para-Pipe for one busy processor is P = αV²f·u + βV, with u a mean of the operator
classes' utilisations, weighted by the time they take. A meter that follows a change of power with
a lag τ (a low-pass of first order, a current sensor that averages) and is at rest before each block
shows of a block of t seconds only the share 1 − τ/t·(1 − exp(−t/τ)) of its power above idle, so
blocks of a few milliseconds read too low.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NETWORK_WEIGHT = 10.0
PULL = 0.01
LEAST_SHARE_OF_MEAN = 0.1  # no class runs on nothing
ROUNDS = 2
# Aimed at; GoogLeNet is the network whose joules are quoted.
TOLERANCE = defaultdict(lambda: 0.12, {"GoogLeNet": 0.04})


def seen_share(time_s: Array, lag_s: float) -> Array:
    """Return the share of a block's power above idle that a meter shows.

    Parameters
    ----------
    time_s
        Lengths of the blocks, positive.
    lag_s
        τ; 0 for a meter that does not lag.
    """
    if not lag_s:
        return np.ones_like(time_s)
    return 1 + lag_s / time_s * np.expm1(-time_s / lag_s)


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


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks of all networks on one processor.

    Parameters
    ----------
    network, block
        Name of each block's network, and its number there.
    time_s, power_w
        Seconds of each block, and the watts above idle that the meter would show of them.
    metered_s
        Seconds that the block took while it was metered: the meter's lag depends on these. They
        differ from `time_s` where that is scaled to another state of the board.
    shares
        Share of each class in the block's time: blocks × classes.
    """

    network: Sequence[str]
    block: Sequence[int]
    time_s: Array
    power_w: Array
    metered_s: Array
    shares: Array
    place: Mapping[tuple[str, int], int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keys = zip(self.network, self.block, strict=True)
        object.__setattr__(self, "place", {key: i for i, key in enumerate(keys)})


@dataclass(frozen=True, slots=True)
class Fit:
    """Static watts of a processor and the dynamic watts of each class, as drawn."""

    static_w: float
    dynamic_w: Array

    def power_w(self, blocks: Blocks) -> Array:
        """Return the true watts above idle of each block."""
        return self.static_w + blocks.shares @ self.dynamic_w

    def energy_j(self, blocks: Blocks, lag_s: float = 0.0) -> dict[str, float]:
        """Return the joules of each network by equation (8), as a meter with that lag sees them."""
        return by_network(
            blocks, self.power_w(blocks) * blocks.time_s * seen_share(blocks.metered_s, lag_s)
        )


def by_network(blocks: Blocks, values: Array) -> dict[str, float]:
    """Add up one value for each block over networks."""
    total: dict[str, float] = defaultdict(float)
    for network, value in zip(blocks.network, values, strict=True):
        total[network] += float(value)
    return dict(total)


def fit(blocks: Blocks, static_share: float, lag_s: float = 0.0) -> Fit:
    """Fit the dynamic watts of each class to what the meter showed of blocks.

    Least squares over all blocks of all networks (a block weighs as its share of its network's
    time) and over the networks' energies, with a pull to the processor's mean, which is also what
    classes without data take. Networks that are missed by more than the tolerance weigh more in the
    next round.

    Parameters
    ----------
    static_share
        Share of βV in a busy processor's power above idle.
    lag_s
        The meter's.
    """
    energy, time = (
        by_network(blocks, blocks.power_w * blocks.time_s),
        by_network(blocks, blocks.time_s),
    )
    mean_w = sum(energy.values()) / sum(time.values())
    seen = seen_share(blocks.metered_s, lag_s)
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
    low = np.full(blocks.shares.shape[1], LEAST_SHARE_OF_MEAN * mean_w)
    x = low
    for _ in range(ROUNDS):
        of_network = np.sqrt(NETWORK_WEIGHT * weight)
        a = np.vstack(
            [
                shares * of_block[:, None] / mean_w,
                network_rows * of_network[:, None],
                pull * np.eye(blocks.shares.shape[1]),
            ]
        )
        b = np.concatenate(
            [
                target * of_block / mean_w,
                network_target * of_network,
                np.full(blocks.shares.shape[1], pull * mean_w),
            ]
        )
        x = bounded_least_squares(a, b, low)
        missed = (network_rows @ x - network_target) / tolerance
        weight = weight * (1 + missed**2)
    return Fit(float(static_w), x)


@dataclass(frozen=True, slots=True)
class MeteredRun:
    """A whole network's run without pauses, a processor for each block.

    Parameters
    ----------
    processors
        Name of each block's processor.
    energy_j
        Joules of the board for one frame.
    """

    network: str
    processors: Sequence[str]
    energy_j: float


PowerOfBlocks = Mapping[str, Array]


def power_seen(blocks: Mapping[str, Blocks], lag_s: float) -> dict[str, Array]:
    """Return the true watts above idle of each processor's blocks, the meter's lag taken back."""
    return {p: each.power_w / seen_share(each.metered_s, lag_s) for p, each in blocks.items()}


def run_energy_j(
    run: MeteredRun, blocks: Mapping[str, Blocks], power_w: PowerOfBlocks, idle_w: float
) -> float:
    """Return the joules of the board for one frame, given the watts above idle of all blocks."""
    total = 0.0
    for number, p in enumerate(run.processors):
        place = blocks[p].place[run.network, number]
        total += float(blocks[p].time_s[place]) * (idle_w + float(power_w[p][place]))
    return total


def fit_meter_lag(
    runs: Sequence[MeteredRun],
    blocks: Mapping[str, Blocks],
    idle_w: float,
    *,
    longest_s: float = 10e-3,
) -> float:
    """Return the lag with which blocks explain the energy of whole runs best, in seconds.

    The one that has the least root mean square of the relative errors, between 0 and `longest_s`,
    to 10 µs.
    """

    def missed(lag_s: float) -> float:
        power_w = power_seen(blocks, lag_s)
        errors = [run_energy_j(r, blocks, power_w, idle_w) / r.energy_j - 1 for r in runs]
        return float(np.mean(np.square(errors)))

    lags = np.linspace(0, longest_s, 101)
    step = float(lags[1])
    best = min(lags, key=missed)
    finer = np.linspace(max(0.0, best - step), best + step, 21)
    return round(float(min(finer, key=missed)), 5)
