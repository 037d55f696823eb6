"""Fits to measurements of a board: power of its processors, and transfers between them.

*Power.* Coefficients of equation (8) of Para-Pipe, P = αV²f·U + βV. A sample is the power of a
board while one of its processors works at a known voltage and frequency, and of the same board at
rest; the difference is what the equation stands for.

*Transfers.* For each ordered pair of processors, t = latency + bytes / bandwidth. What both sides
do besides moving, such as waking the one that waits, is in the latency if it is in the times: no
sum of sizes can tell them apart. Where one tensor was moved at several pairs of clocks, the fit,
made at those clocks at which most tensors were moved, is scaled to the highest ones by how much
faster that tensor moves there.

No coefficient is negative, and the relative errors are least, outliers bearable
(`least_squares.robust_nonnegative`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from parapipe.cost.least_squares import Array, left_out_errors, relative_errors, robust_nonnegative
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.mistakes import listed


@dataclass(frozen=True, slots=True)
class PowerSample:
    """One measurement of power.

    Parameters
    ----------
    processor
        The only one that worked.
    frequency_hz, voltage_v
        Its operating point.
    power_w, idle_power_w
        Watts while it worked, and at rest; 0 at rest if the meter sees the processor alone.
    utilisation
        U: share of the time that it worked, times the share of its full power that this work draws.
    network
        What it ran, empty if that is not said.
    """

    processor: str
    frequency_hz: float
    voltage_v: float
    power_w: float
    idle_power_w: float
    utilisation: float = 1.0
    network: str = ""


@dataclass(frozen=True, slots=True)
class Errors:
    """Median and largest of some relative errors."""

    median: float
    largest: float


@dataclass(frozen=True, slots=True)
class PowerFit:
    """What samples say of one processor.

    Parameters
    ----------
    alpha_w_per_v2_hz, beta_w_per_v
        α and β of the equation.
    samples, operating_points
        How many there are, and at how many different pairs of frequency and voltage.
    errors
        Of the samples that it was fitted to; None if these are as many as the coefficients, so
        that the fit goes through all of them, whatever they are.
    left_out
        What was left out in turn for the next: `network` or `operating point`; empty if there is
        too little to leave anything out.
    left_out_errors
        Of each sample, predicted without all that share its network (its operating point).
    """

    processor: str
    alpha_w_per_v2_hz: float
    beta_w_per_v: float
    samples: int
    operating_points: int
    errors: Errors | None
    left_out: str = ""
    left_out_errors: Errors | None = None

    def power_w(self, frequency_hz: float, voltage_v: float, utilisation: float = 1.0) -> float:
        """Return the watts above idle at an operating point."""
        dynamic_w = self.alpha_w_per_v2_hz * voltage_v**2 * frequency_hz * utilisation
        return dynamic_w + self.beta_w_per_v * voltage_v

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return asdict(self)


def read_power_samples(path: str | Path) -> tuple[PowerSample, ...]:
    """Read samples from a CSV file with the columns of `PowerSample`, the last two optional.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    return read_table(Path(path), _POWERS)


def _power_sample(cells: Cells) -> PowerSample:
    return PowerSample(
        processor=cells.text("processor"),
        frequency_hz=cells.number("frequency_hz", positive=True),
        voltage_v=cells.number("voltage_v", positive=True),
        power_w=cells.number("power_w", positive=True),
        idle_power_w=cells.number("idle_power_w"),
        utilisation=_utilisation(cells),
        network=cells.text("network", empty=True),
    )


def _utilisation(cells: Cells) -> float:
    share = cells.optional("utilisation")
    if share is not None and share > 1:
        cells.mistakes.append(f"utilisation is {share:g} but must be at most 1")
    return 1.0 if share is None else share


_POWERS = TableKind(
    "table of power samples",
    ("processor", "frequency_hz", "voltage_v", "power_w", "idle_power_w"),
    ("utilisation", "network"),
    _power_sample,
    needed="sample",
)


def fit_power(samples: Sequence[PowerSample]) -> tuple[PowerFit, ...]:
    """Fit α and β of every processor, in order of appearance.

    Raises
    ------
    CostError
        If a sample is not above idle, or a processor's samples cannot tell α from β, since V and
        V²f·U keep the same ratio in all of them. All such processors are named.
    """
    groups: dict[str, list[PowerSample]] = defaultdict(list)
    for sample in samples:
        groups[sample.processor].append(sample)
    wrong = [f"'{name}' {reason}" for name, group in groups.items() if (reason := _obstacle(group))]
    if wrong:
        raise CostError(f"power cannot be fitted: processor {'; processor '.join(wrong)}")
    return tuple(_fit_processor(name, group) for name, group in groups.items())


def _obstacle(group: Sequence[PowerSample]) -> str:
    low = [s for s in group if s.power_w <= s.idle_power_w]
    if low:
        first = low[0]
        return (
            f"has {len(low)} samples not above idle, one of {first.power_w:g} W with "
            f"{first.idle_power_w:g} W at rest; correct or leave them out"
        )
    if not _is_independent(_design_of(group)):
        return (
            "has samples that do not tell static from dynamic power; add some at another voltage "
            "or frequency"
        )
    return ""


def _is_independent(design: Array) -> bool:
    scale = np.linalg.norm(design, axis=0)
    return bool((scale > 0).all()) and np.linalg.matrix_rank(design / scale, tol=1e-6) == 2


def _design_of(group: Sequence[PowerSample]) -> Array:
    return np.array([[s.voltage_v**2 * s.frequency_hz * s.utilisation, s.voltage_v] for s in group])


def _fit_processor(processor: str, group: Sequence[PowerSample]) -> PowerFit:
    design = _design_of(group)
    above_idle_w = np.array([s.power_w - s.idle_power_w for s in group])
    coefficients = robust_nonnegative(design, above_idle_w)
    points = [(s.frequency_hz, s.voltage_v) for s in group]
    networks = [s.network for s in group]
    parts: dict[str, Sequence[Hashable]] = {"network": networks, "operating point": points}
    left_out = next((what for what, keys in parts.items() if _may_leave_out(design, keys)), "")
    without = left_out_errors(design, above_idle_w, parts[left_out]) if left_out else None
    errors = _errors_of(relative_errors(coefficients, design, above_idle_w))
    different = {(s.frequency_hz, s.voltage_v, s.utilisation) for s in group}
    return PowerFit(
        processor=processor,
        alpha_w_per_v2_hz=float(coefficients[0]),
        beta_w_per_v=float(coefficients[1]),
        samples=len(group),
        operating_points=len(set(points)),
        errors=errors if len(different) > len(coefficients) else None,
        left_out=left_out,
        left_out_errors=None if without is None else _errors_of(without),
    )


def _may_leave_out(design: Array, keys: Sequence[Hashable]) -> bool:
    """Tell whether there are several keys, and without each of them enough is left for a fit."""
    names = set(keys)
    rests = (design[[key != name for key in keys]] for name in names)
    return len(names) > 1 and all(map(_is_independent, rests))


def _errors_of(errors: Array) -> Errors:
    return Errors(float(np.median(errors)), float(errors.max()))


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
    return read_table(Path(path), _TRANSFERS)


def _transfer_sample(cells: Cells) -> TransferSample:
    return TransferSample(
        sender=cells.text("from"),
        receiver=cells.text("to"),
        size_bytes=int(cells.optional("size_bytes") or 0),
        time_s=cells.number("time_s", positive=True),
        sender_hz=cells.optional("from_hz") or 0.0,
        receiver_hz=cells.optional("to_hz") or 0.0,
        network=cells.text("network", empty=True),
    )


_TRANSFERS = TableKind(
    "table of transfers",
    ("from", "to", "size_bytes", "time_s"),
    ("network", "from_hz", "to_hz"),
    _transfer_sample,
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
    sized = {pair: _at_commonest_clocks(group) for pair, group in groups.items()}
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
    return tuple(_fit_link(pair, group, ratios[pair], other) for pair, group in sized.items())


def _at_commonest_clocks(group: Sequence[TransferSample]) -> list[TransferSample]:
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


def _fit_link(
    pair: Pair, group: Sequence[TransferSample], ratio: float | None, other: float
) -> LinkFit:
    design = np.array([[1.0, sample.size_bytes] for sample in group])
    times_s = np.array([sample.time_s for sample in group])
    coefficients = robust_nonnegative(design, times_s)
    latency_s, per_byte_s = map(float, coefficients)
    errors = _errors_of(relative_errors(coefficients, design, times_s))
    speed_up = other if ratio is None else ratio
    networks = [sample.network for sample in group]
    separable = all(
        len({sample.size_bytes for sample in group if sample.network != name}) > 1
        for name in set(networks)
    )
    without = left_out_errors(design, times_s, networks) if separable else None
    return LinkFit(
        *pair,
        latency_s=latency_s * speed_up,
        bandwidth_bytes_per_s=1 / (per_byte_s * speed_up) if per_byte_s else None,
        speed_up=speed_up,
        speed_up_known=ratio is not None,
        samples=len(group),
        median_error=errors.median,
        largest_error=errors.largest,
        left_out_error=None if without is None else float(np.median(without)),
    )
