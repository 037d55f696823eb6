"""Traces of Chrome's format, which Perfetto reads: events with the names of nodes.

Events of phase X have a duration, and B and E begin and end one; times are in microseconds, and
events `thread_name` call threads by names. (Trace Event Format, Google)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from parapipe.imports.layers import Layer, ToolFile, ToolProfile

NAME, TITLE = "trace", "Chrome or Perfetto trace in JSON"
_Thread = tuple[str, str]
_Span = tuple[float, float, str]  # begin, duration, name


def read(file: ToolFile) -> ToolProfile | None:
    """Return the innermost events of each thread; None if it is of another format.

    Of events with one name on one thread, the first does not count where there are several, for it
    warms up. Of the others, the median does.
    """
    events = _events(file.document)
    spans: dict[_Thread, list[_Span]] = defaultdict(list)
    for thread, span in (*_complete(file, events), *_begun(file, events)):
        spans[thread].append(span)
    if not spans:
        return None
    places = {
        _thread(e): str(e["args"].get("name", ""))
        for e in events
        if e.get("name") == "thread_name" and isinstance(e.get("args"), dict)
    }
    times_s: dict[tuple[str, str], list[float]] = defaultdict(list)
    first_s: dict[tuple[str, str], float] = {}
    for thread, own in spans.items():
        for begin, duration, name in _innermost(own):
            key = name, places.get(thread, "")
            times_s[key].append(duration / 1e6)
            first_s[key] = min(first_s.get(key, begin), begin)
    layers = tuple(
        Layer(name, median(times_s[name, place][1:] or times_s[name, place]), place=place)
        for name, place in sorted(first_s, key=first_s.__getitem__)
    )
    return ToolProfile(NAME, TITLE, layers)


def _events(document: object) -> Sequence[Mapping[str, Any]]:
    every = document.get("traceEvents") if isinstance(document, dict) else document
    listed = every if isinstance(every, list) else ()
    return [event for event in listed if isinstance(event, dict) and "ph" in event]


def _thread(event: Mapping[str, Any]) -> _Thread:
    return str(event.get("pid")), str(event.get("tid"))


def _complete(
    file: ToolFile, events: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[_Thread, _Span]]:
    for event in events:
        if event["ph"] == "X":
            name = str(event.get("name", ""))
            begin = file.number(event.get("ts"), f"ts of '{name}'")
            duration = file.number(event.get("dur", 0), f"dur of '{name}'")
            yield _thread(event), (begin, duration, name)


def _begun(file: ToolFile, events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[_Thread, _Span]]:
    waiting: dict[_Thread, list[tuple[float, str]]] = defaultdict(list)
    for event in events:
        thread, name = _thread(event), str(event.get("name", ""))
        if event["ph"] == "B":
            waiting[thread].append((file.number(event.get("ts"), f"ts of '{name}'"), name))
        elif event["ph"] == "E" and waiting[thread]:
            begin, name = waiting[thread].pop()
            yield thread, (begin, file.number(event.get("ts"), f"ts of '{name}'") - begin, name)


def _innermost(spans: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the events that no other one on the thread lies in."""
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))
    for span, following in zip(ordered, [*ordered[1:], None], strict=True):
        if following is None or following[0] >= span[0] + span[1]:
            yield span
