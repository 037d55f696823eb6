"""Reads what Qualcomm's compiler writes: where each operator goes, in which type, and why not.

The trace is that of `enable_framework_op_trace`, the types are in the graphs that
`dump_json_qnn_graph` writes. Source: docs/execution_providers/QNN-ExecutionProvider.md of
github.com/onnxruntime/onnxruntime-qnn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx import ModelProto

from parapipe.compilers.contract import CompiledRow, Match
from parapipe.compilers.nodes import RowNodes, assign_nodes, node_types
from parapipe.compilers.qnn import worker

CPU = "CPU"
_BORDERS = frozenset({"QuantizeLinear", "DequantizeLinear"})
_TYPES = {
    0x0008: "int8", 0x0016: "int16", 0x0032: "int32", 0x0064: "int64",
    0x0108: "uint8", 0x0116: "uint16", 0x0132: "uint32", 0x0164: "uint64",
    0x0216: "float16", 0x0232: "float16", 0x0304: "sfixed4", 0x0308: "sfixed8",
    0x0316: "sfixed16", 0x0332: "sfixed32", 0x0404: "ufixed4", 0x0408: "ufixed8",
    0x0416: "ufixed16", 0x0432: "ufixed32", 0x0508: "bool8",
}  # fmt: skip
"""`Qnn_DataType_t` of Qualcomm's QnnTypes.h; float32 is computed in float16, as the worker asks."""


@dataclass(frozen=True, slots=True)
class TracedRow:
    """An operator of the compiled graph, or a node that stays on the CPU.

    Parameters
    ----------
    operator, target, dtype
        In the tool's words; no `dtype` on the CPU, of which it says none.
    name
        The tool's own.
    sources
        Nodes that it was made of, as ONNX Runtime names them after its rewrites.
    """

    operator: str
    target: str
    dtype: str
    name: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What became of a segment.

    Parameters
    ----------
    rows
        Those of the chip first.
    reasons
        Why nodes stay on the CPU, by name; of some the tool does not say.
    """

    rows: tuple[TracedRow, ...]
    reasons: Mapping[str, str]


def read_trace(folder: Path, placed: Iterable[Sequence[str]], model: ModelProto) -> Trace:
    """Read the files that the compiler has left in a folder.

    Parameters
    ----------
    placed
        Provider, name and type of each node, as ONNX Runtime says.
    model
        The segment.
    """
    placed = [*placed]
    path = folder / worker.TRACE
    content = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    borders = {name for _, name, kind in placed if kind in _BORDERS} - node_types(model).keys()
    target = str(content.get("backend_type", "htp")).upper()
    rows = [
        row
        for each in content.get("subgraph_traces", ())
        for row in _rows_of(each, target, _types_of(folder, each["graph_name"]), borders)
    ]
    rows += [
        TracedRow(kind, CPU, "", name, (name,))
        for provider, name, kind in placed
        if provider == worker.CPU
    ]
    reasons = {each["node_name"]: each["reason"] for each in content.get("unsupported_nodes", ())}
    return Trace(tuple(rows), reasons)


def _rows_of(
    graph: Mapping[str, Any], target: str, types: Mapping[str, str], borders: set[str]
) -> Iterator[TracedRow]:
    for each in graph["op_mappings"]:
        names = [source["name"] for source in each["sources"] if source["type"] == "OP"]
        sources = tuple(name for name in names if name not in borders) or (each["dst_name"],)
        dtype = types.get(each["dst_name"], "")
        yield TracedRow(each["dst_qnn_op_type"], target, dtype, each["dst_name"], sources)


def _types_of(folder: Path, graph: str) -> dict[str, str]:
    """Return the type of the first output of each operator of a graph."""
    path = folder / f"{graph}.json"
    if not path.is_file():
        return {}
    content = json.loads(path.read_text("utf-8"))["graph"]
    tensors = content["tensors"]
    found = {name: node["output_names"][:1] for name, node in content["nodes"].items()}
    return {
        name: _TYPES.get(tensors[output]["data_type"], f"type {tensors[output]['data_type']:#x}")
        for name, outputs in found.items()
        for output in outputs
        if output in tensors
    }


def compiled_rows(trace: Trace, model: ModelProto) -> tuple[CompiledRow, ...]:
    """Return what each row stands for; the compiler prices none."""
    sources = [(number, each) for number, row in enumerate(trace.rows) for each in row.sources]
    pieces = assign_nodes([name for _, name in sources], model)
    of_row: list[list[RowNodes]] = [[] for _ in trace.rows]
    row_of: dict[str, int] = {}
    for (number, _), piece in zip(sources, pieces, strict=True):
        of_row[number].append(piece)
        row_of |= dict.fromkeys(piece.nodes, number)
    _join_readers(trace, row_of, model)
    members: list[list[str]] = [[] for _ in trace.rows]
    for name in node_types(model):
        if name in row_of:
            members[row_of[name]].append(name)
    return tuple(map(_row, trace.rows, members, of_row))


def _join_readers(trace: Trace, row_of: dict[str, int], model: ModelProto) -> None:
    """Give each DequantizeLinear that the CPU does not name to the row of what reads its output.

    Without a row of its own it has come to that of the QuantizeLinear before it, at a border.
    """
    readers = {each: node.name for node in reversed(model.graph.node) for each in node.input}
    for node in model.graph.node:
        row = row_of.get(node.name)
        reader = row_of.get(readers.get(node.output[0], ""))
        if node.op_type != "DequantizeLinear" or row is None or reader is None:
            continue
        if trace.rows[row].target == CPU and node.name not in trace.rows[row].sources:
            row_of[node.name] = reader


def _row(row: TracedRow, nodes: Sequence[str], pieces: Sequence[RowNodes]) -> CompiledRow:
    owners = [each.part_of for each in pieces if each.part_of]
    match: Match = "unmatched"
    if nodes:
        match = "group" if len(nodes) > 1 else "name" if nodes[0] in row.sources else "suffix"
    return CompiledRow(
        operator=row.operator,
        target=row.target,
        dtype=row.dtype,
        nodes=tuple(nodes),
        matched=match,
        cycles=None,
        part_of="" if nodes else (owners or [""])[0],
    )
