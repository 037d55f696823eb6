"""Tells which nodes of a segment the rows of a compiler stand for.

A compiler names one node per row, often with a suffix of its own, and leaves out what it has fused.
A node that no row names belongs to the row of what makes its inputs, or to the last of these rows:
an activation or an addition joins the convolution before it. If there is none, it belongs to the
row of what reads its outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from parapipe.compilers.contract import Match
from parapipe.compilers.older_opset import NODE, TYPE

_CUT = re.compile(r"[-_#./:]")


@dataclass(frozen=True, slots=True)
class RowNodes:
    """What a row stands for.

    Parameters
    ----------
    nodes
        Names of the nodes, in the order of the model.
    matched
        How they were identified.
    part_of
        If there are none, the node that another row stands for and that this one helps to compute;
        empty if that is not known either.
    """

    nodes: tuple[str, ...]
    matched: Match
    part_of: str = ""


def assign_nodes(names: Sequence[str], model: ModelProto) -> list[RowNodes]:
    """Return what each row stands for.

    No node belongs to two rows. One belongs to none if no row lies before or behind it.

    Parameters
    ----------
    names
        Of each row, the node that it names.
    model
        Its nodes have distinct names, in topological order.
    """
    nodes = {node.name for node in model.graph.node}
    named = [_longest_beginning(name, nodes) for name in names]
    row_of: dict[str, int] = {}
    for number, each in enumerate(named):
        if each is not None:
            row_of.setdefault(each, number)
    _join_makers(model, row_of)
    _join_readers(model, row_of)
    members: list[list[str]] = [[] for _ in names]
    rows = {own: row_of[node.name] for node, own in _own_names(model) if node.name in row_of}
    for own, row in rows.items():
        members[row].append(own)
    tensors = _nodes_of_tensors(model)
    owners = {node.name: own for node, own in _own_names(model)}
    return [
        _row_nodes(name, owners.get(node or "", ""), each, tensors)
        for name, node, each in zip(names, named, members, strict=True)
    ]


def _longest_beginning(name: str, words: set[str]) -> str | None:
    """Return the longest word with which a name begins, up to a sign that a tool cuts at."""
    if name in words:
        return name
    ends = [match.start() for match in _CUT.finditer(name)]
    return next((name[:end] for end in reversed(ends) if name[:end] in words), None)


def _join_makers(model: ModelProto, row_of: dict[str, int]) -> None:
    """Give each node that no row names to the last row that makes one of its inputs."""
    makers: dict[str, int] = {}
    for node in model.graph.node:
        rows = [makers[each] for each in node.input if each in makers]
        if node.name not in row_of and rows:
            row_of[node.name] = max(rows)
        if node.name in row_of:
            makers.update(dict.fromkeys(node.output, row_of[node.name]))


def _join_readers(model: ModelProto, row_of: dict[str, int]) -> None:
    """Give each node before which no row lies to the first row that reads one of its outputs."""
    readers: dict[str, int] = {}
    for node in reversed(model.graph.node):
        rows = [readers[each] for each in node.output if each in readers]
        if node.name not in row_of and rows:
            row_of[node.name] = min(rows)
        if node.name in row_of:
            for each in node.input:
                readers[each] = min(readers.get(each, row_of[node.name]), row_of[node.name])


def _nodes_of_tensors(model: ModelProto) -> dict[str, str]:
    """Return which node makes each tensor; of what none makes, which one reads it first."""
    nodes: dict[str, str] = {}
    for node, own in _own_names(model):
        for each in node.input:
            nodes.setdefault(each, own)
        nodes.update(dict.fromkeys(node.output, own))
    return nodes


def _row_nodes(
    name: str, owner: str, members: Sequence[str], tensors: Mapping[str, str]
) -> RowNodes:
    if not members:
        tensor = _longest_beginning(name, {*tensors})
        return RowNodes((), "unmatched", owner or (tensors[tensor] if tensor else ""))
    if len(members) > 1 or not owner:
        return RowNodes(tuple(members), "group")
    return RowNodes(tuple(members), "name" if owner == name else "suffix")


def _own_names(model: ModelProto) -> Iterator[tuple[NodeProto, str]]:
    """Yield each node with the name of the segment's node that it stands for."""
    for node in model.graph.node:
        yield node, _metadata(node, NODE) or node.name


def _metadata(node: NodeProto, key: str) -> str:
    return next((each.value for each in node.metadata_props if each.key == key), "")


def node_types(model: ModelProto) -> Mapping[str, str]:
    """Return the ONNX type of each of the segment's nodes by its name."""
    return {own: _metadata(node, TYPE) or node.op_type for node, own in _own_names(model)}
