"""Reads what Vela writes: a table of rows, a summary, and why an operator stays on the CPU."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from parapipe.compilers.contract import CompiledRow
from parapipe.compilers.nodes import RowNodes, assign_nodes, node_types
from parapipe.compilers.vela import worker

_NODE = re.compile(worker.NODE.format(r"(\d+)"))
_WARNING = re.compile(
    r"^Warning \(supported operators\) operator: (\w+), ofm: '(.*)'\nReason: (.*)$", re.MULTILINE
)
_LAYOUT = "Transpose"


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line of the table.

    Parameters
    ----------
    operator, target
        In Vela's words.
    cycles
        Of the NPU's clock; 0 for what is fused.
    sources
        Numbers of the nodes that its name tells.
    """

    operator: str
    target: str
    cycles: int
    sources: tuple[int, ...]


def read_rows(path: Path) -> list[TableRow]:
    """Read the table of rows."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            TableRow(
                row["Original Operator" if row["Target"] == "CPU" else "NNG Operator"],
                row["Target"],
                round(float(row["Op Cycles"])),
                tuple(dict.fromkeys(int(each) for each in _NODE.findall(row["Name"]))),
            )
            for row in csv.DictReader(file)
        ]


def read_summary(path: Path) -> Mapping[str, str]:
    """Read the one line of the summary by its heads."""
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file))


def read_reasons(text: str) -> dict[tuple[str, int], str]:
    """Return why operators stay on the CPU, from what Vela has printed.

    Returns
    -------
    By the operator, as `reason_key` spells it, and the number of the node.
    """
    return {
        (reason_key(operator), int(number)): reason
        for operator, name, reason in _WARNING.findall(text)
        for number in _NODE.findall(name)
    }


def reason_key(operator: str) -> str:
    """Return an operator's name in one spelling: Vela's table has `MaxPool`, its log MAX_POOL."""
    return operator.replace("_", "").lower()


def compiled_rows(rows: Sequence[TableRow], model: ModelProto) -> tuple[CompiledRow, ...]:
    """Return what each row stands for; a change of layout stands for none but its own node."""
    nodes = [node.name for node in model.graph.node]
    types = [node.op_type for node in model.graph.node]
    sources = [(number, each) for number, row in enumerate(rows) for each in row.sources]
    added = [
        rows[number].operator == _LAYOUT and types[each] != _LAYOUT for number, each in sources
    ]
    order = sorted(range(len(sources)), key=lambda place: added[place])
    pieces = assign_nodes([nodes[sources[place][1]] for place in order], model)
    of_row: list[list[RowNodes]] = [[] for _ in rows]
    for place, piece in zip(order, pieces, strict=True):
        of_row[sources[place][0]].append(piece)
    ranks = {name: rank for rank, name in enumerate(node_types(model))}
    return tuple(_row(row, each, ranks) for row, each in zip(rows, of_row, strict=True))


def _row(row: TableRow, pieces: Sequence[RowNodes], ranks: Mapping[str, int]) -> CompiledRow:
    nodes = sorted({name for each in pieces for name in each.nodes}, key=ranks.__getitem__)
    owners = [each.part_of for each in pieces if each.part_of]
    return CompiledRow(
        operator=row.operator,
        target=row.target,
        dtype="int8" if row.target != "CPU" else "",
        nodes=tuple(nodes),
        matched="group" if len(nodes) > 1 else "name" if nodes else "unmatched",
        cycles=row.cycles if row.target != "CPU" else None,
        part_of="" if nodes else (owners or [""])[0],
    )
