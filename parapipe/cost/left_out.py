"""How far fitted times are off for networks that the fit knows nothing of.

Each network is left out in turn: the model is fitted to the rows of the others alone, times of
blocks shared out anew among them, and every block of the network left out is predicted as the sum
of its operators. Without rows there are no networks and blocks; then every tenth operator is left
out in turn, and each predicted by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from parapipe.cost.apportion import apportioned
from parapipe.cost.fitted import FittedModel, fit_profile
from parapipe.cost.measured_rows import (
    Row,
    as_measured,
    blocks_of,
    is_apportioned,
    profile_of_rows,
)
from parapipe.cost.profile import Measurement, Profile
from parapipe.files.yaml_file import Strict

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
        rows = as_measured(rows)
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
        shared = apportioned(profile, rows, processor)
        measurements += profile_of_rows(replace(profile, measurements=own), shared).measurements
    return Profile(profile.name, tuple(measurements), profile.path)


def leave_networks_out(profile: Profile, rows: Sequence[Row]) -> Iterator[Prediction]:
    """Yield a prediction for each block of each network and processor, as they were measured."""
    rows = as_measured(rows)
    works = {(m.signature, m.processor): m for m in profile.measurements if not m.then}
    for network in dict.fromkeys(row.network for row in rows):
        others = [row for row in rows if row.network != network]
        known = _from_blocks(profile_of_rows(profile, others), others)
        model = fit_profile(known)
        own = [row for row in rows if row.network == network]
        for processor in profile.processors:
            for block in blocks_of(own, processor).values():
                keys = [(row.signature, processor) for row in block]
                if works.keys() >= set(keys):
                    measured_s = sum(row.times_s[processor] for row in block)
                    members = [works[key] for key in keys]
                    yield _predicted(members, network, measured_s, model, known)


def leave_operators_out(profile: Profile) -> Iterator[Prediction]:
    """Yield a prediction for each measurement that a fit to the others can predict."""
    order = sorted(profile.measurements, key=lambda m: (m.processor, str(m.signature)))
    for fold in range(_FOLDS):
        rest = tuple(m for i, m in enumerate(order) if i % _FOLDS != fold)
        known = Profile(profile.name, rest)
        model = fit_profile(known)
        for m in order[fold::_FOLDS]:
            if _fitted_s(m, model) is not None:
                yield _predicted([m], f"{fold + 1}", m.time_s, model, known)


def _predicted(
    members: Sequence[Measurement],
    group: str,
    measured_s: float,
    model: FittedModel,
    known: Profile,
) -> Prediction:
    fitted = [_fitted_s(m, model) or 0.0 for m in members]
    seen = [known.lookup(m.signature, m.processor) for m in members]
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
    return tuple(_errors(name, [p for p in predictions if p.processor == name]) for name in names)


def _errors(processor: str, found: Sequence[Prediction]) -> ProcessorErrors:
    fitted = np.array([abs(p.fitted_s / p.measured_s - 1) for p in found])
    priced = [abs(p.priced_s / p.measured_s - 1) for p in found]
    group_of = np.array([p.group for p in found])
    return ProcessorErrors(
        processor=processor,
        predicted=len(found),
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
