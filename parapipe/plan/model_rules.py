"""Rules on a plan of several models: each frame comes in its turn and takes what is said."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.files.mistakes import listed
from parapipe.plan.mapped import MappedPlan
from parapipe.plan.records import CoRun
from parapipe.plan.schema import PlannedModel

NANOSECOND_S = 1e-9  # to which times of frames are rounded, twice
RATE_TOLERANCE = 1e-9


def model_violations(view: MappedPlan) -> Iterator[str]:
    """Yield what is wrong with the models of a plan.

    The rules: each operator is of one frame of one model, by its name; a model has as many times
    at which frames come as frames; these come in equal steps; no operator starts before its frame
    has come; the latency is that of the frame which takes longest, also while processors slow each
    other down, if the plan says when all then runs.
    """
    models = view.plan.models or ()
    if not models:
        return
    prefixes = [prefix for each in models for prefix in each.prefixes]
    lost = [
        f"'{operator.id}'"
        for operator in view.plan.operators
        if sum(map(operator.id.startswith, prefixes)) != 1
    ]
    if lost:
        yield f"operators are of no frame of a model, or of several: {listed(lost)}"
        return
    for each in models:
        yield from _frame_violations(view, each)


def _frame_violations(view: MappedPlan, model: PlannedModel) -> Iterator[str]:
    if len(model.come_s) != len(model.prefixes):
        yield (
            f"model '{model.short_name}' has {len(model.prefixes)} frames in a period, and "
            f"{len(model.come_s)} times at which they come"
        )
        return
    period_s = view.plan.predicted.period_s
    tolerance_s = 2 * NANOSECOND_S + RATE_TOLERANCE * view.plan.predicted.latency_s
    step_s = period_s / len(model.come_s)
    turns = sorted(at % period_s for at in model.come_s)
    uneven = max(abs(at - turns[0] - turn * step_s) for turn, at in enumerate(turns))
    if uneven > tolerance_s:
        yield f"the frames of model '{model.short_name}' come in unequal steps"
    longest_s = 0.0
    for prefix, come_s in zip(model.prefixes, model.come_s, strict=True):
        start_s, end_s = _frame_times(view, prefix)
        if start_s < come_s - tolerance_s:
            yield (
                f"an operator of '{prefix}' starts at {start_s:.9g} s, before its frame comes at "
                f"{come_s:.9g} s"
            )
        longest_s = max(longest_s, end_s - come_s)
    stated = view.plan.co_run
    if stated and stated.spans_s:
        longest_s = max(longest_s, _slowed_latency_s(model, stated, period_s))
    if stated and not stated.spans_s and model.latency_s >= longest_s:
        return  # nothing recurs soon: only what it takes without co-runs is known
    if abs(longest_s - model.latency_s) > tolerance_s:
        yield (
            f"the latency of model '{model.short_name}' is {model.latency_s:.9g} s, and a frame "
            f"takes {longest_s:.9g} s"
        )


def _frame_times(view: MappedPlan, prefix: str) -> tuple[float, float]:
    """Return the first start and the last end of a frame, in seconds after its period begins."""
    period_s = view.plan.predicted.period_s
    placed = [at for name, at in view.placements.items() if name.startswith(prefix)]
    return (
        min(at.lag * period_s + at.start_s for at in placed),
        max(at.lag * period_s + at.end_s for at in placed),
    )


def _slowed_latency_s(model: PlannedModel, stated: CoRun, period_s: float) -> float:
    """Return what frames take at most beside co-runs; one that is begun before has come by then."""
    longest_s = 0.0
    for prefix, come_s in zip(model.prefixes, model.come_s, strict=True):
        rows = [spans for name, spans in stated.spans_s.items() if name.startswith(prefix)]
        for number, spans in enumerate(zip(*rows, strict=True)):
            come_by_s = min(number * period_s + come_s, *(start for start, _ in spans))
            longest_s = max(longest_s, max(end for _, end in spans) - come_by_s)
    return longest_s
