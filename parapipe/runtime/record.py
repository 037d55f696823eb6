"""What happened when frames went through a plan, run or simulated, and its Chrome trace.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MICROSECONDS = 1e6
ANYWHERE = ""  # in place of a resource


@dataclass(frozen=True, slots=True)
class Span:
    """Work on one frame without interruption.

    Parameters
    ----------
    resource
        Name of the processor, or of the link that transfers share.
    name
        Operator, segment or transfer; with resource and frame it is unique.
    frame
        Number of the frame, from 0.
    start_s, end_s
        Seconds from the start of the run.
    work_s
        Seconds for which the resource's thread had a core meanwhile; None where that is not known.
    """

    resource: str
    name: str
    frame: int
    start_s: float
    end_s: float
    work_s: float | None = None


@dataclass(frozen=True, slots=True)
class Arrow:
    """A tensor that, in every frame, a span of one resource makes and one of another waits for.

    Parameters
    ----------
    tensor
        Its name.
    source, producer
        Resource and name of the span that makes it; ANYWHERE if that changes from frame to frame.
    target, consumer
        Resource and name of the span that reads it, likewise.
    """

    tensor: str
    source: str
    producer: str
    target: str
    consumer: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame on its way.

    Parameters
    ----------
    index
        Its number, from 0.
    admitted_s, done_s
        When it was admitted, and when its last span ended; seconds from the start of the run.
    """

    index: int
    admitted_s: float
    done_s: float


@dataclass(frozen=True, slots=True)
class Record:
    """A run: resources in the order shown, what they did, frames by their number.

    Of processors that take turns on frames, arrows name the first, which `first_of` has by name.
    `peak_tensor_bytes`: the most bytes of tensors between segments at one time; None if not known.
    `peak_outside_bytes`: the same of those that lie in no arena; None if there is none.
    """

    resources: tuple[str, ...]
    spans: tuple[Span, ...]
    arrows: tuple[Arrow, ...]
    frames: tuple[Frame, ...]
    first_of: Mapping[str, str] = field(default_factory=dict)
    peak_tensor_bytes: int | None = None
    peak_outside_bytes: int | None = None


def done_while_admitted(frames: Sequence[Frame]) -> list[float]:
    """Return when those of some frames ended that did so while frames were still admitted, sorted.

    Later ones follow each other faster than a full pipeline lets them. If less than two ended
    before, all count.
    """
    last_s = max((frame.admitted_s for frame in frames), default=0.0)
    done_s = sorted(frame.done_s for frame in frames)
    before = [each for each in done_s if each <= last_s]
    return before if len(before) > 1 else done_s


def chrome_trace(record: Record, title: str) -> dict[str, Any]:
    """Return a run as a document for chrome://tracing and ui.perfetto.dev.

    One thread for each resource, a slice for each span, and an arrow for each tensor that goes from
    one resource to another (Trace Event Format of the Chromium project; `ts` and `dur` in
    microseconds).

    Parameters
    ----------
    title
        Name of the one process, above its resources.
    """
    resources = {name: number for number, name in enumerate(record.resources, start=1)}
    events = [_metadata_event("process_name", 0, title)]
    for name, number in resources.items():
        events.append(_metadata_event("thread_name", number, name))
        events.append(
            {"ph": "M", "pid": 1, "tid": number, "name": "thread_sort_index",
             "args": {"sort_index": number}}
        )  # fmt: skip
    ends = _arrow_ends(record)
    for span in record.spans:
        at = {"pid": 1, "tid": resources[span.resource], "ts": span.start_s * MICROSECONDS}
        took_s = span.end_s - span.start_s
        events.append(
            {"ph": "X", "name": span.name, "cat": "work", **at, "dur": took_s * MICROSECONDS,
             "args": {"frame": span.frame}}
        )  # fmt: skip
        # Arrows bind to the slice that is open at their time: right behind it, at its start.
        places = (record.first_of.get(span.resource, span.resource), ANYWHERE)
        for phase, number, tensor in (e for p in places for e in ends.get((p, span.name), ())):
            binding = {"bp": "e"} if phase == "f" else {}
            identity = span.frame * len(record.arrows) + number
            events.append(
                {"ph": phase, "id": identity, "name": tensor, "cat": "tensor", **at, **binding}
            )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def as_decided(record: Record) -> Record:
    """Return a record of which every resource may have done everything: arrows name none."""
    arrows = (replace(each, source=ANYWHERE, target=ANYWHERE) for each in record.arrows)
    return replace(record, arrows=tuple(arrows), first_of={})


def _metadata_event(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": thread, "name": kind, "args": {"name": name}}


def _arrow_ends(record: Record) -> dict[tuple[str, str], list[tuple[str, int, str]]]:
    """Phase, number and tensor of the arrows that leave or reach a span."""
    ends: dict[tuple[str, str], list[tuple[str, int, str]]] = {}
    for number, arrow in enumerate(record.arrows):
        source, target = (arrow.source, arrow.producer), (arrow.target, arrow.consumer)
        ends.setdefault(source, []).append(("s", number, arrow.tensor))
        ends.setdefault(target, []).append(("f", number, arrow.tensor))
    return ends
