"""Coefficients of equation (8) of Para-Pipe, P = αV²f·U + βV, fitted to samples of power.

A sample is the power of a board while one of its processors works at a known voltage and frequency,
and of the same board at rest; the difference is what the equation stands for. α and β are never
negative and the relative errors are least, outliers bearable (`least_squares.robust_nonnegative`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from parapipe.cost.least_squares import Array, robust_nonnegative
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table

_NOUN = "table of power samples"
_FEWEST_LEFT = 2  # α and β


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
    records = read_table(Path(path), _KIND)
    if not records:
        raise CostError(f"{_NOUN} '{path}' holds no sample; add a line for each measurement")
    return tuple(sample for _, sample in records)


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
    if not cells.text("utilisation", empty=True):
        return 1.0
    share = cells.number("utilisation")
    if share > 1:
        cells.mistakes.append(f"utilisation is {share:g} but must be at most 1")
    return share


_KIND = TableKind(
    _NOUN,
    ("processor", "frequency_hz", "voltage_v", "power_w", "idle_power_w"),
    ("utilisation", "network"),
    _sample,
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
    wrong = [f"'{name}' {reason}" for name, group in groups.items() if (reason := _unfit(group))]
    if wrong:
        raise CostError(f"power cannot be fitted: processor {'; processor '.join(wrong)}")
    return tuple(_fit(name, group) for name, group in groups.items())


def _unfit(group: Sequence[PowerSample]) -> str:
    low = [s for s in group if s.power_w <= s.idle_power_w]
    if low:
        first = low[0]
        return (
            f"has {len(low)} samples not above idle, one of {first.power_w:g} W with "
            f"{first.idle_power_w:g} W at rest; correct or leave them out"
        )
    if not _independent(group):
        return (
            "has samples that do not tell static from dynamic power; add some at another voltage "
            "or frequency"
        )
    return ""


def _independent(group: Sequence[PowerSample]) -> bool:
    design = _design(group)
    scale = np.linalg.norm(design, axis=0)
    return bool((scale > 0).all()) and np.linalg.matrix_rank(design / scale, tol=1e-6) == 2


def _design(group: Sequence[PowerSample]) -> Array:
    return np.array([[s.voltage_v**2 * s.frequency_hz * s.utilisation, s.voltage_v] for s in group])


def _above_idle(group: Sequence[PowerSample]) -> Array:
    return np.array([s.power_w - s.idle_power_w for s in group])


def _fit(processor: str, group: Sequence[PowerSample]) -> PowerFit:
    alpha, beta = map(float, robust_nonnegative(_design(group), _above_idle(group)))
    left_out, errors = _leave_out(group)
    return PowerFit(
        processor=processor,
        alpha_w_per_v2_hz=alpha,
        beta_w_per_v=beta,
        samples=len(group),
        operating_points=len({_point(s) for s in group}),
        errors=_errors(_relative(np.array([alpha, beta]), group)) if _is_tested(group) else None,
        left_out=left_out,
        left_out_errors=_errors(np.concatenate(errors)) if errors else None,
    )


def _is_tested(group: Sequence[PowerSample]) -> bool:
    """Tell whether there are more samples than coefficients, repeated ones counted once."""
    return len({(_point(s), s.utilisation) for s in group}) > _FEWEST_LEFT


def _point(sample: PowerSample) -> Hashable:
    return sample.frequency_hz, sample.voltage_v


def _leave_out(group: Sequence[PowerSample]) -> tuple[str, list[Array]]:
    """Return what can be left out in turn, and the errors of what was."""
    by_network = _grouped({i: s.network for i, s in enumerate(group)})
    by_point = _grouped({i: _point(s) for i, s in enumerate(group)})
    for what, parts in (("network", by_network), ("operating point", by_point)):
        rests = [[s for i, s in enumerate(group) if i not in part] for part in parts]
        if len(parts) > 1 and all(len(r) >= _FEWEST_LEFT and _independent(r) for r in rests):
            return what, [
                _relative(
                    robust_nonnegative(_design(rest), _above_idle(rest)), [group[i] for i in part]
                )
                for rest, part in zip(rests, parts, strict=True)
            ]
    return "", []


def _grouped(keys: Mapping[int, Hashable]) -> list[list[int]]:
    parts: dict[Hashable, list[int]] = defaultdict(list)
    for i, key in keys.items():
        parts[key].append(i)
    return list(parts.values())


def _relative(coefficients: Array, group: Sequence[PowerSample]) -> Array:
    measured = _above_idle(group)
    return np.abs(_design(group) @ coefficients - measured) / measured


def _errors(errors: Array) -> Errors:
    return Errors(float(np.median(errors)), float(errors.max()))
