"""Fits rates of operator classes to what Rockchip's compiler tells of convolutions and products.

    python -m tools.calibrate_rknn_classes  # fits, and writes the table of docs/compiler-costs.md

What it tells stands in `rknn_operators.csv`, so the fit needs no compiler. A row of the compiler's
table takes its cycles × the chip's factor, which was fitted to published rates (`calibrate_rknn`).
The nominal time of its convolution or product is launch + max(MACs / (compute · peak), bytes /
(bandwidth · the memory's)), see `parapipe/cost/clock.py`. The sum of the squared logarithms of the
ratios of both is made least for each class, over a grid that is refined. No class is faster than
the data sheet's peak, nor moves more than the memory gives. The rates go into
`platforms/catalogue/npus.yaml` by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from parapipe.files.atomic import write_atomically
from parapipe.platform.catalogue import catalogue
from parapipe.platform.processor import Processor
from parapipe.profiling.compiled_times import fit_of
from tools.calibrate_rknn import PAGE, TARGETS, platform_of
from tools.rknn_operators import CompiledOperator, read_operators

BEGIN = "<!-- begin: tools.calibrate_rknn_classes -->\n"
END = "<!-- end: tools.calibrate_rknn_classes -->\n"
CLASSES = ("conv1x1", "conv3x3", "conv-other", "depthwise", "gemm", "matmul")
INPUT_CHANNELS = 32
"""Channels that the array takes at once: a first convolution takes as long with 3 as with 32."""

Array: TypeAlias = npt.NDArray[np.float64]
_STEPS = 41
_REFINEMENTS = 4
_LEAST = 0.02


class Rates(NamedTuple):
    """Rates over those of the peak and of the memory."""

    compute: float
    bandwidth: float


class Errors(NamedTuple):
    """Relative errors: of each row without its sign, and of the sum of all, if there are any."""

    rows: tuple[float, ...]
    sum: float | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the compiler's table, with an axis for them.

    Parameters
    ----------
    compute_s, memory_s
        Seconds of the multiply-accumulates at the peak, and of the bytes at the memory's bandwidth.
    time_s
        By the compiler.
    count
        How many such rows there are.
    launch_s
        Seconds that each takes on top.
    """

    compute_s: Array
    memory_s: Array
    time_s: Array
    count: npt.NDArray[np.int64]
    launch_s: float

    def ratios(self, compute: Array | float, bandwidth: Array | float) -> Array:
        """Return the nominal time over the compiler's, with rates along leading axes."""
        bound_s = np.maximum(self.compute_s / compute, self.memory_s / bandwidth)
        return np.asarray((self.launch_s + bound_s) / self.time_s)

    def errors(self, rates: Rates) -> Errors:
        """Return how far nominal times are off, as shares of the compiler's."""
        if not self.count.size:
            return Errors((), None)
        ratios = self.ratios(*rates)
        time_s = self.count * self.time_s
        rows = map(float, np.repeat(np.abs(ratios - 1), self.count))
        return Errors(tuple(rows), float(ratios @ time_s / time_s.sum() - 1))


@dataclass(frozen=True, slots=True)
class ClassFit:
    """What was fitted for a class, and the errors of its rows without and with it."""

    rates: Rates
    before: Errors
    after: Errors


def rows_of(
    operators: Sequence[CompiledOperator], processor: Processor, channels: int = INPUT_CHANNELS
) -> Rows:
    """Return what the fit needs of rows of the table.

    Parameters
    ----------
    channels
        Input channels are counted in multiples of it.

    Raises
    ------
    PlatformError
        If the platform does not say how cycles become seconds.
    """
    fit = fit_of(processor, processor.name)
    macs = [
        each.macs * (-(-each.input_channels // channels) * channels / each.input_channels)
        if each.input_channels
        else each.macs
        for each in operators
    ]
    moved = np.array([each.size_bytes for each in operators])
    cycles = np.array([each.cycles for each in operators])
    return Rows(
        np.array(macs) / processor.peak.macs_per_s["int8"],
        moved / processor.memory.bandwidth_bytes_per_s,
        cycles * fit.cycle_factor / processor.clock.default_frequency_hz,
        np.array([each.count for each in operators], dtype=np.int64),
        processor.launch.overhead_s,
    )


def fit_rates(rows: Rows, most: float, prior: Rates | None = None) -> Rates:
    """Return the rates with the least sum of squared logarithms.

    Parameters
    ----------
    most
        Largest ratio of compute rates, that of the data sheet's peak.
    prior
        Rates that are taken to fit one more row each; none if left out.
    """
    lowest = float(np.log(_LEAST))
    bounds = [(lowest, float(np.log(most))), (lowest, 0.0)]
    for _ in range(_REFINEMENTS):
        axes = [np.linspace(*each, _STEPS) for each in bounds]
        compute, bandwidth = np.meshgrid(*axes, indexing="ij")
        ratios = rows.ratios(np.exp(compute)[..., None], np.exp(bandwidth)[..., None])
        loss = np.log(ratios) ** 2 @ rows.count
        if prior:
            loss += (compute - np.log(prior.compute)) ** 2
            loss += (bandwidth - np.log(prior.bandwidth)) ** 2
        at = divmod(int(np.argmin(loss)), _STEPS)
        bounds = [
            (float(axis[max(i - 2, 0)]), float(axis[min(i + 2, _STEPS - 1)]))
            for axis, i in zip(axes, at, strict=True)
        ]
    return Rates(*(float(np.exp(axis[i])) for axis, i in zip(axes, at, strict=True)))


def fits_of(operators: Sequence[CompiledOperator], target: str) -> dict[str, ClassFit]:
    """Return the fit of each class on a chip.

    The rates of all but depthwise ones together are taken to fit one more row of each class, so
    that a class that has no rows has these, and one whose rows are all bound by the memory their
    compute rate. Depthwise ones use the array in another way, and have rows enough.
    """
    processor = next(each for each in platform_of(target).processors if each.compiler)
    part = catalogue().parts[f"{target.upper()}-NPU"]
    assert part.achieved
    most = 1 / part.achieved.share
    rows = {name: [each for each in operators if each.operator_class == name] for name in CLASSES}
    together = [each for each in operators if each.operator_class != "depthwise"]
    common = fit_rates(rows_of(together, processor), most)
    fits = {}
    for name, some in rows.items():
        counted = rows_of(some, processor)
        fitted = fit_rates(counted, most, None if name == "depthwise" else common)
        rates = Rates(*(float(f"{each:.3g}") for each in fitted))
        before = rows_of(some, processor, 1).errors(Rates(1.0, 1.0))
        fits[name] = ClassFit(rates, before, counted.errors(rates))
    return fits


def table(fits: Mapping[str, Mapping[str, ClassFit]]) -> str:
    """Return the table of the page."""
    head = "| chip | operator class | rows | compute | bandwidth | one rate: median | sum "
    lines = [f"{head}| by class: median | sum |", "|---" * 9 + "|"]
    for target, classes in fits.items():
        for name, each in classes.items():
            errors = " | ".join(
                "– | –" if some.sum is None else f"{median(some.rows):.0%} | {some.sum:+.0%}"
                for some in (each.before, each.after)
            )
            rates = " | ".join(f"{rate:g}" for rate in each.rates)
            lines.append(f"| {target} | {name} | {len(each.after.rows)} | {rates} | {errors} |")
    return "\n".join(lines) + "\n"


def section(classes: Mapping[str, ClassFit]) -> str:
    """Return the rates as they stand in the catalogue."""
    lines = ["    rates:\n"]
    for field in Rates._fields:
        rates = ", ".join(
            f"{name}: {getattr(each.rates, field):g}" for name, each in classes.items()
        )
        lines.append(f"      {field}:\n        {{{rates}, default: 1}}\n")
    return "".join(lines)


def main() -> int:
    """Fit, write the page's table, and print the sections of the catalogue."""
    operators = read_operators()
    fits = {target: fits_of(operators[target], target) for target in TARGETS}
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    text = f"{before}{BEGIN}\n{table(fits)}\n{END}{after}"
    write_atomically(PAGE, text.encode())
    for target, classes in fits.items():
        sys.stdout.write(f"{target}\n{section(classes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
