"""What each of several models got of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from statistics import median

from parapipe.documents.run_schema import ModelRunRow, RandomRow
from parapipe.plan.schema import Plan, PlannedModel
from parapipe.runtime.record import Record

PERCENTILES = {"p95_s": 0.95, "p99_s": 0.99}  # shares of the frames


def percentile(times_s: Sequence[float], share: float) -> float:
    """Return the least of some ascending times that is not exceeded in a share of them."""
    return times_s[ceil(share * len(times_s)) - 1]


def model_run_rows(
    plan: Plan,
    operators_of: Mapping[str, Sequence[str]],
    record: Record,
    warm_up: int,
    period_s: float | None,
    *,
    seed: int | None = None,
) -> tuple[ModelRunRow, ...] | None:
    """Return what each model got; None if the plan is of one.

    Parameters
    ----------
    operators_of
        Ids of the operators of each span.
    warm_up
        The first so many frames of the plan do not count.
    period_s
        Seconds between frames of the plan, as observed.
    seed
        Of frames that come at random, one stream for each model; None if none do.
    """
    if not plan.models:
        return None
    rows = []
    for number, model in enumerate(plan.models):
        turns = [*_frame_times(model, operators_of, record, warm_up)]
        latencies_s = sorted(end_s - come_s for come_s, _, end_s in turns)
        count = len(model.prefixes)
        rows.append(
            ModelRunRow(
                name=model.short_name,
                frames=len(latencies_s),
                predicted_s=model.latency_s,
                median_s=median(latencies_s),
                **{name: percentile(latencies_s, share) for name, share in PERCENTILES.items()},
                most_s=latencies_s[-1],
                planned_fps=count / plan.predicted.period_s,
                observed_fps=count / period_s if period_s else None,
                random=None if seed is None else _random_row(plan, model, turns, seed, number),
            )
        )
    return tuple(rows)


def _frame_times(
    model: PlannedModel, operators_of: Mapping[str, Sequence[str]], record: Record, warm_up: int
) -> Iterator[tuple[float, float, float]]:
    """Yield of each frame of a model that counts when it came, began and ended."""
    admitted_s = {frame.index: frame.admitted_s for frame in record.frames[warm_up:]}
    for prefix, come_s in zip(model.prefixes, model.come_s, strict=True):
        names = {
            name
            for name, operators in operators_of.items()
            if any(operator.startswith(prefix) for operator in operators)
        }
        first_s: dict[int, float] = {}
        last_s: dict[int, float] = {}
        for span in record.spans:
            if span.name in names and span.frame in admitted_s:
                first_s[span.frame] = min(span.start_s, first_s.get(span.frame, span.start_s))
                last_s[span.frame] = max(span.end_s, last_s.get(span.frame, span.end_s))
        for frame, end_s in last_s.items():
            begin_s = first_s[frame]
            yield min(admitted_s[frame] + come_s, begin_s), begin_s, end_s


def _random_row(
    plan: Plan,
    model: PlannedModel,
    turns: Sequence[tuple[float, float, float]],
    seed: int,
    number: int,
) -> RandomRow:
    """Return what frames of a model got that came at random times."""
    from parapipe.several_models.random_arrivals import (
        latencies_through_turns,
        simulate_random_arrivals,
    )

    count = len(model.prefixes)
    rate_fps = count / plan.predicted.period_s
    predicted = simulate_random_arrivals(
        rate_fps, plan.predicted.sustained_period_s / count, model.latency_s
    )
    began_s = sorted(begin_s for _, begin_s, _ in turns)
    latencies_s = sorted(
        latencies_through_turns(rate_fps, [turn[1:] for turn in turns], (seed, number))
    )
    turn_s = (began_s[-1] - began_s[0]) / max(len(began_s) - 1, 1)
    some = PERCENTILES if latencies_s else {}
    figures = {name: percentile(latencies_s, share) for name, share in some.items()}
    return RandomRow(
        rate_fps=rate_fps,
        seed=seed,
        frames=len(latencies_s),
        utilisation=rate_fps * turn_s,
        predicted_utilisation=predicted.utilisation,
        predicted_p99_s=predicted.p99_s,
        median_s=median(latencies_s) if latencies_s else None,
        p95_s=figures.get("p95_s"),
        p99_s=figures.get("p99_s"),
        most_s=latencies_s[-1] if latencies_s else None,
    )
