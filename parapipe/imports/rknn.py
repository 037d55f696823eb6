"""RKNN's `eval_perf` with `perf_debug=True`: the table of layers that it prints.

rknn-toolkit2's has the columns ID, OpType, DataType, Target, InputShape, OutputShape, Cycles,
Time(us), and others up to FullName; that of rknn-toolkit (1) Layer ID, Name, Operator, Uid,
Time(us), where long names go on on the next line. (Rockchip, RKNN Toolkit2 User Guide; RKNN Toolkit
User Guide)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from parapipe.imports.layers import Layer, ToolFile, ToolProfile, shape_in

NAME, TITLE = "rknn", "eval_perf table of RKNN"
_PREFIX = re.compile(r"^[DIW] RKNN: \[[\d:.]+\] ?")
_TIME = "Time(us)"
_TOTAL = re.compile(r"Total (?:Operator Elapsed (?:Per Frame )?)?Time ?\(us\): *([\d.]+)")
_FIRST = re.compile(r"^(\d+)\s+(\S+)\s+(\S+)\s+(\d+)\s+([\d.]+)\s*$")
_REST = re.compile(r"^\s+(\S+)\s*$")
_INSERTED = re.compile(
    r"^(InputOperator|OutputOperator|ex\w*Convert\w*|TENSOR_TRANS|DATACONVERT|\w*DataConvert)$"
)


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format."""
    lines = [_PREFIX.sub("", line) for line in file.lines]
    heads = [i for i, line in enumerate(lines) if _TIME in line.split()]
    if not heads:
        return None
    columns, table = lines[heads[-1]].split(), lines[heads[-1] + 1 :]
    if {"OpType", "FullName"} <= set(columns):
        layers = tuple(_layers(file, columns, table))
    elif {"Operator", "Uid"} <= set(columns):
        layers = tuple(_wrapped_layers(file, table))
    else:
        return None
    told = next((match for line in table if (match := _TOTAL.search(line))), None)
    total_s = file.number(told[1], "the total") / 1e6 if told else None
    return ToolProfile(NAME, TITLE, layers, total_s)


def _layers(file: ToolFile, columns: Sequence[str], table: Sequence[str]) -> Iterator[Layer]:
    at = {name: i for i, name in enumerate(columns)}
    for line in table:
        cells = line.split()
        if len(cells) <= at[_TIME] or not cells[0].isdigit():
            continue
        kind, shape = cells[at["OpType"]], shape_in(cells[at["OutputShape"]].split("),")[0])
        yield Layer(
            name=cells[-1],
            time_s=file.number(cells[at[_TIME]], f"the time of '{cells[-1]}'") / 1e6,
            type=kind,
            place=cells[at["Target"]],
            shapes=(shape,) if shape else (),
            inserted=bool(_INSERTED.match(kind)),
        )


def _wrapped_layers(file: ToolFile, table: Sequence[str]) -> Iterator[Layer]:
    rows: list[list[str]] = []
    for line in table:
        if match := _FIRST.match(line):
            rows.append([*match.groups()])
        elif rows and (rest := _REST.match(line)):
            rows[-1][1] += rest[1]
    for _, name, kind, _, time_us in rows:
        time_s = file.number(time_us, f"the time of '{name}'") / 1e6
        yield Layer(name, time_s, kind, inserted=bool(_INSERTED.match(kind)))
