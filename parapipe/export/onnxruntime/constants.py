"""What some nodes read that is known beforehand: tensors of the file, and nodes that compute it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx

from parapipe.export.onnxruntime.network import Network
from parapipe.graph.order import reads_of


@dataclass(slots=True)
class Constants:
    """Constants of a model file, each once.

    Parameters
    ----------
    tensors
        Initializers by name. They are those of the model: nobody may change them.
    sparse
        Sparse initializers by the name of their values.
    nodes
        Nodes that compute large constants from the others, in order. A runtime runs them once,
        when it loads the file.
    """

    tensors: dict[str, onnx.TensorProto] = field(default_factory=dict)
    sparse: dict[str, onnx.SparseTensorProto] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)


def constants_of(nodes: Iterable[onnx.NodeProto], network: Network) -> Constants:
    """Return the constants that nodes read, and what computes them."""
    found = Constants()
    computed: set[str] = set()
    # Nodes on whose constants we wait, and those to enter once these are there.
    waiting: list[tuple[str, onnx.NodeProto | None]] = [
        (name, None) for node in nodes for name in _reads(node)
    ]
    waiting.reverse()
    while waiting:
        name, ready = waiting.pop()
        if ready is not None:
            found.nodes.append(ready)
        elif name in found.tensors or name in found.sparse or name in computed:
            continue
        else:
            node = _take(name, network, found)
            if node is not None:
                computed.update(node.output)
                waiting.append((name, node))
                waiting.extend((read, None) for read in reversed(_reads(node)))
    return found


def _reads(node: onnx.NodeProto) -> list[str]:
    return [name for name in reads_of(node) if name]


def _take(name: str, network: Network, found: Constants) -> onnx.NodeProto | None:
    """Take a constant as a tensor; return the node that computes it where it is none."""
    origin = network.origins.get(name)
    if origin is None:
        return None  # an activation
    if isinstance(origin, onnx.SparseTensorProto):
        found.sparse[name] = origin
        return None
    if isinstance(origin, onnx.NodeProto):
        tensor = _held(origin)
        if tensor is None and name in network.values:
            tensor = onnx.numpy_helper.from_array(network.values[name], name)
        if tensor is None:
            return origin
        origin = tensor
    found.tensors[name] = origin
    return None


def _held(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the dense tensor that a Constant holds."""
    if node.op_type != "Constant" or node.domain:
        return None
    return next((each.t for each in node.attribute if each.name == "value"), None)
