"""The target `perfetto`: a trace of the schedule as the plan predicts it.

Frame n is admitted n periods after the first, and each stage begins as soon as the one before it
has ended. How an executor runs ahead of that, `parapipe simulate --trace` shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from parapipe.errors import ExportError
from parapipe.export.exported import Exported, Written, json_of
from parapipe.files.atomic import write_atomically
from parapipe.files.titles import model_title
from parapipe.plan.mapped import mapping_view
from parapipe.plan.program import program
from parapipe.plan.schema import Plan
from parapipe.runtime.record import Frame, Record, Span, chrome_trace
from parapipe.simulate.simulation import record_of

FURTHER_FRAMES = 4  # beyond those that fill the pipeline
_PREDICTED = ", predicted"  # ends the title of a trace


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
    title = f"{model_title(plan.model.name)} on {plan.platform}{_PREDICTED}"
    text = json.dumps(chrome_trace(record, title), allow_nan=False).encode()
    write_atomically(destination, text)
    summary = (
        f"frames      {len(record.frames)}",
        f"resources       {', '.join(record.resources)}",
    )
    return Exported("perfetto", (destination,), len(text), summary)


def written(destination: Path) -> Iterator[Written]:
    """Yield the file; its title tells that it is an export's."""

    def is_own(content: bytes) -> bool:
        with suppress(KeyError, IndexError, TypeError, AttributeError):
            title = json_of(content)["traceEvents"][0]["args"]["name"]
            return bool(title.endswith(_PREDICTED))
        return False

    yield Written(destination, is_own)


def predicted_record(plan: Plan) -> Record:
    """Return what the plan predicts for as many frames as fill the pipeline, and a few more.

    A transfer that keeps something busy has a row beside it, one for each receiving stage: it may
    fall into the time of another stage's work there.
    """
    lags = max(at.lag for stage in plan.stages for p in stage.processors for at in p.operators)
    frames = range(lags + 1 + FURTHER_FRAMES)
    period_s, replicas = plan.predicted.period_s, mapping_view(plan).replicas
    spans = [
        Span(names[n % len(names)], name, n, n * period_s + start_s, n * period_s + end_s)
        for resource, name, start_s, end_s in _rows_of_first_frame(plan)
        for names in [replicas.get(resource, (resource,))]
        for n in frames
    ]
    done_s = max(span.end_s for span in spans if span.frame == 0)
    passed = tuple(Frame(n, n * period_s, n * period_s + done_s) for n in frames)
    record = record_of(program(plan), spans, passed)
    row_of = {span.name: record.first_of.get(span.resource, span.resource) for span in spans}
    resources = [processor.name for processor in plan.processors]
    return replace(
        record,
        resources=tuple(dict.fromkeys([*resources, *sorted(span.resource for span in spans)])),
        arrows=tuple(
            replace(each, source=row_of[each.producer], target=row_of[each.consumer])
            for each in record.arrows
        ),
    )


def _rows_of_first_frame(plan: Plan) -> Iterator[tuple[str, str, float, float]]:
    """Yield row, name, start and end of what is done for the first frame."""
    view = mapping_view(plan)
    period_s = plan.predicted.period_s
    stage_s = list(accumulate((stage.time_s for stage in plan.stages), initial=0.0))

    def begin_s(stage: int, lag: int) -> float:
        """When the turn of a lag begins: where frames are interleaved, all stages keep step."""
        return lag * period_s if view.interleaved else stage_s[stage]

    for operator, at in view.placements.items():
        since_s = begin_s(view.stage(at), at.lag)
        yield view.name(at), operator, since_s + at.start_s, since_s + at.end_s
    for moved in view.mapping.transfers:
        if moved.resource is not None:
            stage = view.stage_of[moved.target]
            since_s = begin_s(stage, moved.lag)
            yield (
                f"{view.resources[moved.resource]}, transfers to stage {stage}",
                f"{moved.tensor} → {view.resources[moved.target]}",
                since_s + moved.start_s,
                since_s + moved.end_s,
            )
