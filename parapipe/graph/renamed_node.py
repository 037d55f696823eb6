"""An ONNX node under other names of tensors."""

from __future__ import annotations

from collections.abc import Mapping

import onnx


def renamed_node(node: onnx.NodeProto, new_name: Mapping[str, str]) -> onnx.NodeProto:
    """Rename what a node reads and makes, and what its bodies take from outside."""
    for names in (node.input, node.output):
        for position, name in enumerate(names):
            names[position] = new_name.get(name, name)
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            _rename_body(body, new_name)
    return node


def _rename_body(body: onnx.GraphProto, new_name: Mapping[str, str]) -> None:
    own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    own |= {name for inner in body.node for name in inner.output}
    outer = {name: new for name, new in new_name.items() if name not in own}
    for inner in body.node:
        renamed_node(inner, outer)
    for value in body.output:
        value.name = outer.get(value.name, value.name)
