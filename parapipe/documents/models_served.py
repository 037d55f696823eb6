"""What each of several models got of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from statistics import median

from parapipe.documents.run_schema import ModelRunRow, RandomRow
from parapipe.plan.schema import Plan, PlannedModel
from parapipe.runtime.record import Record

PERCENTILES = {"p95_s": 0.95, "p99_s": 0.99}  # shares of the frames


def models_served(
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
    found = []
    for number, model in enumerate(plan.models):
        turns = [*_turns(model, operators_of, record, warm_up)]
        took_s = sorted(end_s - come_s for come_s, _, end_s in turns)
        count = len(model.prefixes)
        found.append(
            ModelRunRow(
                name=model.short_name,
                frames=len(took_s),
                predicted_s=model.latency_s,
                median_s=median(took_s),
                **{name: _kept(took_s, share) for name, share in PERCENTILES.items()},
                most_s=took_s[-1],
                planned_fps=count / plan.predicted.period_s,
                observed_fps=count / period_s if period_s else None,
                random=None if seed is None else _random(plan, model, turns, seed, number),
            )
        )
    return tuple(found)


def _kept(times_s: Sequence[float], share: float) -> float:
    return times_s[ceil(share * len(times_s)) - 1]


def _turns(
    model: PlannedModel, operators_of: Mapping[str, Sequence[str]], record: Record, warm_up: int
) -> Iterator[tuple[float, float, float]]:
    """Yield of each frame of a model that counts when it came, began and ended."""
    admitted_s = {frame.index: frame.admitted_s for frame in record.frames[warm_up:]}
    for prefix, come_s in zip(model.prefixes, model.come_s, strict=True):
        own = {
            name
            for name, operators in operators_of.items()
            if any(operator.startswith(prefix) for operator in operators)
        }
        first_s: dict[int, float] = {}
        last_s: dict[int, float] = {}
        for span in record.spans:
            if span.name in own and span.frame in admitted_s:
                first_s[span.frame] = min(span.start_s, first_s.get(span.frame, span.start_s))
                last_s[span.frame] = max(span.end_s, last_s.get(span.frame, span.end_s))
        for frame, end_s in last_s.items():
            begin_s = first_s[frame]
            yield min(admitted_s[frame] + come_s, begin_s), begin_s, end_s


def _random(
    plan: Plan,
    model: PlannedModel,
    turns: Sequence[tuple[float, float, float]],
    seed: int,
    number: int,
) -> RandomRow:
    """Return what frames of a model got that came at random times."""
    from parapipe.several_models.random_arrivals import at_random, through_turns

    count = len(model.prefixes)
    rate_fps = count / plan.predicted.period_s
    predicted = at_random(rate_fps, plan.predicted.sustained_period_s / count, model.latency_s)
    began_s = sorted(begin_s for _, begin_s, _ in turns)
    took_s = sorted(through_turns(rate_fps, [turn[1:] for turn in turns], (seed, number)))
    turn_s = (began_s[-1] - began_s[0]) / max(len(began_s) - 1, 1)
    figures = {name: _kept(took_s, share) for name, share in PERCENTILES.items()} if took_s else {}
    return RandomRow(
        rate_fps=rate_fps,
        seed=seed,
        frames=len(took_s),
        utilisation=rate_fps * turn_s,
        predicted_utilisation=predicted.utilisation,
        predicted_p99_s=predicted.p99_s,
        median_s=median(took_s) if took_s else None,
        p95_s=figures.get("p95_s"),
        p99_s=figures.get("p99_s"),
        most_s=took_s[-1] if took_s else None,
    )
