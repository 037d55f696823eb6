"""Reads what Rockchip's compiler prints: the table of rows, memory, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX = re.compile(r"^[DIWE] RKNN: \[[\d:.]+\] ?")
_HEAD = re.compile(r"^ID\s+OpType\s.*\bCycles\(DDR/NPU/Total\)\s")
_ROW = re.compile(
    r"^(?P<id>\d+)\s+(?P<operator>\S+)\s+(?P<dtype>\S+)\s+(?P<target>\S+)\s+.*?"
    r"(?P<ddr>\d+)/(?P<npu>\d+)/(?P<total>\d+)\s+(?P<kilobytes>[\d.]+|\\)?\s+(?P<name>\S.*?)\s*$"
)
_MEMORY = re.compile(r"Total (Internal|Weight) Memory Size: ([\d.]+)KB")
_ERROR = re.compile(r"^(?:E(?: RKNN: \[[\d:.]+\])?|Error|ValueError|Exception)\s*:?\s+(.+)$")
_REWRITE = re.compile(
    r"\bremove node = \[(?P<removed>[^]]*)\](?:, add node = \[(?P<added>[^]]*)\])?"
)
_LAYOUT = re.compile(r"[-_](tp|rs)(#\d+)?$")
"""How the compiler calls the transposes and reshapes that it adds."""
_QUOTED = re.compile(r"'([^']*)'")
_BORDERS = ("InputOperator", "OutputOperator")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line of the table.

    Parameters
    ----------
    operator, dtype, target
        In the tool's words.
    name
        The node's name, with what the tool added to it.
    cycles
        Total cycles of the NPU's clock; 0 where it is not priced.
    traffic_bytes
        Bytes read and written.
    """

    operator: str
    dtype: str
    target: str
    name: str
    cycles: int
    traffic_bytes: int | None


@dataclass(frozen=True, slots=True)
class Log:
    """What a log says.

    Parameters
    ----------
    rows
        Lines of the table, without inputs and outputs.
    internal_bytes, weight_bytes
        Memory; None if the log does not tell.
    errors
        Lines of errors, in the tool's words.
    origins
        Of each name that the tool gave to nodes of its own, the names of the model's nodes that
        they stand for; none if they only help.
    """

    rows: tuple[TableRow, ...]
    internal_bytes: int | None
    weight_bytes: int | None
    errors: tuple[str, ...]
    origins: Mapping[str, tuple[str, ...]]


def read_log(text: str) -> Log:
    """Read what the compiler printed."""
    lines = [_COLOUR.sub("", line).rstrip() for line in re.split(r"[\r\n]+", text)]
    memory = {kind: round(float(size) * 1024) for kind, size in _MEMORY.findall("\n".join(lines))}
    return Log(
        tuple(_read_rows([_PREFIX.sub("", line) for line in lines])),
        memory.get("Internal"),
        memory.get("Weight"),
        tuple(dict.fromkeys(match[1] for line in lines if (match := _ERROR.match(line)))),
        _read_origins(lines),
    )


def _read_origins(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Follow what the compiler says it has replaced, in its order, back to the model's nodes."""
    origins: dict[str, tuple[str, ...]] = {}
    for line in lines:
        if not (match := _REWRITE.search(line)):
            continue
        removed, added = (_QUOTED.findall(match[each] or "") for each in ("removed", "added"))
        gone = [each for each in removed if each not in added] or removed
        before = tuple(dict.fromkeys(node for each in gone for node in origins.get(each, (each,))))
        new = [each for each in added if each not in removed]  # others have only been moved
        successors = [each for each in new if each.startswith((*gone, *before))] if before else []
        successors = [each for each in successors if not _LAYOUT.search(each)] or successors
        for each in new:  # what stands beside a successor only helps it, as a change of layout does
            origins[each] = before if each in successors or not successors else ()
    return origins


def _read_rows(lines: Sequence[str]) -> Iterator[TableRow]:
    """Yield the rows of the last table, if the compiler printed several."""
    heads = [number for number, line in enumerate(lines) if _HEAD.match(line)]
    for line in lines[heads[-1] + 2 :] if heads else ():
        match = _ROW.match(line)
        if not match:
            return
        if match["operator"] in _BORDERS:
            continue
        kilobytes = match["kilobytes"]
        yield TableRow(
            match["operator"],
            match["dtype"],
            match["target"],
            match["name"].partition(":")[2] or match["name"],
            int(match["total"]),
            None if kilobytes in {None, "\\"} else round(float(kilobytes) * 1024),
        )
