"""The figures in which two fronts are compared, each in a unit that is the same for both.

A pattern of several models has as many frames, and takes as long, as the asked rates give: its
figures are those of each model, and of a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

from parapipe.documents.figure_table import COMPARED, Compared
from parapipe.documents.front_records import GrowthRow, SeveralRow
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.search.option_types import Objectives

OBJECTIVES = {word for some in get_args(Objectives) for word in some.split("-")}
"""Figures that a front may trade; others are compared in any case."""
PER_MODEL = ("latency", "throughput")
"""Figures of several models that are compared for each model."""
OTHER_MODELS = "one front is of several models, and the other one of a single model"
OLDER = "an older version, which did not state it, wrote one of the fronts"
NO_MODEL = "the fronts have no model in common"
OTHER_SHARES = "the models' shares of all frames are not the same, so a frame is not"

_Getter = Callable[[ConfigurationRow], float]


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A figure of configurations in both fronts; it is to be small.

    Parameters
    ----------
    model
        That of several models which it is of; None if it is of all.
    old, new
        Return it of a configuration of either front, in seconds, joules per frame or bytes; of
        throughput, the seconds between frames.
    """

    figure: Compared
    model: str | None
    old: _Getter
    new: _Getter


def compared_figures(
    before: FrontDocument, after: FrontDocument
) -> tuple[list[ComparedFigure], dict[Compared, str]]:
    """Return the figures in which fronts are compared, and why some cannot be.

    Of those that a front may trade, these are the objectives of both fronts.
    """
    objectives = set(before.options.objectives).intersection(after.options.objectives)
    compared: list[ComparedFigure] = []
    reasons: dict[Compared, str] = {}
    for figure in COMPARED:
        if figure in OBJECTIVES and figure not in objectives:
            continue
        if reason := _refusal(figure, before, after):
            reasons[figure] = reason
            continue
        for model in _models_of(figure, before.several, after.several):
            old, new = (_getter(figure, model, each.several) for each in (before, after))
            compared.append(ComparedFigure(figure, model, old, new))
    return compared, reasons


def latencies_s(row: ConfigurationRow) -> dict[str, float]:
    """Return the latency of each of several models in seconds; of one, nothing."""
    models = row.several.models if row.several else {}
    return {name: each.latency_s for name, each in models.items()}


def frames_per_second(row: ConfigurationRow, front: FrontDocument) -> float:
    """Return the throughput; of several models the frames of all, as far as rates can grow."""
    if not (row.several and front.several):
        return row.throughput_fps
    return _rate_factor(row.several) * _count_frames(front.several) / front.several.period_s


def energy_of_a_frame_j(row: ConfigurationRow, front: FrontDocument) -> float:
    """Return the joules per frame; of several models the mean over the frames of a pattern."""
    return row.energy_j / _count_frames(front.several) if front.several else row.energy_j


def _refusal(figure: Compared, before: FrontDocument, after: FrontDocument) -> str:
    """Say why a figure cannot be compared; nothing if it can."""
    rows = (*before.configurations, *after.configurations)
    if any(getattr(row, COMPARED[figure].compared) is None for row in rows):
        return OLDER
    if not (before.several and after.several):
        return OTHER_MODELS if before.several or after.several else ""
    old, new = ({m.name: m.frames for m in each.models} for each in (before.several, after.several))
    if figure in PER_MODEL:
        return "" if set(old) & set(new) else NO_MODEL
    one, other = (
        {name: Fraction(frames, sum(side.values())) for name, frames in side.items()}
        for side in (old, new)
    )
    return OTHER_SHARES if figure == "energy" and one != other else ""


def _models_of(
    figure: Compared, before: SeveralRow | None, after: SeveralRow | None
) -> list[str | None]:
    """Return the models of both fronts that a figure is compared of; None for all together."""
    if not (before and after and figure in PER_MODEL):
        return [None]
    names = {each.name for each in after.models}
    return [each.name for each in before.models if each.name in names]


def _getter(figure: Compared, model: str | None, several: SeveralRow | None) -> _Getter:
    """Return what gives a figure of a configuration; of several models, as far as rates grow."""
    if several and figure == "energy":
        return lambda row: row.energy_j / _count_frames(several)
    if several and model and figure == "latency":
        return lambda row: _growth_row(row).models[model].latency_s
    if several and model:
        (fps,) = (each.pattern_fps for each in several.models if each.name == model)
        return lambda row: 1 / (fps * _rate_factor(_growth_row(row)))
    return lambda row: float(getattr(row, COMPARED[figure].compared))


def _growth_row(row: ConfigurationRow) -> GrowthRow:
    assert row.several is not None
    return row.several


def _rate_factor(growth: GrowthRow) -> float:
    """Return by how much all rates can grow, contention included where it is known."""
    return min(growth.rate_factor, growth.contended_rate_factor or growth.rate_factor)


def _count_frames(several: SeveralRow) -> int:
    return sum(each.frames for each in several.models)
