"""How sure the figures of a front are: intervals and chances of each configuration, and draws.json.

draws.json holds what every configuration takes in each draw, so that any demand can be asked how
often it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field

from parapipe.documents.figure_table import DRAWN, SAMPLED_FIELDS
from parapipe.errors import FrontError
from parapipe.files.documents import read_document
from parapipe.files.record import PositiveFigure, Row
from parapipe.mappings.configuration import Configuration
from parapipe.pareto import TIE, TIES
from parapipe.search.candidate_selection import BEST_OF_KIND
from parapipe.uncertainty.causes import Array
from parapipe.uncertainty.robust import quantiles
from parapipe.uncertainty.samples import SampledFront, interval, least_chances, pareto_chances
from parapipe.version import __version__

DRAWS = "draws.json"
SCHEMA: Literal["parapipe/draws/1"] = "parapipe/draws/1"
DIGITS = 7  # of each number in draws.json

Interval = tuple[PositiveFigure, PositiveFigure]
Share = Annotated[float, Field(ge=0, le=1)]
Samples = Annotated[tuple[PositiveFigure, ...], Field(min_length=1)]


class IntervalsRow(Row):
    """Ends of the intervals in which figures lie in nine of ten draws of the costs.

    Where processors slow each other down, that lengthens latency and period by the same factor in
    every draw as by the stated costs.
    """

    latency_s: Interval
    """Least and most seconds of one frame through all stages."""
    period_s: Interval
    """Least and most time between frames."""
    energy_j: Interval
    """Least and most joules of the used processors per frame."""


class MediansRow(Row):
    """Figures in the middle of the draws of the costs.

    Where nothing waits, that is what the stated costs give. The slowest of several loads is likely
    to be slower in a draw than any of them is by the stated costs, so that a stated period may even
    lie outside its interval: then this is the figure to go by.
    """

    latency_s: PositiveFigure
    """Seconds of one frame through all stages."""
    period_s: PositiveFigure
    """Time between frames."""
    energy_j: PositiveFigure
    """Joules of the used processors per frame."""


class ChancesRow(Row):
    """In which share of the draws a configuration is the best one of those in the front.

    Several that are equally good in a draw, to within rounding, are each the best one in it.
    Energies count as equal to within a thousandth.
    """

    pareto: Share
    """No other one beats it in all objectives."""
    latency: Share
    """It has the least latency."""
    throughput: Share
    """It has the shortest period."""
    energy: Share
    """It takes the least energy per frame."""
    names: dict[str, Share]
    """It is what its name says, the best of its kind, for those names that mean that."""


class QuantilesRow(Row):
    """What figures a configuration keeps in a share of the draws of the costs."""

    share: Share
    """Of the draws."""
    latency_s: PositiveFigure
    """Seconds of one frame through all stages."""
    period_s: PositiveFigure
    """Time between frames."""
    energy_j: PositiveFigure
    """Joules of the used processors per frame."""


DrawnFigureRow: TypeAlias = IntervalsRow | MediansRow | ChancesRow | QuantilesRow


class DrawnRow(Row):
    """What a configuration takes, a number for each draw."""

    id: str
    """As in front.json."""
    latency_s: Samples
    """One frame through all stages."""
    period_s: Samples
    """Time between frames."""
    energy_j: Samples
    """Joules of the used processors per frame."""


class DrawsDocument(Row):
    """The whole of draws.json."""

    schema_version: Literal["parapipe/draws/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that wrote it."""
    configurations: Annotated[tuple[DrawnRow, ...], Field(min_length=1)]
    """As in front.json. The draws of all configurations are the same states of the chip."""


def doubt_fields(
    configurations: Sequence[Configuration],
    samples: SampledFront,
    objectives: Sequence[str],
    peaks_bytes: Sequence[float],
    quantile: float | None = None,
) -> Iterator[dict[str, DrawnFigureRow]]:
    """Yield intervals, medians, chances and what is kept at a quantile, for each configuration.

    Parameters
    ----------
    objectives
        What the front trades; `latency`, `throughput`, `energy`, `memory`.
    peaks_bytes
        Peak memory of each configuration, which has no doubt.
    quantile
        None if nothing is said of one.
    """
    memory = np.repeat(np.array(peaks_bytes)[:, None], samples.count, axis=1)
    figures: dict[str, Array] = {each.name: getattr(samples, each.compared) for each in DRAWN}
    figures["memory"] = memory
    every = range(len(configurations))
    pareto = pareto_chances([figures[objective] for objective in objectives])
    least = {
        each.name: least_chances(figures[each.name], every, TIES.get(each.name, TIE))
        for each in DRAWN
    }
    name_chances: list[dict[str, float]] = [{} for _ in configurations]
    for i, each in enumerate(configurations):
        for name in each.names:
            if name in BEST_OF_KIND:
                kind, objective = BEST_OF_KIND[name]
                same_kind = [j for j in every if configurations[j].mapping.kind == kind]
                name_chances[i][name] = least_chances(figures[objective], same_kind)[i]
            elif name == "most-efficient":
                name_chances[i][name] = least["energy"][i]
    at_quantiles = quantile_rows(samples, quantile) if quantile else []
    for i, (ends, middle) in enumerate(zip(intervals(samples), medians(samples), strict=True)):
        best = {name: shares[i] for name, shares in least.items()}
        chances = ChancesRow(pareto=pareto[i], **best, names=name_chances[i])
        at_quantile = {"quantiles": at_quantiles[i]} if at_quantiles else {}
        yield {"intervals": ends, "medians": middle, "chances": chances, **at_quantile}


def intervals(samples: SampledFront) -> list[IntervalsRow]:
    """Return the intervals of each configuration."""
    figures = zip(*(getattr(samples, key) for key in SAMPLED_FIELDS), strict=True)
    return [
        IntervalsRow(**{key: interval(one) for key, one in zip(SAMPLED_FIELDS, each, strict=True)})
        for each in figures
    ]


def medians(samples: SampledFront) -> list[MediansRow]:
    """Return the medians of each configuration."""
    middle = [np.median(getattr(samples, key), axis=1).tolist() for key in SAMPLED_FIELDS]
    figures = zip(*middle, strict=True)
    return [MediansRow(**dict(zip(SAMPLED_FIELDS, each, strict=True))) for each in figures]


def quantile_rows(samples: SampledFront, share: float) -> list[QuantilesRow]:
    """Return what figures each configuration keeps in a share of the draws."""
    return [
        QuantilesRow(share=share, **dict(zip(SAMPLED_FIELDS, values, strict=True)))
        for values in quantiles(samples, share)
    ]


def draws_text(ids: Sequence[str], samples: SampledFront) -> bytes:
    """Return draws.json: a line for each configuration."""
    head = json.dumps({"schema": SCHEMA, "parapipe": __version__})[:-1]
    rows = (
        json.dumps(
            {"id": name}
            | {
                key: [float(f"{x:.{DIGITS}g}") for x in getattr(samples, key)[i].tolist()]
                for key in SAMPLED_FIELDS
            }
        )
        for i, name in enumerate(ids)
    )
    return "".join([head, ', "configurations": [\n', ",\n".join(rows), "\n]}\n"]).encode()


def load_draws(folder: Path, ids: Sequence[str]) -> SampledFront:
    """Read the draws of the front in a folder.

    Parameters
    ----------
    ids
        Of its configurations.

    Raises
    ------
    FrontError
        The file cannot be read, or it is of another front.
    """
    path = folder / DRAWS
    document = read_document(path, DrawsDocument, schema=SCHEMA, what="draws", error=FrontError)
    rows = document.configurations
    counts = {len(getattr(row, key)) for row in rows for key in SAMPLED_FIELDS}
    if [row.id for row in rows] != list(ids) or len(counts) > 1:
        raise FrontError(
            f"{path}: belongs to another front than front.json; write the folder again with "
            "`parapipe map`"
        )
    return SampledFront(*(np.array([getattr(row, key) for row in rows]) for key in SAMPLED_FIELDS))
