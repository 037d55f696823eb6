"""What each of several models got of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from statistics import median

from parapipe.formats.run import ModelRunRow
from parapipe.plan.schema import Plan, PlannedModel
from parapipe.runtime.record import Record

TAIL = 0.99  # share of the frames that p99 is of


def models_served(
    plan: Plan,
    operators_of: Mapping[str, Sequence[str]],
    record: Record,
    warm_up: int,
    period_s: float | None,
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
    """
    if not plan.models:
        return None
    found = []
    for model in plan.models:
        took_s = sorted(_latencies_s(model, operators_of, record, warm_up))
        count = len(model.prefixes)
        found.append(
            ModelRunRow(
                name=model.short_name,
                frames=len(took_s),
                predicted_s=model.latency_s,
                median_s=median(took_s),
                p99_s=took_s[ceil(TAIL * len(took_s)) - 1],
                most_s=took_s[-1],
                planned_fps=count / plan.predicted.period_s,
                observed_fps=count / period_s if period_s else None,
            )
        )
    return tuple(found)


def _latencies_s(
    model: PlannedModel, operators_of: Mapping[str, Sequence[str]], record: Record, warm_up: int
) -> Iterator[float]:
    """Yield the latency of each frame of a model that counts."""
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
            yield end_s - min(admitted_s[frame] + come_s, first_s[frame])
