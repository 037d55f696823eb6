"""ONNX Runtime's profiling JSON: `SessionOptions.enable_profiling`.

Each run of a node is an event of category `Node` whose name ends in `_kernel_time`, with its type,
its execution provider and the shapes that it wrote; each run of the model is an event `model_run`.
Times are in microseconds. (onnxruntime.ai, Performance, Profiling Tools)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from parapipe.imports.layers import Layer, ToolFile, ToolProfile

NAME, TITLE = "onnxruntime", "profiling JSON of ONNX Runtime"
_SUFFIX = "_kernel_time"
_INSERTED = frozenset({"ReorderInput", "ReorderOutput", "MemcpyFromHost", "MemcpyToHost"})


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format.

    The first of several runs does not count, for it warms up. Of the others, the median does.
    """
    nodes = [*_node_events(file.document)]
    if not nodes:
        return None
    runs_of: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in nodes:
        runs_of[str(event["args"].get("node_index", "")) + event["name"]].append(event)
    layers = tuple(_layer(file, events) for events in runs_of.values())
    totals = [
        file.number(event.get("dur"), "the duration of model_run") / 1e6
        for event in file.document
        if isinstance(event, dict) and event.get("name") == "model_run"
    ]
    return ToolProfile(NAME, TITLE, layers, median(_warm(totals)) if totals else None)


def _node_events(document: object) -> Iterator[Mapping[str, Any]]:
    for event in document if isinstance(document, list) else ():
        if (
            isinstance(event, dict)
            and event.get("cat") == "Node"
            and str(event.get("name")).endswith(_SUFFIX)
            and isinstance(event.get("args"), dict)
        ):
            yield event


def _warm(times_s: Sequence[float]) -> Sequence[float]:
    return times_s[1:] or times_s


def _layer(file: ToolFile, events: Sequence[Mapping[str, Any]]) -> Layer:
    first, args = events[0], events[0]["args"]
    name = first["name"].removesuffix(_SUFFIX)
    times_s = [file.number(each.get("dur"), f"the duration of '{name}'") / 1e6 for each in events]
    kind = str(args.get("op_name", ""))
    return Layer(
        name=name,
        time_s=median(_warm(times_s)),
        type=kind,
        place=str(args.get("provider", "")),
        shapes=tuple(
            tuple(shape)
            for each in args.get("output_type_shape", ())
            for shape in each.values()
            if all(isinstance(extent, int) for extent in shape)
        ),
        inserted=kind in _INSERTED,
    )
