"""TensorFlow Lite's `benchmark_model --enable_op_profiling=true`, as text or as CSV.

The table below `Run Order` has a line for each node: type, [start,] first and mean time in
milliseconds, shares, memory, calls, and the name, which is the tensors that the node writes, in
brackets, and its number. `--profiling_output_csv_file` separates the same columns by commas.
(tensorflow/core/util/stats_calculator.cc, lite/profiling/profile_summarizer.cc)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from parapipe.imports.layers import Layer, ToolFile, ToolProfile

NAME, TITLE = "tflite", "op profile of TensorFlow Lite's benchmark_model"
_TITLE = re.compile(r"^=+ (.*?) =+$")
_ORDER = "Run Order"
_COLUMNS = {"node type", "avg ms", "name"}
_MEAN_OF_RUNS = re.compile(r"Inference \(avg\): ([\d.e+]+)|Timings .*?avg=([\d.e+]+)")
_BEFORE = frozenset({"ModifyGraphWithDelegate", "AllocateTensors"})  # the first inference


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format."""
    rows = [*_rows(file.lines)]
    if not rows:
        return None
    layers = tuple(
        Layer(
            name=re.sub(r":\d+$", "", row["name"]),
            time_s=file.number(row["avg ms"], f"the mean of '{row['name']}'") / 1e3,
            type=row["node type"],
        )
        for row in rows
        if row["node type"] not in _BEFORE
    )
    told = next((match for line in file.lines if (match := _MEAN_OF_RUNS.search(line))), None)
    total_s = file.number(told[1] or told[2], "the mean of inferences") / 1e6 if told else None
    return ToolProfile(NAME, TITLE, layers, total_s)


def _rows(lines: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Yield the cells, by column, of the last table of nodes in their order.

    There are two where the tool profiles what is before the first inference, too.
    """
    titles = [_TITLE.match(line.strip()) for line in lines]
    starts = [i for i, title in enumerate(titles) if title and title[1].endswith(_ORDER)]
    if not starts or starts[-1] + 1 >= len(lines):
        return
    header = lines[starts[-1] + 1]
    separator = re.compile("," if "," in header else r"\t|\s{2,}")
    words = separator.split(header.strip())
    columns = [word.strip(" []").replace("_", " ").lower() for word in words]
    if not set(columns) >= _COLUMNS:
        return
    for line in lines[starts[-1] + 2 :]:
        cells = [cell.strip() for cell in separator.split(line.strip(), len(columns) - 1)]
        if len(cells) < len(columns):
            return
        yield dict(zip(columns, cells, strict=True))
