"""The figures in which two fronts are compared, each in a unit that is the same for both.

A pattern of several models has as many frames, and takes as long, as the asked rates give: its
figures are those of each model, and of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

from parapipe.documents.figure_table import COMPARED, Compared
from parapipe.documents.front_records import GrowthRow, SeveralRow
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.search.options import Objectives

OBJECTIVES = {word for some in get_args(Objectives) for word in some.split("-")}
"""Figures that a front may trade; others are compared in any case."""
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
    figures = [each for each in COMPARED if each in objectives or each not in OBJECTIVES]
    rows = (*before.configurations, *after.configurations)
    compared: list[ComparedFigure] = []
    reasons: dict[Compared, str] = {}
    for figure in figures:
        fields = (getattr(row, COMPARED[figure].compared) for row in rows)
        if any(each is None for each in fields):
            reason = OLDER
        elif before.several and after.several:
            reason = _refusal(figure, before.several, after.several)
            compared += () if reason else _figures_of_models(figure, before.several, after.several)
        else:
            reason = OTHER_MODELS if before.several or after.several else ""
            getter = _field_getter(figure)
            compared += () if reason else [ComparedFigure(figure, None, getter, getter)]
        if reason:
            reasons[figure] = reason
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


def _refusal(figure: Compared, before: SeveralRow, after: SeveralRow) -> str:
    """Say why a figure of several models cannot be compared; nothing if it can."""
    old, new = ({each.name: each.frames for each in side.models} for side in (before, after))
    if figure in ("latency", "throughput"):
        return "" if set(old) & set(new) else NO_MODEL
    one, other = (
        {name: Fraction(frames, sum(side.values())) for name, frames in side.items()}
        for side in (old, new)
    )
    return OTHER_SHARES if figure == "energy" and one != other else ""


def _figures_of_models(
    figure: Compared, before: SeveralRow, after: SeveralRow
) -> Iterator[ComparedFigure]:
    per_model = {"latency": _latency_getter, "throughput": _period_getter}
    if figure == "energy":
        energies = _frame_energy_getter(before), _frame_energy_getter(after)
        yield ComparedFigure(figure, None, *energies)
    elif figure not in per_model:
        yield ComparedFigure(figure, None, _field_getter(figure), _field_getter(figure))
    else:
        getter = per_model[figure]
        names = {each.name for each in after.models}
        for name in (each.name for each in before.models if each.name in names):
            yield ComparedFigure(figure, name, getter(before, name), getter(after, name))


def _field_getter(figure: Compared) -> _Getter:
    return lambda row: float(getattr(row, COMPARED[figure].compared))


def _frame_energy_getter(several: SeveralRow) -> _Getter:
    return lambda row: row.energy_j / _count_frames(several)


def _latency_getter(_: SeveralRow, model: str) -> _Getter:
    return lambda row: _growth_row(row).models[model].latency_s


def _period_getter(several: SeveralRow, model: str) -> _Getter:
    """Return what gives the seconds between frames of a model, as far as rates can grow."""
    (fps,) = (each.pattern_fps for each in several.models if each.name == model)
    return lambda row: 1 / (fps * _rate_factor(_growth_row(row)))


def _growth_row(row: ConfigurationRow) -> GrowthRow:
    assert row.several is not None
    return row.several


def _rate_factor(growth: GrowthRow) -> float:
    """Return by how much all rates can grow, contention included where it is known."""
    return min(growth.rate_factor, growth.contended_rate_factor or growth.rate_factor)


def _count_frames(several: SeveralRow) -> int:
    return sum(each.frames for each in several.models)
