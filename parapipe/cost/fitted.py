"""A model of times, fitted to a profile: a sum of amounts for each kind of operator.

For each processor and kind, t = overhead + macs / rate + bytes / bandwidth, and for products also a
share of columns, outputs and the like (`amounts.Amounts`), with coefficients that are never
negative, so that more work is never cheaper. A pool has no products: what its windows read stands
in their place, since on CPUs a pool takes as long as its windows, not its bytes. Relative errors
are minimised, and outliers count by their size only (`least_squares.robust_nonnegative`). Where
measured operators predict each other better than the sum does, the nearest correct it
(`neighbours`).

Nothing takes less than the launch of an operator on its processor, one figure for all kinds: the
overhead of all operators that multiply nothing (of all, if there are too few), but at most the
shortest time that was measured. A kind's own overhead often comes out as zero, since its smallest
measured operators were large; without the launch, far smaller ones would be almost free.

Kinds, the finest that has enough measurements counting: a 3×3 convolution with and without strides
(without, it is computed by Winograd's algorithm) and each type that multiplies nothing; then the
operator class; then all products, or all moves. A product of matrices with more than one row is
taken for a 1×1 convolution, which is the same with a row per pixel; a fully connected layer, with
one row, reads each weight for a single product. Data types are never mixed. Operators that were
measured at one go with the activation behind them count where a kind has too few without.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from parapipe.cost.least_squares import Array, Neighbours, neighbours_of, robust_nonnegative
from parapipe.cost.profile import COMPILED, UNPRICED, Measurement, Profile
from parapipe.cost.signature import BASIC, Amounts, Signature, amounts_of
from parapipe.platform.fields import Expression, largest, named_value, total

_Key = tuple[str, str, str]

_FEWEST = BASIC + 1
"""Signatures that a kind needs for coefficients of its own, one more than there are of these.

With fewer it takes a wider kind's, all scaled by the median ratio of its measurements to that fit.
"""

_FEWEST_SHAPED = 2 * len(Amounts._fields)
"""Signatures that a kind needs for all amounts to count, not only the basic ones."""

AMOUNTS = ("operators", "steps", "bytes", "columns", "outputs", "depth", "spilled")
"""What explanations call each of `Amounts`."""

ALL_PRODUCTS = "all products"
ALL_MOVES = "all moves"


@dataclass(frozen=True, slots=True)
class KindFit:
    """What operators of one kind take on one processor.

    Parameters
    ----------
    dtype
        Data type that they compute in.
    coefficients
        Seconds per unit of each of `Amounts`; at least one is positive.
    launch_s
        Seconds that no operator of the processor stays below.
    signatures
        Number of measurements behind it.
    steps, size_bytes
        Least and most of their work and of their bytes; beyond them a time is extrapolated.
    mean_error, largest_error
        Relative errors over these measurements.
    neighbours
        The measured operators themselves, where they make it better.
    lines
        Where the measurements behind it stand in the profile's file.
    """

    processor: str
    kind: str
    dtype: str
    coefficients: Amounts
    launch_s: float
    signatures: int
    steps: tuple[int, int]
    size_bytes: tuple[int, int]
    mean_error: float = 0
    largest_error: float = 0
    neighbours: Neighbours | None = field(default=None, repr=False, compare=False)
    lines: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def time(
        self,
        signature: Signature,
        macs: float,
        size_bytes: float,
        *,
        rates: str = "",
        measured: str = "",
        note: str = "",
    ) -> Expression:
        """Return the seconds of an operator that multiplies and moves so much.

        Parameters
        ----------
        rates, measured
            Files where the coefficients and the measurements stand.
        note
            What there is to say of the coefficients.
        """
        counted: Iterable[float] = amounts_of(signature, macs, size_bytes)
        near = None
        if self.neighbours is not None:
            near = self.neighbours.decide(np.array(counted), np.array(self.coefficients))
            counted = map(float, near.amounts)
        uncorrected = near is None or near.neighbour is None
        work = total(
            named_value(name, amount, note="" if uncorrected else "within reach of the neighbour")
            * named_value(f"s per {name}", coefficient, "s", file=rates, note=note)
            for name, amount, coefficient in zip(AMOUNTS, counted, self.coefficients, strict=True)
            if coefficient
        )
        if near is not None and near.neighbour is not None:
            reason = "what the fit is off at this measured operator, two thirds of its logarithm"
            line = self.lines[near.neighbour]
            work *= named_value("neighbour", near.ratio, file=measured, line=line, note=reason)
        least = named_value("launch", self.launch_s, "s", file=rates, note="no operator takes less")
        return largest(least, work)

    def extrapolates(self, signature: Signature, macs: int, size_bytes: int) -> bool:
        """Tell whether the operator is smaller or larger than all that the fit was made of."""
        (fewest, most), (smallest, biggest) = self.steps, self.size_bytes
        steps = steps_of(signature, macs)
        return not (fewest <= steps <= most and smallest <= size_bytes <= biggest)


@dataclass(frozen=True, slots=True)
class FittedModel:
    """Fits for all processors and kinds of operators in a profile.

    Parameters
    ----------
    fits
        By processor, data type and kind; each is made when it is asked for.
    """

    fits: Mapping[_Key, KindFit]

    def lookup(
        self, processor: str, signature: Signature, operator_class: str, macs: int
    ) -> KindFit | None:
        """Return the fit of the finest kind that has one for the data type, if any has."""
        kinds = kinds_of(signature, operator_class, macs)
        fits = (self.fits.get((processor, signature.dtype, kind)) for kind in kinds)
        return next((fit for fit in fits if fit), None)


def kinds_of(signature: Signature, operator_class: str, macs: int) -> tuple[str, ...]:
    """Return the kinds that an operator belongs to, finest first."""
    if not macs:
        return signature.type, operator_class, ALL_MOVES
    rows = prod(map(int, signature.output.split("x")[:-1]))
    if operator_class in ("gemm", "matmul") and rows > 1:
        return "conv1x1", ALL_PRODUCTS
    if operator_class != "conv3x3":
        return operator_class, ALL_PRODUCTS
    strided = set(signature.strides) - set("1x")
    return f"conv3x3 {'strided' if strided else 'plain'}", operator_class, ALL_PRODUCTS


def steps_of(signature: Signature, macs: int) -> int:
    """Return multiply-accumulates, or what a pool's windows read."""
    return macs or signature.window_reads


def fit_profile(profile: Profile) -> FittedModel:
    """Fit the model to a profile's measurements.

    Times that a compiler tells stand for their own operators only: an activation in a fused row, or
    a start that each unpriced row takes, says nothing of other shapes and types.
    """
    told = {COMPILED, UNPRICED}
    return FittedModel(_Fits(m for m in profile.measurements if m.method not in told))


@dataclass(frozen=True, slots=True)
class _Group:
    """Measurements of one kind; `wider` is the kind whose fit they only scale, if they do."""

    measured: Sequence[Measurement]
    wider: str | None


class _Fits(Mapping[_Key, KindFit]):
    """Fits by processor, data type and kind, ascending."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self._measured: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
        for m in measurements:
            self._measured[m.processor, m.signature.dtype].append(m)
        groups = {
            (*key, kind): group
            for key, measured in self._measured.items()
            for kind, group in _group_by_kind(measured).items()
        }
        self._groups = dict(sorted(groups.items(), key=lambda item: item[0]))
        self._launches_s: dict[tuple[str, str], float] = {}
        self._cached: dict[_Key, KindFit] = {}

    def __getitem__(self, key: _Key) -> KindFit:
        if key not in self._cached:
            group, (processor, dtype, kind) = self._groups[key], key
            if group.wider is not None:
                wider = self[processor, dtype, group.wider]
                self._cached[key] = _scaled_fit(wider, kind, group.measured)
            else:
                launch_s = self._launch_s(processor, dtype)
                self._cached[key] = _fit_kind(processor, kind, dtype, launch_s, group.measured)
        return self._cached[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def _launch_s(self, processor: str, dtype: str) -> float:
        key = processor, dtype
        if key not in self._launches_s:
            measured = self._measured[key]
            moves = [m for m in measured if not m.macs]
            wide = moves if len(moves) >= _FEWEST else measured
            overhead_s = _coefficients(wide, BASIC).operators
            self._launches_s[key] = min(overhead_s, *(m.time_s for m in measured))
        return self._launches_s[key]


def _group_by_kind(measured: Sequence[Measurement]) -> Mapping[str, _Group]:
    """Return what the fits of one processor and data type are made of, the widest kinds first."""
    kinds_with: dict[tuple[str, ...], list[Measurement]] = defaultdict(list)
    for m in measured:
        kinds = kinds_of(m.signature, m.operator_class, m.macs)
        for i in range(len(kinds)):
            kinds_with[kinds[i:]].append(m)
    groups: dict[str, _Group] = {}
    for (kind, *wider), every in sorted(kinds_with.items(), key=lambda item: len(item[0])):
        alone = [m for m in every if not m.then]
        group = alone if len(alone) >= _FEWEST else every
        wider_kind = next((w for w in wider if w in groups), None)
        if len(group) >= _FEWEST:
            groups[kind] = _Group(group, None)
        elif wider_kind:
            groups[kind] = _Group(group, wider_kind)
    return groups


def _coefficients(group: Sequence[Measurement], count: int) -> Amounts:
    """Return seconds per unit of the first amounts; the others are not used."""
    coefficients = map(float, robust_nonnegative(_amounts(group)[:, :count], _times_s(group)))
    return Amounts(*coefficients, *[0.0] * (len(Amounts._fields) - count))


def _fit_kind(
    processor: str, kind: str, dtype: str, launch_s: float, group: Sequence[Measurement]
) -> KindFit:
    count = len(Amounts._fields) if len(group) >= _FEWEST_SHAPED else BASIC
    coefficients = _coefficients(group, count)
    near = neighbours_of(_amounts(group), _times_s(group), np.array(coefficients))
    fit = KindFit(processor, kind, dtype, coefficients, launch_s, neighbours=near, **_ranges(group))
    return _with_errors(fit, group)


def _scaled_fit(wider: KindFit, kind: str, group: Sequence[Measurement]) -> KindFit:
    work_s = _amounts(group) @ np.array(wider.coefficients)
    ratio = float(np.median(_times_s(group) / work_s))
    scaled = Amounts(*(c * ratio for c in wider.coefficients))
    fit = replace(wider, kind=kind, coefficients=scaled, neighbours=None, **_ranges(group))
    return _with_errors(fit, group)


def _ranges(group: Sequence[Measurement]) -> dict[str, Any]:
    """Return what a fit says of the measurements behind it."""
    steps = [steps_of(m.signature, m.macs) for m in group]
    sizes = [m.size_bytes for m in group]
    return {
        "signatures": len(group),
        "steps": (min(steps), max(steps)),
        "size_bytes": (min(sizes), max(sizes)),
        "lines": tuple(m.line for m in group),
    }


def _with_errors(fit: KindFit, group: Sequence[Measurement]) -> KindFit:
    amounts, coefficients = _amounts(group), np.array(fit.coefficients)
    near = fit.neighbours
    work_s = near.times_s(amounts, coefficients) if near else amounts @ coefficients
    errors = np.abs(np.maximum(work_s, fit.launch_s) / _times_s(group) - 1)
    return replace(fit, mean_error=float(errors.mean()), largest_error=float(errors.max()))


def _amounts(group: Sequence[Measurement]) -> Array:
    return np.array([amounts_of(m.signature, m.macs, m.size_bytes) for m in group], dtype=float)


def _times_s(group: Sequence[Measurement]) -> Array:
    return np.array([m.time_s for m in group])
