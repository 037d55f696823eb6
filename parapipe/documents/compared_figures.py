"""In which figures two fronts are compared, each in a unit that is the same for both.

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

Figure = Compared
OBJECTIVES = {word for some in get_args(Objectives) for word in some.split("-")}
"""Figures that a front may trade; others are compared in any case."""
OTHER_MODELS = "one front is of several models, and the other one of a single model"
OLDER = "an older version, which did not state it, wrote one of the fronts"
NO_MODEL = "the fronts have no model in common"
OTHER_SHARES = "the models' shares of all frames are not the same, so a frame is not"

_Of = Callable[[ConfigurationRow], float]


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

    figure: Figure
    model: str | None
    old: _Of
    new: _Of


def compared_figures(
    before: FrontDocument, after: FrontDocument
) -> tuple[list[ComparedFigure], dict[Figure, str]]:
    """Return the figures in which fronts are compared, and why some cannot be.

    Of those that a front may trade, these are the objectives of both fronts.
    """
    asked = set(before.options.objectives).intersection(after.options.objectives)
    figures = [each for each in COMPARED if each in asked or each not in OBJECTIVES]
    rows = (*before.configurations, *after.configurations)
    found: list[ComparedFigure] = []
    reasons: dict[Figure, str] = {}
    for figure in figures:
        fields = (getattr(row, COMPARED[figure].compared) for row in rows)
        if any(each is None for each in fields):
            reason = OLDER
        elif before.several and after.several:
            reason = _reason(figure, before.several, after.several)
            found += () if reason else _of_several(figure, before.several, after.several)
        else:
            reason = OTHER_MODELS if before.several or after.several else ""
            found += () if reason else [_of_all(figure, _field(figure), _field(figure))]
        if reason:
            reasons[figure] = reason
    return found, reasons


def latencies_s(row: ConfigurationRow) -> dict[str, float]:
    """Return the latency of each of several models in seconds; of one, nothing."""
    models = row.several.models if row.several else {}
    return {name: each.latency_s for name, each in models.items()}


def frames_per_second(row: ConfigurationRow, front: FrontDocument) -> float:
    """Return the throughput; of several models the frames of all, as far as rates can grow."""
    if not (row.several and front.several):
        return row.throughput_fps
    return _growth(row.several) * _frames(front.several) / front.several.period_s


def energy_of_a_frame_j(row: ConfigurationRow, front: FrontDocument) -> float:
    """Return the joules per frame; of several models the mean over the frames of a pattern."""
    return row.energy_j / _frames(front.several) if front.several else row.energy_j


def _reason(figure: Figure, before: SeveralRow, after: SeveralRow) -> str:
    """Say why a figure of several models cannot be compared; nothing if it can."""
    old, new = ({each.name: each.frames for each in side.models} for side in (before, after))
    if figure in ("latency", "throughput"):
        return "" if set(old) & set(new) else NO_MODEL
    shares = (
        {name: Fraction(frames, sum(side.values())) for name, frames in side.items()}
        for side in (old, new)
    )
    return OTHER_SHARES if figure == "energy" and next(shares) != next(shares) else ""


def _of_several(figure: Figure, before: SeveralRow, after: SeveralRow) -> Iterator[ComparedFigure]:
    per_model = {"latency": _latency, "throughput": _period}
    if figure == "energy":
        yield _of_all(figure, _per_frame(before), _per_frame(after))
    elif figure not in per_model:
        yield _of_all(figure, _field(figure), _field(figure))
    else:
        of = per_model[figure]
        there = {each.name for each in after.models}
        for name in (each.name for each in before.models if each.name in there):
            yield ComparedFigure(figure, name, of(before, name), of(after, name))


def _of_all(figure: Figure, old: _Of, new: _Of) -> ComparedFigure:
    return ComparedFigure(figure, None, old, new)


def _field(figure: Figure) -> _Of:
    return lambda row: float(getattr(row, COMPARED[figure].compared))


def _per_frame(several: SeveralRow) -> _Of:
    return lambda row: row.energy_j / _frames(several)


def _latency(_: SeveralRow, model: str) -> _Of:
    return lambda row: _served(row).models[model].latency_s


def _period(several: SeveralRow, model: str) -> _Of:
    """Return what gives the seconds between frames of a model, as far as rates can grow."""
    (fps,) = (each.pattern_fps for each in several.models if each.name == model)
    return lambda row: 1 / (fps * _growth(_served(row)))


def _served(row: ConfigurationRow) -> GrowthRow:
    assert row.several is not None
    return row.several


def _growth(got: GrowthRow) -> float:
    """Return by how much all rates can grow, contention included where it is known."""
    return min(got.rate_factor, got.contended_rate_factor or got.rate_factor)


def _frames(several: SeveralRow) -> int:
    return sum(each.frames for each in several.models)
