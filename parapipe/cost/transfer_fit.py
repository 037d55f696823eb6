"""Latency and bandwidth of moving tensors between processors, fitted to timed transfers.

For each ordered pair of processors, t = latency + bytes / bandwidth. Neither is negative, and the
relative errors are least, outliers bearable (`least_squares.robust_nonnegative`). What both sides
do besides moving, such as waking the one that waits, is in the latency if it is in the times: no
sum of sizes can tell them apart.

Where one tensor was moved at several pairs of clocks, the fit, made at those clocks at which most
tensors were moved, is scaled to the highest ones by how much faster that tensor moves there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from parapipe.cost.least_squares import left_out_errors, relative_errors, robust_nonnegative
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.mistakes import listed

Pair = tuple[str, str]
Clocks = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TransferSample:
    """One timed transfer.

    Parameters
    ----------
    sender, receiver
        Processors; `from` and `to` in the table.
    size_bytes
        Of the tensor; 0 if not known, then it only tells how times follow the clocks.
    sender_hz, receiver_hz
        `from_hz` and `to_hz` in the table: clocks meanwhile, 0 if nobody said.
    network
        Whose tensor it was; empty if that is not said.
    """

    sender: str
    receiver: str
    size_bytes: int
    time_s: float
    sender_hz: float = 0.0
    receiver_hz: float = 0.0
    network: str = ""

    @property
    def clocks(self) -> Clocks:
        """Clocks of sender and receiver."""
        return self.sender_hz, self.receiver_hz


@dataclass(frozen=True, slots=True)
class LinkFit:
    """What samples say of one ordered pair of processors.

    Parameters
    ----------
    latency_s, bandwidth_bytes_per_s
        At the highest clocks; no bandwidth if size made no difference.
    speed_up
        Time there over time at the clocks of the fit; 1 if nothing else is known.
    speed_up_known
        Whether it was measured for this pair; else it is the largest of the other pairs', the
        least speed-up.
    samples
        How many there are of known size.
    median_error, largest_error
        Relative, of those.
    left_out_error
        Median with each network left out in turn; None if they are not told apart.
    """

    sender: str
    receiver: str
    latency_s: float
    bandwidth_bytes_per_s: float | None
    speed_up: float
    speed_up_known: bool
    samples: int
    median_error: float
    largest_error: float
    left_out_error: float | None

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return asdict(self)


def read_transfer_samples(path: str | Path) -> tuple[TransferSample, ...]:
    """Read samples from a CSV file: from, to, size_bytes, time_s; network, from_hz, to_hz optional.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    return read_table(Path(path), _KIND)


def _sample(cells: Cells) -> TransferSample:
    return TransferSample(
        sender=cells.text("from"),
        receiver=cells.text("to"),
        size_bytes=int(cells.optional("size_bytes") or 0),
        time_s=cells.number("time_s", positive=True),
        sender_hz=cells.optional("from_hz") or 0.0,
        receiver_hz=cells.optional("to_hz") or 0.0,
        network=cells.text("network", empty=True),
    )


_KIND = TableKind(
    "table of transfers",
    ("from", "to", "size_bytes", "time_s"),
    ("network", "from_hz", "to_hz"),
    _sample,
    needed="transfer",
)


def fit_transfers(samples: Sequence[TransferSample]) -> tuple[LinkFit, ...]:
    """Fit every ordered pair, in order of appearance.

    Raises
    ------
    CostError
        If the samples of a pair are of one size only. All such pairs are named.
    """
    groups: dict[Pair, list[TransferSample]] = defaultdict(list)
    for sample in samples:
        groups[sample.sender, sample.receiver].append(sample)
    sized = {pair: _at_most_clocks(group) for pair, group in groups.items()}
    wrong = [
        f"'{sender}' to '{receiver}'"
        for (sender, receiver), group in sized.items()
        if len({sample.size_bytes for sample in group}) < 2
    ]
    if wrong:
        raise CostError(
            f"transfers cannot be fitted: {listed(wrong)} lack two sizes at the same clocks; "
            "time tensors of several sizes"
        )
    ratios = {pair: _speed_up(group, sized[pair][0].clocks) for pair, group in groups.items()}
    other = max((ratio for ratio in ratios.values() if ratio is not None), default=1.0)
    return tuple(_fit(pair, group, ratios[pair], other) for pair, group in sized.items())


def _at_most_clocks(group: Sequence[TransferSample]) -> list[TransferSample]:
    """Return the samples of known size at those clocks at which there are most of them."""
    sized = [sample for sample in group if sample.size_bytes]
    counts = Counter(sample.clocks for sample in sized)
    clocks = max(counts, key=lambda c: counts[c], default=(0.0, 0.0))
    return [sample for sample in sized if sample.clocks == clocks]


def _speed_up(group: Sequence[TransferSample], base: Clocks) -> float | None:
    """Return the time of one tensor at the highest clocks over that at the fit's, if known."""
    times: dict[Clocks, list[float]] = defaultdict(list)
    for sample in group:
        if not sample.size_bytes:
            times[sample.clocks].append(sample.time_s)
    highest = max(times, default=base)
    if highest == base or base not in times:
        return None
    return float(np.median(times[highest]) / np.median(times[base]))


def _fit(pair: Pair, group: Sequence[TransferSample], ratio: float | None, other: float) -> LinkFit:
    design = np.array([[1.0, sample.size_bytes] for sample in group])
    times_s = np.array([sample.time_s for sample in group])
    coefficients = robust_nonnegative(design, times_s)
    latency_s, per_byte_s = map(float, coefficients)
    errors = relative_errors(coefficients, design, times_s)
    speed_up = other if ratio is None else ratio
    networks = [sample.network for sample in group]
    separable = all(
        len({sample.size_bytes for sample in group if sample.network != name}) > 1
        for name in set(networks)
    )
    return LinkFit(
        *pair,
        latency_s=latency_s * speed_up,
        bandwidth_bytes_per_s=1 / (per_byte_s * speed_up) if per_byte_s else None,
        speed_up=speed_up,
        speed_up_known=ratio is not None,
        samples=len(group),
        median_error=float(np.median(errors)),
        largest_error=float(errors.max()),
        left_out_error=float(np.median(left_out_errors(design, times_s, networks)))
        if separable
        else None,
    )
