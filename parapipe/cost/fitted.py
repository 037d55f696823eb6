"""A small model of times, fitted to a profile: launch, products and bytes of each kind of operator.

For each processor and kind, t = overhead + macs / rate + bytes / bandwidth with coefficients that
are never negative, so that more work is never cheaper. A pool has no products: what its windows
read stands in their place, since on CPUs a pool takes as long as its windows, not its bytes.
Relative errors are minimised, and outliers count by their size only
(`least_squares.robust_nonnegative`).

Nothing takes less than the launch of an operator on its processor, one figure for all kinds: the
overhead of all operators that multiply nothing (of all, if there are too few), but at most the
shortest time that was measured. A kind's own overhead often comes out as zero, since its smallest
measured operators were large; without the launch, far smaller ones would be almost free.

Kinds, the finest that has enough measurements counting: a 3×3 convolution with and without strides
(without, it is computed by Winograd's algorithm) and each type that multiplies nothing; then the
operator class; then all products, or all moves. A product of matrices with more than one row is
taken for a 1×1 convolution, which is the same with a row per pixel; a fully connected layer, with
one row, reads each weight for a single product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from parapipe.cost.least_squares import Array, robust_nonnegative
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import Signature

_FEWEST = 4
"""Signatures that a kind needs for coefficients of its own, one more than there are of these.

With fewer it takes a wider kind's, all scaled by the median ratio of its measurements to that fit.
"""

ALL_PRODUCTS = "all products"
ALL_MOVES = "all moves"


@dataclass(frozen=True, slots=True)
class Span:
    """The work of the operators that a fit was made of, least and most of each.

    Parameters
    ----------
    steps
        Multiply-accumulates; for a pool, elements that its windows read.
    size_bytes
        Bytes read and written.
    """

    steps: tuple[int, int]
    size_bytes: tuple[int, int]

    def holds(self, steps: int, size_bytes: int) -> bool:
        """Tell whether an operator is neither smaller nor larger than all of these."""
        return (
            self.steps[0] <= steps <= self.steps[1]
            and self.size_bytes[0] <= size_bytes <= self.size_bytes[1]
        )


@dataclass(frozen=True, slots=True)
class KindFit:
    """What operators of one kind take on one processor.

    Parameters
    ----------
    overhead_s, per_step_s, per_byte_s
        Seconds per operator, per multiply-accumulate (for a pool: per element that its windows
        read) and per byte; at least one is positive.
    launch_s
        Seconds that no operator of the processor stays below.
    signatures
        Number of measurements behind it.
    span
        Their work; beyond it a time is extrapolated.
    mean_error, largest_error
        Relative errors over these measurements.
    """

    processor: str
    kind: str
    overhead_s: float
    per_step_s: float
    per_byte_s: float
    launch_s: float
    signatures: int
    span: Span
    mean_error: float = 0
    largest_error: float = 0

    def time_s(self, signature: Signature, macs: int, size_bytes: int) -> float:
        """Return the seconds of an operator that multiplies and moves so much."""
        return max(self.launch_s, self.work_s(steps_of(signature, macs), size_bytes))

    def work_s(self, steps: int, size_bytes: int) -> float:
        """Return what the fit alone says, whatever a launch takes."""
        return self.overhead_s + self.per_step_s * steps + self.per_byte_s * size_bytes

    def extrapolates(self, signature: Signature, macs: int, size_bytes: int) -> bool:
        """Tell whether the operator is smaller or larger than all that the fit was made of."""
        return not self.span.holds(steps_of(signature, macs), size_bytes)


@dataclass(frozen=True, slots=True)
class FittedModel:
    """Fits for all processors and kinds of operators in a profile.

    Parameters
    ----------
    profile
        Name of the profile.
    fits
        By processor and kind.
    """

    profile: str
    fits: Mapping[tuple[str, str], KindFit]

    def lookup(
        self, processor: str, signature: Signature, operator_class: str, macs: int
    ) -> KindFit | None:
        """Return the fit of the finest kind that has one, if any has."""
        for kind in kinds_of(signature, operator_class, macs):
            if (processor, kind) in self.fits:
                return self.fits[processor, kind]
        return None


def kinds_of(signature: Signature, operator_class: str, macs: int) -> tuple[str, ...]:
    """Return the kinds that an operator belongs to, finest first."""
    if not macs:
        return signature.type, operator_class, ALL_MOVES
    if operator_class in ("gemm", "matmul") and _rows(signature) > 1:
        return "conv1x1", ALL_PRODUCTS
    if operator_class != "conv3x3":
        return operator_class, ALL_PRODUCTS
    strided = set(signature.strides) - set("1x")
    return f"conv3x3 {'strided' if strided else 'plain'}", operator_class, ALL_PRODUCTS


def _rows(signature: Signature) -> int:
    return prod(map(int, signature.output.split("x")[:-1]))


def steps_of(signature: Signature, macs: int) -> int:
    """Return multiply-accumulates, or what a pool's windows read."""
    return macs or signature.window_reads


def fit_profile(profile: Profile) -> FittedModel:
    """Fit the model to a profile's measurements."""
    fits: dict[tuple[str, str], KindFit] = {}
    for processor in profile.processors:
        own = [m for m in profile.measurements if m.processor == processor]
        groups: dict[tuple[str, ...], list[Measurement]] = defaultdict(list)
        for m in own:
            kinds = kinds_of(m.signature, m.operator_class, m.macs)
            for i in range(len(kinds)):
                groups[kinds[i:]].append(m)
        launch_s = _launch_s(own)
        for (kind, *wider), group in sorted(groups.items(), key=lambda item: len(item[0])):
            found = next((fits[processor, w] for w in wider if (processor, w) in fits), None)
            if len(group) >= _FEWEST:
                fits[processor, kind] = _fit(processor, kind, group, launch_s)
            elif found:
                fits[processor, kind] = _scale(found, kind, group)
    return FittedModel(profile.name, dict(sorted(fits.items())))


def errors_table(model: FittedModel) -> Iterator[str]:
    """Yield lines that say, for each fit, its rates and its in-sample errors."""
    yield "processor kind            signatures overhead µs Gstep/s    GB/s mean error largest"
    for fit in model.fits.values():
        yield (
            f"{fit.processor:<9} {fit.kind:<18} {fit.signatures:>7} {fit.overhead_s * 1e6:>11.1f} "
            f"{_rate(fit.per_step_s):>7} {_rate(fit.per_byte_s):>7} "
            f"{fit.mean_error:>10.1%} {fit.largest_error:>7.0%}"
        )


def _rate(per_unit_s: float) -> str:
    return f"{1e-9 / per_unit_s:.2f}" if per_unit_s else "-"


def _launch_s(measured: Sequence[Measurement]) -> float:
    moves = [m for m in measured if not m.macs]
    wide = moves if len(moves) >= _FEWEST else measured
    return min(_coefficients(wide)[0], *(m.time_s for m in measured))


def _coefficients(group: Sequence[Measurement]) -> tuple[float, float, float]:
    """Return overhead, seconds per step and seconds per byte."""
    rows = [(1, steps_of(m.signature, m.macs), m.size_bytes) for m in group]
    overhead_s, per_step_s, per_byte_s = map(
        float, robust_nonnegative(np.array(rows, dtype=np.float64), _times(group))
    )
    return overhead_s, per_step_s, per_byte_s


def _fit(processor: str, kind: str, group: Sequence[Measurement], launch_s: float) -> KindFit:
    coefficients = _coefficients(group)
    fit = KindFit(processor, kind, *coefficients, launch_s, len(group), _span(group))
    return _with_errors(fit, group)


def _scale(wider: KindFit, kind: str, group: Sequence[Measurement]) -> KindFit:
    works = [wider.work_s(steps_of(m.signature, m.macs), m.size_bytes) for m in group]
    ratio = float(np.median(_times(group) / np.array(works)))
    scaled = replace(
        wider,
        kind=kind,
        overhead_s=wider.overhead_s * ratio,
        per_step_s=wider.per_step_s * ratio,
        per_byte_s=wider.per_byte_s * ratio,
        signatures=len(group),
        span=_span(group),
    )
    return _with_errors(scaled, group)


def _span(group: Sequence[Measurement]) -> Span:
    steps = [steps_of(m.signature, m.macs) for m in group]
    sizes = [m.size_bytes for m in group]
    return Span((min(steps), max(steps)), (min(sizes), max(sizes)))


def _with_errors(fit: KindFit, group: Sequence[Measurement]) -> KindFit:
    predicted = np.array([fit.time_s(m.signature, m.macs, m.size_bytes) for m in group])
    errors = np.abs(predicted / _times(group) - 1)
    return replace(fit, mean_error=float(errors.mean()), largest_error=float(errors.max()))


def _times(group: Sequence[Measurement]) -> Array:
    return np.array([m.time_s for m in group])
