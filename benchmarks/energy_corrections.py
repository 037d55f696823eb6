"""Energy of whole runs out of the power of their blocks: what the meter's lag explains.

A block of t seconds shows of its power above idle the share 1 − τ/t·(1 − exp(−t/τ)); τ has the
least relative errors over the runs of two networks, and the third is predicted:

    E = Σ over blocks of t·(P_idle + P_seen / share(t, τ)).

Why this exists: the same protocol as for times, and to show that one parameter is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from benchmarks.whole_runs import PLATFORM, Array, WholeRun
from parapipe.documents.comparison import Pair
from parapipe.platform.load import load_platform
from tools.block_power import (
    Blocks,
    MeteredRun,
    fit,
    fit_meter_lag,
    power_seen,
    run_energy_j,
)
from tools.calibrate_amlogic_a311d import blocks_of
from tools.states_amlogic_a311d import IDLE_W as METERED_IDLE_W
from tools.states_amlogic_a311d import RUN_2024, STATES

LAGS_S = np.linspace(0, 5e-3, 26)
IDLE_W = load_platform(PLATFORM).idle_power_w
Predict = Callable[[WholeRun], float]
Method = Callable[[Sequence[WholeRun]], Predict]
"""Takes the runs it may be fitted to, gives what predicts joules of the board."""


@cache
def metered_blocks() -> dict[str, Blocks]:
    """Return time and metered power of all blocks by processor."""
    return {p: blocks_of(STATES[PLATFORM], p) for p in load_platform(PLATFORM).names}


def metered(run: WholeRun) -> MeteredRun:
    """Return the run as the fit of the lag takes it."""
    assert run.measured.energy_j is not None
    return MeteredRun(run.measured.model, run.processors, run.measured.energy_j)


def lag_of(runs: Sequence[WholeRun]) -> float:
    """Return the lag that fits the runs best, in seconds."""
    return fit_meter_lag([metered(run) for run in runs], metered_blocks(), IDLE_W)


def _energy_j(run: WholeRun, power_w: dict[str, Array], idle_w: float = IDLE_W) -> float:
    return run_energy_j(metered(run), metered_blocks(), power_w, idle_w)


def as_metered(_: Sequence[WholeRun]) -> Predict:
    """Take the meter at its word."""
    power_w = power_seen(metered_blocks(), 0.0)
    return lambda run: _energy_j(run, power_w)


def lagging(runs: Sequence[WholeRun]) -> Predict:
    """Take the lag back."""
    power_w = power_seen(metered_blocks(), lag_of(runs))
    return lambda run: _energy_j(run, power_w)


def lagging_idle_of_2024(runs: Sequence[WholeRun]) -> Predict:
    """Take the lag back, with the idle power seen in the run that measured GoogLeNet's blocks."""
    idle_w = METERED_IDLE_W[RUN_2024]
    lag_s = fit_meter_lag([metered(run) for run in runs], metered_blocks(), idle_w)
    power_w = power_seen(metered_blocks(), lag_s)
    return lambda run: _energy_j(run, power_w, idle_w)


def equation_8(runs: Sequence[WholeRun]) -> Predict:
    """Take the lag back and fit the power of operator classes: what the platform file holds."""
    lag_s = lag_of(runs)
    power_w = {}
    for processor in load_platform(PLATFORM).processors:
        busy_w = processor.static_power_w + processor.dynamic_power_w("other")  # the default share
        blocks = metered_blocks()[processor.name]
        found = fit(blocks, processor.static_power_w / busy_w, lag_s)
        power_w[processor.name] = found.power_w(blocks)
    return lambda run: _energy_j(run, power_w)


def lag_and(amount: Callable[[WholeRun, float], float]) -> Method:
    """Take the lag back and add θ × an amount of joules, both fitted together."""

    def method(runs: Sequence[WholeRun]) -> Predict:
        best = (np.inf, 0.0, 0.0)
        measured = np.array([metered(run).energy_j for run in runs])
        for lag_s in LAGS_S:
            power_w = power_seen(metered_blocks(), float(lag_s))
            plain = np.array([_energy_j(run, power_w) for run in runs])
            x = np.array([amount(run, e) for run, e in zip(runs, plain, strict=True)]) / measured
            theta = float(x @ (1 - plain / measured) / (x @ x))
            missed = float(np.sum((plain / measured + theta * x - 1) ** 2))
            best = min(best, (missed, float(lag_s), theta))
        _, lag_s, theta = best
        power_w = power_seen(metered_blocks(), lag_s)

        def predict(run: WholeRun) -> float:
            energy_j = _energy_j(run, power_w)
            return energy_j + theta * amount(run, energy_j)

        return predict

    return method


METHODS: dict[str, Method] = {
    "blocks as metered": as_metered,
    "lag of the meter": lagging,
    "lag, idle power of 2024": lagging_idle_of_2024,
    "lag and a base power": lag_and(lambda run, _: float(run.block_s.sum())),
    "lag and a factor": lag_and(lambda _, energy_j: energy_j),
    "lag, power by operator class (shipped)": equation_8,
}


def left_out(method: Method, runs: Sequence[WholeRun]) -> list[Pair]:
    """Return each network's energies with what is fitted to the others."""
    pairs = []
    for network in dict.fromkeys(run.measured.model for run in runs):
        predict = method([run for run in runs if run.measured.model != network])
        for run in runs:
            if run.measured.model == network:
                found = (network, run.measured.order, "energy")
                pairs.append(Pair(*found, predict(run), metered(run).energy_j))
    return pairs
