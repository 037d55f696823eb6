"""Tells which nodes of a segment the rows of a compiler stand for.

A compiler names one node per row, often with a suffix of its own, and leaves out what it has fused.
A node that no row names belongs to the row of what makes its inputs, or to the last of these rows:
an activation or an addition joins the convolution before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from onnx import ModelProto

from parapipe.compilers.contract import Match

_CUT = re.compile(r"[-_#./:]")


def assign_nodes(names: Sequence[str], model: ModelProto) -> list[tuple[tuple[str, ...], Match]]:
    """Return the names of the nodes of each row, in the order of the model, and how they were told.

    Parameters
    ----------
    names
        Of each row, the node that it names.
    model
        Its nodes have distinct names, in topological order.
    """
    nodes = {node.name for node in model.graph.node}
    named = [_named_node(name, nodes) for name in names]
    rows: dict[str, int] = {}
    for number, node in enumerate(named):
        if node is not None:
            rows.setdefault(node, number)
    makers: dict[str, int] = {}
    members: list[list[str]] = [[] for _ in names]
    orphans: list[tuple[str, Sequence[str]]] = []
    for node in model.graph.node:
        row = rows.get(node.name)
        if row is None:
            row = max((makers[each] for each in node.input if each in makers), default=None)
        if row is None:
            orphans.append((node.name, node.output))
            continue
        members[row].append(node.name)
        makers.update(dict.fromkeys(node.output, row))
    _adopt(orphans, model, members)
    return [
        (tuple(each), _match_of(name, node, each))
        for name, node, each in zip(names, named, members, strict=True)
    ]


def _named_node(name: str, nodes: set[str]) -> str | None:
    """Return the node that a row names: the longest beginning that is a node's name."""
    if name in nodes:
        return name
    ends = [match.start() for match in _CUT.finditer(name)]
    return next((name[:end] for end in reversed(ends) if name[:end] in nodes), None)


def _adopt(
    orphans: Sequence[tuple[str, Sequence[str]]], model: ModelProto, members: list[list[str]]
) -> None:
    """Give nodes behind which no row lies to the row of what reads them."""
    row_of = {name: number for number, each in enumerate(members) for name in each}
    readers: dict[str, list[str]] = {}
    for node in model.graph.node:
        for tensor in node.input:
            readers.setdefault(tensor, []).append(node.name)
    for name, outputs in reversed(orphans):
        behind = [
            row_of[reader]
            for tensor in outputs
            for reader in readers.get(tensor, ())
            if reader in row_of
        ]
        if behind:
            row_of[name] = min(behind)
            members[row_of[name]].insert(0, name)


def _match_of(name: str, node: str | None, members: Sequence[str]) -> Match:
    if not members:
        return "unmatched"
    if len(members) > 1 or node is None:
        return "group"
    return "name" if node == name else "suffix"


def node_types(model: ModelProto) -> Mapping[str, str]:
    """Return the ONNX type of each node by its name."""
    return {node.name: node.op_type for node in model.graph.node}
