"""Gives every reader of a dequantised activation a DequantizeLinear of its own.

A quantised operator is found between DequantizeLinear nodes that nothing else reads. Where several
operators read the same one, each reader but the first gets a copy, as in ONNX Runtime
(EnsureUniqueDQForNodeUnit, `core/optimizer/qdq_transformer/ensure_unique_dq_for_node_unit.cc`); one
that is a graph output, or that a body reads, stays and all others get a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count

import onnx

from parapipe.graph.walk import Walk

DEQUANTISES = "DequantizeLinear"


def unshared(
    nodes: Sequence[onnx.NodeProto], outputs: Collection[str], walk: Walk
) -> list[onnx.NodeProto]:
    """Return the nodes with the copies, each behind its original.

    Names of copies follow from the names and the order of the nodes alone, so that whoever reads
    the model again finds the same.

    Parameters
    ----------
    nodes
        Those that are no constants, in topological order. They are not changed.
    outputs
        Names of the graph outputs.
    walk
        What is known of all tensors; copies are added.
    """
    edges = Counter(name for node in nodes for name in node.input)
    read_within = {
        name for node in nodes for name in walk.known.nodes.reads(node)[len(node.input) :]
    }
    free: dict[str, list[str]] = {}  # names of outputs that no reader has yet, by the original's
    found: list[onnx.NodeProto] = []
    for node in nodes:
        found.append(_reading_own(node, free))
        if node.op_type != DEQUANTISES or not edges[node.output[0]]:
            continue
        name = node.output[0]
        kept = name in read_within or name in outputs
        free[name] = [] if kept else [name]
        for _ in range(edges[name] - len(free[name])):
            found.append(_copy(node, name, walk))
            free[name].append(found[-1].output[0])
    return found


def _reading_own(node: onnx.NodeProto, free: dict[str, list[str]]) -> onnx.NodeProto:
    """Return the node, its inputs renamed to copies that no other one reads."""
    own = [free[name].pop(0) if free.get(name) else name for name in node.input]
    if own == list(node.input):
        return node
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    changed.input[:] = own
    return changed


def _copy(node: onnx.NodeProto, name: str, walk: Walk) -> onnx.NodeProto:
    """Return a copy of a DequantizeLinear under a name that is not taken."""
    own = next(
        new
        for number in count(2)
        if (new := f"{name}/{number}") not in walk.known.types and not walk.times_named[new]
    )
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = ""  # it goes by its output's
    copy.output[0] = own
    if name in walk.known.types:
        walk.known.types[own] = walk.known.types[name]
    if name in walk.tensors:
        walk.tensors[own] = replace(walk.tensors[name], name=own)
    return copy
