"""The target `perfetto`: a trace of the schedule as the plan predicts it.

Frame n is admitted n periods after the first, and each stage begins as soon as the one before it
has ended. How an executor runs ahead of that, `parapipe simulate --trace` shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from parapipe.errors import ExportError
from parapipe.export.exported import Exported
from parapipe.files.atomic import write_atomically
from parapipe.plan.places import every_place
from parapipe.plan.program import program, transfer_name
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Arrow, Frame, Record, Span, chrome_trace

FURTHER_FRAMES = 4  # beyond those that fill the pipeline


def export_plan(plan: Plan, destination: Path | None) -> Exported:
    """Write the trace.

    Raises
    ------
    ExportError
        If no file is named.
    OutputError
        If it cannot be written.
    """
    if destination is None:
        raise ExportError("the target perfetto makes a file: name it, as in `… trace.json`")
    record = predicted_record(plan)
    title = f"{plan.model.name} on {plan.platform}, predicted"
    text = json.dumps(chrome_trace(record, title), allow_nan=False).encode()
    write_atomically(destination, text)
    summary = (f"frames      {len(record.frames)}", f"lanes       {', '.join(record.lanes)}")
    return Exported("perfetto", (destination,), len(text), summary)


def predicted_record(plan: Plan) -> Record:
    """Return what the plan predicts for as many frames as fill the pipeline, and a few more.

    A transfer that keeps something busy has a lane beside it, one for each receiving stage: it may
    fall into the time of another stage's work there.
    """
    lags = max(at.lag for stage in plan.stages for p in stage.processors for at in p.operators)
    frames = range(lags + 1 + FURTHER_FRAMES)
    period_s = plan.predicted.period_s
    spans = [
        Span(lane, name, n, n * period_s + start_s, n * period_s + end_s)
        for lane, name, start_s, end_s in _of_a_frame(plan)
        for n in frames
    ]
    done_s = max(span.end_s for span in spans if span.frame == 0)
    lane_of = {span.name: span.lane for span in spans}
    tasks = program(plan)
    arrows = tuple(
        Arrow(each.tensor, lane_of[source], source, lane_of[target], target)
        for each in tasks.handovers
        for source, target in [(tasks.tasks[each.producer].name, tasks.tasks[each.consumer].name)]
    )
    lanes = [processor.name for processor in plan.processors]
    return Record(
        lanes=tuple(dict.fromkeys([*lanes, *sorted(span.lane for span in spans)])),
        spans=tuple(sorted(spans, key=lambda span: (span.start_s, span.end_s))),
        arrows=arrows,
        frames=tuple(Frame(n, n * period_s, n * period_s + done_s) for n in frames),
    )


def _of_a_frame(plan: Plan) -> Iterator[tuple[str, str, float, float]]:
    """Yield lane, name, start and end of what is done for the first frame."""
    begins = list(_begins(plan))
    for place in every_place(plan):
        begin_s, first_lag = begins[place.stage]
        since_s = begin_s + (place.lag - first_lag) * plan.predicted.period_s
        yield place.processor, place.operator, since_s + place.start_s, since_s + place.end_s
    stage_of = {p.name: i for i, stage in enumerate(plan.stages) for p in stage.processors}
    for transfer in plan.transfers:
        if transfer.occupies is not None:
            assert transfer.start_s is not None
            assert transfer.end_s is not None
            stage = stage_of[transfer.target]
            begin_s, _ = begins[stage]
            lane = f"{transfer.occupies}, transfers to stage {stage}"
            yield (
                lane,
                transfer_name(transfer),
                begin_s + transfer.start_s,
                begin_s + transfer.end_s,
            )


def _begins(plan: Plan) -> Iterator[tuple[float, int]]:
    """Yield when each stage begins with the first frame, and the first of its lags."""
    begin_s = 0.0
    for stage in plan.stages:
        lags = {at.lag for processor in stage.processors for at in processor.operators}
        yield begin_s, min(lags)
        begin_s += stage.time_s + (len(lags) - 1) * plan.predicted.period_s
