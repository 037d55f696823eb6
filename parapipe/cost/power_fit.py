"""Coefficients of equation (8) of Para-Pipe, P = αV²f·U + βV, fitted to samples of power.

A sample is the power of a board while one of its processors works at a known voltage and frequency,
and of the same board at rest; the difference is what the equation stands for. α and β are never
negative and the relative errors are least, outliers bearable (`least_squares.robust_nonnegative`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from parapipe.cost.least_squares import Array, left_out_errors, relative_errors, robust_nonnegative
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table


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
    """Median and largest of some relative errors of power above idle."""

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
    return read_table(Path(path), _KIND)


def _sample(cells: Cells) -> PowerSample:
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
    if share is None:
        return 1.0
    if share > 1:
        cells.mistakes.append(f"utilisation is {share:g} but must be at most 1")
    return share


_KIND = TableKind(
    "table of power samples",
    ("processor", "frequency_hz", "voltage_v", "power_w", "idle_power_w"),
    ("utilisation", "network"),
    _sample,
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
    return tuple(_fit(name, group) for name, group in groups.items())


def _obstacle(group: Sequence[PowerSample]) -> str:
    low = [s for s in group if s.power_w <= s.idle_power_w]
    if low:
        first = low[0]
        return (
            f"has {len(low)} samples not above idle, one of {first.power_w:g} W with "
            f"{first.idle_power_w:g} W at rest; correct or leave them out"
        )
    if not _independent(_design(group)):
        return (
            "has samples that do not tell static from dynamic power; add some at another voltage "
            "or frequency"
        )
    return ""


def _independent(design: Array) -> bool:
    scale = np.linalg.norm(design, axis=0)
    return bool((scale > 0).all()) and np.linalg.matrix_rank(design / scale, tol=1e-6) == 2


def _design(group: Sequence[PowerSample]) -> Array:
    return np.array([[s.voltage_v**2 * s.frequency_hz * s.utilisation, s.voltage_v] for s in group])


def _fit(processor: str, group: Sequence[PowerSample]) -> PowerFit:
    design = _design(group)
    above_idle_w = np.array([s.power_w - s.idle_power_w for s in group])
    coefficients = robust_nonnegative(design, above_idle_w)
    points = [(s.frequency_hz, s.voltage_v) for s in group]
    parts: dict[str, Sequence[Hashable]] = {
        "network": [s.network for s in group],
        "operating point": points,
    }
    left_out = next((what for what, keys in parts.items() if _may_leave_out(design, keys)), "")
    different = {(s.frequency_hz, s.voltage_v, s.utilisation) for s in group}
    is_tested = len(different) > len(coefficients)
    return PowerFit(
        processor=processor,
        alpha_w_per_v2_hz=float(coefficients[0]),
        beta_w_per_v=float(coefficients[1]),
        samples=len(group),
        operating_points=len(set(points)),
        errors=_errors(relative_errors(coefficients, design, above_idle_w)) if is_tested else None,
        left_out=left_out,
        left_out_errors=_errors(left_out_errors(design, above_idle_w, parts[left_out]))
        if left_out
        else None,
    )


def _may_leave_out(design: Array, keys: Sequence[Hashable]) -> bool:
    """Tell whether there are several keys, and without each of them enough is left for a fit."""
    names = set(keys)
    rests = (design[[key != name for key in keys]] for name in names)
    return len(names) > 1 and all(map(_independent, rests))


def _errors(errors: Array) -> Errors:
    return Errors(float(np.median(errors)), float(errors.max()))
