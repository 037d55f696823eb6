"""What could make whole runs longer or shorter than their blocks: each tried, network by network.

A correction adds θ·x seconds to a stage, with x known and θ ≥ 0 (or one of several) fitted by least
squares to the relative errors of latency,

    min over θ of Σ over runs of ((Σ blocks + θ·x) / measured − 1)²,

on two networks and applied to the third. Why this exists: a correction may stay only if it lowers
the error of networks that it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.whole_runs import Array, WholeRun
from parapipe.documents.comparison import Pair
from tools.states_amlogic_a311d import BIG_SLOWER_IN_2025

PROCESSORS = ("big", "little", "gpu")
# Second-level cache over the memory's bandwidth, both as in the platform's file; the GPU's cache is
# not known.
REFILL_S = {"big": 2**20 / 9.967e9, "little": 2**18 / 7.466e9, "gpu": 0.0}
CACHE_BYTES = {"big": 2**20, "little": 2**18, "gpu": 0}
SHORT_S = 5e-3
EARLIER = "GoogLeNet"  # blocks measured in the run parapipe-2024, whole runs in revision-2025


@dataclass(frozen=True, slots=True)
class Correction:
    """Something that could be added.

    Parameters
    ----------
    name, reading
        What it is called, and the physics that it would stand for.
    added_s
        Seconds per unit of each parameter: stages × parameters.
    low, high
        Bounds of each parameter; the same for all of one correction.
    """

    name: str
    reading: str
    added_s: Callable[[WholeRun], Array]
    low: float = -np.inf
    high: float = np.inf

    def fit(self, runs: Sequence[WholeRun]) -> Array:
        """Return the parameters that fit the runs' latencies best, within the bounds."""
        count = self.added_s(runs[0]).shape[1]
        if self.low == self.high:
            return np.full(count, self.low)
        measured = np.array([run.measured.latency_s for run in runs])
        plain = np.array([run.block_s.sum() for run in runs])
        x = np.array([self.added_s(run).sum(axis=0) for run in runs])
        found, *_ = np.linalg.lstsq(x / measured[:, None], 1 - plain / measured, rcond=None)
        return np.asarray(np.clip(found, self.low, self.high), np.float64)


def left_out(correction: Correction, runs: Sequence[WholeRun]) -> tuple[list[Pair], list[Array]]:
    """Return each network's figures with what is fitted to the others, and these fits."""
    pairs: list[Pair] = []
    fits: list[Array] = []
    for network in dict.fromkeys(run.measured.model for run in runs):
        fitted = correction.fit([run for run in runs if run.measured.model != network])
        fits.append(fitted)
        for run in runs:
            if run.measured.model == network:
                pairs += run.pairs(correction.added_s(run) @ fitted)
    return pairs, fits


def _by_stage(run: WholeRun, *columns: Array) -> Array:
    """Add up values of blocks over stages."""
    return np.stack([np.bincount(run.stage, weights=column) for column in columns], axis=1)


def _on(run: WholeRun, processor: str) -> Array:
    return np.array([float(p == processor) for p in run.processors])


def _joined(run: WholeRun) -> Array:
    """1 for a block that follows one on the same processor."""
    stage = run.stage
    return np.array([0.0, *(stage[1:] == stage[:-1])])


def _of_blocks(values: Callable[[WholeRun], Array]) -> Callable[[WholeRun], Array]:
    return lambda run: _by_stage(run, values(run))


def _as_measured(run: WholeRun) -> Array:
    """Return the blocks' times without the factor of the board's state."""
    earlier = _on(run, "big") * (run.measured.model == EARLIER)
    times_s: Array = run.block_s / (1 + (BIG_SLOWER_IN_2025 - 1) * earlier)
    return times_s


def _refill(run: WholeRun) -> Array:
    gained_s: Array = -_joined(run) * np.array([REFILL_S[p] for p in run.processors])
    return gained_s


def _kept(run: WholeRun) -> Array:
    room = np.array([float(CACHE_BYTES[p]) for p in run.processors])
    kept_bytes: Array = -_joined(run) * np.minimum(run.received_bytes, room)
    return kept_bytes


CORRECTIONS = (
    Correction("none", "the plain sum of blocks", lambda r: _by_stage(r, 0 * r.block_s), 0, 0),
    Correction("transfers", "blocks hold nothing of what the links say of moving tensors",
               lambda r: r.transfers_s[:, None], 1, 1),
    Correction("transfers and synchronisation", "nor of waiting for each other",
               lambda r: r.hand_overs_s[:, None], 1, 1),
    Correction("share of transfers", "blocks hold a part of them", lambda r: r.transfers_s[:, None],
               0, 1),
    Correction("share of hand-overs", "the same with waiting", lambda r: r.hand_overs_s[:, None],
               0, 1),
    Correction("constant for each switch", "what a switch costs, whatever moves",
               lambda r: (r.transfers_s > 0).astype(float)[:, None], 0),
    Correction("constant for each block", "starting and draining a block by itself",
               _of_blocks(lambda r: -np.ones_like(r.block_s)), 0),
    Correction("constant for each block and processor", "the same, processors apart",
               lambda r: _by_stage(r, *(-_on(r, p) for p in PROCESSORS)), 0),
    Correction("drain of the GPU", "only its queue drains",
               _of_blocks(lambda r: -_joined(r) * _on(r, "gpu")), 0),
    Correction("overhead of short blocks", f"in proportion up to {1e3 * SHORT_S:g} ms",
               _of_blocks(lambda r: -np.minimum(r.block_s, SHORT_S)), 0),
    Correction("big under sustained load", "a hot cluster slows down",
               _of_blocks(lambda r: r.block_s * _on(r, "big")), 0),
    Correction("constant and sustained load", "both",
               lambda r: _by_stage(r, -np.ones_like(r.block_s), r.block_s * _on(r, "big")), 0),
    Correction("factor for each processor", "conditions of the day, clocks",
               lambda r: _by_stage(r, *(r.block_s * _on(r, p) for p in PROCESSORS))),
    Correction("activations kept in caches", "seconds per byte that need not be fetched",
               _of_blocks(_kept), 0),
    Correction("caches not refilled, in full", "second-level cache ÷ bandwidth, nothing fitted",
               _of_blocks(_refill), 1, 1),
    Correction("caches not refilled", "the share of it that fits best", _of_blocks(_refill), 0, 1),
    Correction("as it was in 2024", "blocks of 2024 on big as they were measured",
               _of_blocks(lambda r: _as_measured(r) - r.block_s), 1, 1),
)  # fmt: skip


def big_slower(runs: Sequence[WholeRun]) -> float:
    """Return the factor on the earlier blocks on big that fits the latency of their runs best."""
    own = [run for run in runs if run.measured.model == EARLIER]
    measured = np.array([run.measured.latency_s for run in own])
    blocks = [(_as_measured(run), _on(run, "big")) for run in own]
    x = np.array([times @ on_big for times, on_big in blocks]) / measured
    rest = np.array([times.sum() for times, _ in blocks]) / measured
    return 1 + float(x @ (1 - rest) / (x @ x))
