"""The detailed counters of OpenVINO's `benchmark_app -report_type detailed_counters`.

The columns of `benchmark_detailed_counters_report.csv` are layerName, execStatus, layerType,
execType, realTime and cpuTime in milliseconds; a line `Total` adds them up. Layers that were fused
into others or elided have the status NOT_RUN or OPTIMIZED_OUT. (docs.openvino.ai, Benchmark Tool)
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from parapipe.imports.layers import Layer, ToolFile, ToolProfile

NAME, TITLE = "openvino", "detailed counters of OpenVINO's benchmark_app"
_HEADER = ["layerName", "execStatus", "layerType", "execType", "realTime (ms)"]
_INSERTED = frozenset({"Reorder", "Convert", "ConvertTruncation"})
_CONVERSION = "Convert_"  # what the converter of models inserts, under names of its own


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format.

    Of the tables of several inferences the first counts.
    """
    lines = [*csv.reader(file.lines, delimiter=";")]
    starts = [i for i, cells in enumerate(lines) if cells[:5] == _HEADER]
    if not starts:
        return None
    rows = [*_rows(lines[starts[0] + 1 :])]
    totals = [row[4] for row in rows if row[0] == "Total"]
    layers = tuple(
        Layer(
            name=row[0],
            time_s=file.number(row[4], f"realTime of '{row[0]}'") / 1e3,
            type=row[2],
            inserted=row[2] in _INSERTED or row[0].startswith(_CONVERSION),
        )
        for row in rows
        if row[1].rpartition(".")[2] == "EXECUTED"
    )
    total_s = file.number(totals[0], "the total") / 1e3 if totals else None
    return ToolProfile(NAME, TITLE, layers, total_s)


def _rows(lines: list[list[str]]) -> Iterator[list[str]]:
    """Yield the lines of a table, to its end."""
    for cells in lines:
        if len(cells) < len(_HEADER):
            return
        yield cells
        if cells[0] == "Total":
            return
