"""How far a fit is off for networks left out of it, and times of operators out of blocks.

On a GPU kernels are enqueued and waited for at the end of a block. One sum of amounts is fitted to
the blocks' times, all kinds of operators at once; each block's time is then shared out over its
operators in proportion. Rows of one signature come to agree, since each takes the (lower) median of
its rows as the weight of the next round.

Blocks do not tell what an activation behind a convolution takes: they are met as well if it takes
nothing. So every operator takes at least the launch, and every move at least the seconds per byte,
of the quickest processor of the profile whose operators have clocks of their own: it is a CPU that
enqueues kernels, and all share one memory.

Each network is left out in turn: the model is fitted to the rows of the others alone, times of
blocks shared out anew among them, and every block of the network left out is predicted as the sum
of its operators. Without rows there are no networks and blocks; then every tenth operator is left
out in turn, and each predicted by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from parapipe.cost.fitted import FittedModel, fit_profile
from parapipe.cost.least_squares import robust_nonnegative
from parapipe.cost.measured_rows import (
    Row,
    blocks_of,
    is_apportioned,
    profile_of_rows,
    without_factors,
)
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import BASIC, Amounts, Signature, amounts_of
from parapipe.files.yaml_file import Strict

_ROUNDS = 3
_LEAST_SHARE = 1e-3  # of a block's mean: nothing but a view takes no time at all

Weights = Mapping[Signature, float]


def with_apportioned_times(
    profile: Profile, rows: Sequence[Row], processor: str
) -> tuple[Row, ...]:
    """Return the rows with the processor's times shared out anew, blocks' sums kept.

    Parameters
    ----------
    profile
        Says the work of each signature.
    """
    blocks = blocks_of(rows, processor)
    work = {m.signature: m for m in profile.measurements if m.processor == processor}
    blocks = {key: [r for r in block if r.signature in work] for key, block in blocks.items()}
    totals = {key: sum(r.times_s[processor] for r in block) for key, block in blocks.items()}
    weights = _fitted_weights(blocks, totals, work, _least_of_moves(profile))
    for _ in range(_ROUNDS):
        shares: dict[Signature, list[float]] = defaultdict(list)
        for key, block in blocks.items():
            for row, time_s in zip(block, _share_out(block, totals[key], weights), strict=True):
                shares[row.signature].append(time_s)
        weights = {signature: median_low(times) for signature, times in shares.items()}
    return tuple(
        replace(row, times_s={**row.times_s, processor: time_s})
        for key, block in blocks.items()
        for row, time_s in zip(block, _share_out(block, totals[key], weights), strict=True)
    )


def _share_out(block: Sequence[Row], total_s: float, weights: Weights) -> list[float]:
    parts = np.array([weights[row.signature] for row in block])
    views = np.array([row.signature.type == "Reshape" for row in block])
    if not views.all():
        parts = np.where(views, 0.0, np.maximum(parts, _LEAST_SHARE * parts.mean()))
    return [float(part) for part in total_s * parts / parts.sum()]


def _least_of_moves(profile: Profile) -> tuple[float, float]:
    """Return the least launch and the least seconds per byte of moves among timed processors."""
    rates = []
    moving = [m for m in profile.measurements if not m.macs and m.operator_class != "view"]
    for processor in profile.processors:
        moves = [m for m in moving if m.processor == processor]
        if len(moves) > BASIC and not is_apportioned(profile, processor):
            amounts = [amounts_of(m.signature, m.macs, m.size_bytes)[:BASIC] for m in moves]
            times = np.array([m.time_s for m in moves])
            rates.append(robust_nonnegative(np.array(amounts, dtype=float), times))
    if not rates:
        return 0.0, 0.0
    launch_s, _, per_byte_s = np.min(rates, axis=0)
    return float(launch_s), float(per_byte_s)


def _fitted_weights(
    blocks: Mapping[tuple[str, int], Sequence[Row]],
    totals: Mapping[tuple[str, int], float],
    work: Mapping[Signature, Measurement],
    least: tuple[float, float],
) -> Weights:
    launch_s, per_byte_s = least
    terms = {signature: _terms_of(m) for signature, m in work.items()}
    floor = {
        signature: launch_s + (0 if m.macs else m.size_bytes * per_byte_s)
        if terms[signature]
        else 0.0
        for signature, m in work.items()
    }
    names = list(dict.fromkeys(name for terms_of in terms.values() for name in terms_of))
    column = {name: i for i, name in enumerate(names)}
    design = np.zeros((len(blocks), len(names)))
    for line, block in enumerate(blocks.values()):
        for row in block:
            for name, amount in terms[row.signature].items():
                design[line, column[name]] += amount
    offset = np.array([sum(floor[row.signature] for row in block) for block in blocks.values()])
    terms_of = robust_nonnegative(design, np.array([totals[key] for key in blocks]), offset)
    return {
        signature: floor[signature]
        + float(sum(terms_of[column[name]] * amount for name, amount in amounts.items()))
        for signature, amounts in terms.items()
    }


def _terms_of(m: Measurement) -> dict[str, float]:
    """Return what an operator adds to the amounts of its block, by kind and name.

    Moves share one rate: activations stand behind convolutions in nearly every block, so that their
    own rates cannot be told.
    """
    amounts = amounts_of(m.signature, m.macs, m.size_bytes)
    if m.operator_class == "view":
        return {}
    if m.macs:
        return _product_terms(m, amounts)
    if m.operator_class == "pool":
        return {"operators": 1.0, "pool steps": amounts.steps, "move bytes": amounts.size_bytes}
    own = m.signature.type == "LRN"
    return {"operators": 1.0, "LRN bytes" if own else "move bytes": amounts.size_bytes}


def _product_terms(m: Measurement, amounts: Amounts) -> dict[str, float]:
    kind = m.operator_class
    if kind in ("gemm", "depthwise"):
        return {"operators": 1.0, f"{kind} bytes": amounts.size_bytes}
    strided = kind == "conv3x3" and set(m.signature.strides) - set("1x")
    kind = f"{kind} strided" if strided else kind
    weights = max(0.0, amounts.steps / amounts.outputs) * amounts.steps / amounts.columns
    return {
        "operators": 1.0,
        f"{kind} steps": amounts.steps,
        f"{kind} columns": amounts.columns,
        f"{kind} outputs": amounts.outputs,
        f"{kind} depth": amounts.depth,
        f"{kind} spilled": amounts.spilled,
        "weights": weights,
    }


_FOLDS = 10
DIGITS = 6
Error = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One thing that was left out.

    Parameters
    ----------
    group
        The network, or the number of the tenth, that was left out.
    measured_s, fitted_s
        Seconds, and what the fit says.
    priced_s
        What a cost table would say: operators that another network has too as measured there.
    """

    processor: str
    group: str
    measured_s: float
    fitted_s: float
    priced_s: float


def fit_rows(profile: Profile, rows: Sequence[Row]) -> FittedModel:
    """Fit the model to a profile; where only blocks were timed, to the blocks' times.

    To times as they were measured: what scales networks to another state of the board says nothing
    of single operators (profiles/SOURCES.md has the errors with it, and without).
    """
    if any(row.factors for row in rows):
        rows = without_factors(rows)
        profile = profile_of_rows(profile, rows)
    return fit_profile(_from_blocks(profile, rows))


def _from_blocks(profile: Profile, rows: Sequence[Row]) -> Profile:
    """Return the profile, times that were shared out by block shared out by the model's amounts."""
    of_blocks = [p for p in profile.processors if is_apportioned(profile, p)]
    if not (rows and of_blocks):
        return profile
    measurements = [m for m in profile.measurements if m.processor not in of_blocks]
    for processor in of_blocks:
        own = tuple(m for m in profile.measurements if m.processor == processor)
        shared = with_apportioned_times(profile, rows, processor)
        measurements += profile_of_rows(replace(profile, measurements=own), shared).measurements
    return Profile(profile.name, tuple(measurements), profile.path)


def leave_networks_out(profile: Profile, rows: Sequence[Row]) -> Iterator[Prediction]:
    """Yield a prediction for each block of each network and processor, as they were measured."""
    rows = without_factors(rows)
    measurement_of = {(m.signature, m.processor): m for m in profile.measurements if not m.then}
    for network in dict.fromkeys(row.network for row in rows):
        others = [row for row in rows if row.network != network]
        rest = _from_blocks(profile_of_rows(profile, others), others)
        model = fit_profile(rest)
        of_network = [row for row in rows if row.network == network]
        for processor in profile.processors:
            for block in blocks_of(of_network, processor).values():
                keys = [(row.signature, processor) for row in block]
                if measurement_of.keys() >= set(keys):
                    measured_s = sum(row.times_s[processor] for row in block)
                    members = [measurement_of[key] for key in keys]
                    yield _predict(members, network, measured_s, model, rest)


def leave_operators_out(profile: Profile) -> Iterator[Prediction]:
    """Yield a prediction for each measurement that a fit to the others can predict."""
    order = sorted(profile.measurements, key=lambda m: (m.processor, str(m.signature)))
    for fold in range(_FOLDS):
        rest = tuple(m for i, m in enumerate(order) if i % _FOLDS != fold)
        fitted_to = Profile(profile.name, rest)
        model = fit_profile(fitted_to)
        for m in order[fold::_FOLDS]:
            if _fitted_s(m, model) is not None:
                yield _predict([m], f"{fold + 1}", m.time_s, model, fitted_to)


def _predict(
    members: Sequence[Measurement], group: str, measured_s: float, model: FittedModel, rest: Profile
) -> Prediction:
    fitted = [_fitted_s(m, model) or 0.0 for m in members]
    seen = [rest.lookup(m.signature, m.processor) for m in members]
    priced = [m.time_s if m else fit for m, fit in zip(seen, fitted, strict=True)]
    return Prediction(members[0].processor, group, measured_s, sum(fitted), sum(priced))


def _fitted_s(m: Measurement, model: FittedModel) -> float | None:
    """Return what a cost table takes if it was not measured: nothing for a view."""
    if m.operator_class == "view":
        return 0.0
    fit = model.lookup(m.processor, m.signature, m.operator_class, m.macs)
    return fit.time(m.signature, m.macs, m.size_bytes).value if fit else None


class ProcessorErrors(Strict):
    """Relative errors of times on one processor, each predicted by a fit to what was not left out.

    Parameters
    ----------
    predicted
        How many times were predicted: of blocks if networks are left out, else of operators.
    median, mean, largest
        Of fitted times.
    priced_median
        Median where operators that another network has too count as measured there.
    groups
        Median by what was left out together.
    """

    processor: str
    predicted: int
    median: Error
    mean: Error
    largest: Error
    priced_median: Error
    groups: dict[str, Error]


def errors_of(predictions: Sequence[Prediction]) -> tuple[ProcessorErrors, ...]:
    """Return the errors of each processor, in order of appearance."""
    names = dict.fromkeys(p.processor for p in predictions)
    return tuple(
        _errors_on(name, [p for p in predictions if p.processor == name]) for name in names
    )


def _errors_on(processor: str, predictions: Sequence[Prediction]) -> ProcessorErrors:
    fitted = np.array([abs(p.fitted_s / p.measured_s - 1) for p in predictions])
    priced = [abs(p.priced_s / p.measured_s - 1) for p in predictions]
    group_of = np.array([p.group for p in predictions])
    return ProcessorErrors(
        processor=processor,
        predicted=len(predictions),
        median=_rounded(np.median(fitted)),
        mean=_rounded(fitted.mean()),
        largest=_rounded(fitted.max()),
        priced_median=_rounded(np.median(priced)),
        groups={
            str(name): _rounded(np.median(fitted[group_of == name])) for name in np.unique(group_of)
        },
    )


def _rounded(share: np.floating[Any]) -> float:
    return round(float(share), DIGITS)
