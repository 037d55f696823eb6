"""Errors of predictions against measurements: latency, longest stage and energy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parapipe.cost.measured_rows import MeasuredRun
from parapipe.documents.evaluation import EvaluationDocument
from parapipe.errors import ComparisonError
from parapipe.files.mistakes import listed
from parapipe.files.shipped import require_regular
from parapipe.files.titles import model_title

METRICS = {"latency": "ms", "longest stage": "ms", "energy": "mJ"}
"""What is compared of runs on a board, and the unit it is shown in; all in SI units here."""

RUN_METRICS = {"period": "ms", "work of a processor": "ms", "work of a segment": "ms"}
"""What is compared besides of runs by `parapipe run`; work is that for a frame."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of one run, as predicted and as measured, in seconds or joules.

    Parameters
    ----------
    order
        Which run of the model: letters of its blocks, or its stages.
    part
        The processor or segment that it is of; empty for the whole.
    """

    model: str
    order: str
    metric: str
    predicted: float
    measured: float
    part: str = ""

    @property
    def run(self) -> str:
        """What people call the run, and the part of it."""
        return " ".join(filter(None, (model_title(self.model), self.order, self.part)))

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class Errors:
    """How far predictions of one metric are off.

    Parameters
    ----------
    model
        Name of the network; None for all together.
    rmspe
        Root mean square of the relative errors.
    mean
        Their mean: above 0 where predictions are too high.
    worst, worst_run
        The one farthest from 0, and the run it is of.
    rank_correlation
        Spearman's, of predicted and measured figures; None if there are fewer than two different
        ones of either.
    """

    metric: str
    model: str | None
    runs: int
    rmspe: float
    mean: float
    worst: float
    worst_run: str
    rank_correlation: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, their errors, measured runs of which there is no prediction, and notes."""

    pairs: tuple[Pair, ...]
    errors: tuple[Errors, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "pairs": [{**asdict(pair), "error": pair.error} for pair in self.pairs],
            "errors": [asdict(errors) for errors in self.errors],
            "missing": list(self.missing),
            "notes": list(self.notes),
        }


def read_evaluations(path: Path) -> tuple[EvaluationDocument, ...]:
    """Read what `evaluate --json` printed: one document, or a list of them.

    Raises
    ------
    ComparisonError
        If the file cannot be read or holds anything else.
    """
    try:
        require_regular(path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ComparisonError(f"predictions '{path}' cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ComparisonError(f"predictions '{path}' are no JSON text: {error}") from error
    documents: list[EvaluationDocument] = []
    wrong: list[str] = []
    for number, each in enumerate(content if isinstance(content, list) else [content]):
        try:
            documents.append(EvaluationDocument.model_validate_json(json.dumps(each)))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            wrong.append(f"[{number}] {place}: {first['msg']}")
    if wrong or not documents:
        why = listed(wrong) or "it is an empty list"
        raise ComparisonError(
            f"predictions '{path}' must hold what evaluate --json prints, or a list of that: {why}"
        )
    return tuple(documents)


def compare(
    predictions: Iterable[EvaluationDocument], measured: Sequence[MeasuredRun]
) -> Comparison:
    """Compare runs with the predictions of the same network and order.

    Raises
    ------
    ComparisonError
        If no run has a prediction.
    """
    by_run: dict[tuple[str, str], EvaluationDocument] = {}
    for document in predictions:
        for name in {document.model, document.model.removeprefix("zoo:"), document.network or ""}:
            by_run[name.lower(), (document.order or "").upper()] = document
    pairs: list[Pair] = []
    missing: list[str] = []
    for run in measured:
        prediction = by_run.get((run.model.lower(), run.order))
        if prediction is None:
            missing.append(run.label)
        else:
            pairs += _pairs_of_run(prediction, run)
    if not pairs:
        raise ComparisonError(
            f"none of the measured runs ({listed(list(dict.fromkeys(missing)))}) was predicted; "
            "evaluate the same models in the same orders"
        )
    return Comparison(tuple(pairs), tuple(errors_of(pairs)), tuple(missing))


def _pairs_of_run(document: EvaluationDocument, run: MeasuredRun) -> Iterator[Pair]:
    load_s = document.input_s if run.input_s is None else run.input_s
    first, *others = (stage.contended_time_s for stage in document.stages)
    figures: Mapping[str, tuple[float, float | None]] = {
        "latency": (document.latency_s, run.latency_s),
        "longest stage": (max(load_s + first, *others, 0.0), run.longest_stage_s),
        "energy": (document.sequential.board_energy_j, run.energy_j),
    }
    for metric, (predicted, measured) in figures.items():
        if measured is not None:
            yield Pair(run.model, run.order, metric, predicted, measured)


def errors_of(pairs: Sequence[Pair]) -> Iterator[Errors]:
    """Yield the errors of every metric: of each network, then of all together."""
    for metric in METRICS | RUN_METRICS:
        own = [pair for pair in pairs if pair.metric == metric]
        for model in dict.fromkeys([*(pair.model for pair in own), None] if own else ()):
            some = [pair for pair in own if model in (None, pair.model)]
            errors = [pair.error for pair in some]
            worst = max(some, key=lambda pair: abs(pair.error))
            yield Errors(
                metric=metric,
                model=model,
                runs=len(some),
                rmspe=rmspe(errors),
                mean=sum(errors) / len(errors),
                worst=worst.error,
                worst_run=worst.run,
                rank_correlation=rank_correlation(some),
            )


def rmspe(errors: Sequence[float]) -> float:
    """Return the root mean square of relative errors."""
    return sqrt(sum(error * error for error in errors) / len(errors))


def rank_correlation(pairs: Sequence[Pair]) -> float | None:
    """Return Spearman's rank correlation, ties by their mean rank; None if it is not defined."""
    import pandas as pd

    table = pd.DataFrame({"p": [x.predicted for x in pairs], "m": [x.measured for x in pairs]})
    ranks = table.rank()
    if min(ranks["p"].nunique(), ranks["m"].nunique()) < 2:
        return None
    return float(ranks["p"].corr(ranks["m"]))
