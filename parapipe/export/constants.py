"""Constants of a model: what some of them are made of, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import onnx
from onnx import helper, numpy_helper

from parapipe.errors import ModelError
from parapipe.graph.infer import Array
from parapipe.graph.onnx_import import resolve_proto
from parapipe.graph.order import inline_functions, reads_of
from parapipe.graph.resolve import Resolved
from parapipe.graph.skim import Weights, skim
from parapipe.plan.schema import Operator, Tensor

_IR_VERSION = 10


@dataclass(slots=True)
class ConstantParts:
    """What some constants are made of, each once.

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


def constant_parts(names: Iterable[str], resolved: Resolved) -> ConstantParts:
    """Return what constants are made of; names of activations are passed over."""
    parts = ConstantParts()
    computed: set[str] = set()
    # Names to look at, and nodes to enter once what they read is there.
    waiting: list[tuple[str, onnx.NodeProto | None]] = [(name, None) for name in names]
    waiting.reverse()
    while waiting:
        name, ready = waiting.pop()
        if ready is not None:
            parts.nodes.append(ready)
        elif name and not (name in parts.tensors or name in parts.sparse or name in computed):
            node = _add_constant(name, resolved, parts)
            if node is not None:
                computed.update(node.output)
                waiting.append((name, node))
                waiting.extend((read, None) for read in reversed(reads_of(node)))
    return parts


def _add_constant(name: str, resolved: Resolved, parts: ConstantParts) -> onnx.NodeProto | None:
    """Take a constant as a tensor; return the node that computes it where it is none."""
    origin = resolved.origins.get(name)
    if origin is None:
        return None  # an activation
    if isinstance(origin, onnx.SparseTensorProto):
        parts.sparse[name] = origin
        return None
    if isinstance(origin, onnx.NodeProto):
        tensors = (each.t for each in origin.attribute if each.name == "value")
        constant = origin.op_type == "Constant" and not origin.domain
        tensor = next(tensors, None) if constant else None
        if tensor is None and name in resolved.values:
            tensor = numpy_helper.from_array(resolved.values[name], name)
        if tensor is None:
            return origin
        origin = tensor
    parts.tensors[name] = origin
    return None


class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


class Inputs(Protocol):
    """The graph inputs of a network, and the shapes of its tensors."""

    @property
    def inputs(self) -> Sequence[str]:
        """Graph inputs."""

    @property
    def tensors(self) -> Mapping[str, _Shaped]:
        """All activations by name."""


class Network(Inputs, Protocol):
    """What a plan says of its network, wherever it runs."""

    @property
    def outputs(self) -> Sequence[str]:
        """Graph outputs."""

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """All activations by name."""

    @property
    def operators(self) -> Sequence[Operator]:
        """All operators in topological order."""


class Constants:
    """Reads the constants of a network from its model, one at a time; use it in a `with` statement.

    Parameters
    ----------
    network
        Such as a plan or an operator graph.
    model
        The model file that it was made from.

    Raises
    ------
    ModelError
        If the file cannot be read.
    """

    def __init__(self, network: Inputs, model: Path) -> None:
        self._network = network
        self._path = model
        self._weights = Weights(model)
        self._model = inline_functions(skim(model), str(model))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._weights.__exit__(None, None, None)

    def opset(self, domain: str = "") -> int:
        """Return the version of a domain's operators; 0 if the model names none."""
        names = ("", "ai.onnx") if not domain else (domain,)
        return next((o.version for o in self._model.opset_import if o.domain in names), 0)

    def read(self, name: str) -> Array:
        """Return a constant's values; only what they are made of is in memory meanwhile.

        Raises
        ------
        ModelError
            If its data are missing or damaged, or it cannot be computed.
        """
        if name in self._weights:
            return self._weights.read(name)
        if name in self._resolved.values:
            return self._resolved.values[name]
        if name not in self._resolved.origins:
            raise self._incomputable_error(name)
        return self._compute(name)

    def _compute(self, name: str) -> Array:
        """Run the nodes that make a constant, in ONNX's reference implementation."""
        from onnx.reference import ReferenceEvaluator

        needed = constant_parts([name], self._resolved)
        feeds = {name: self._weights.read(name) for name in needed.sparse}
        for leaf, tensor in needed.tensors.items():
            stored = leaf in self._weights
            feeds[leaf] = self._weights.read(leaf) if stored else numpy_helper.to_array(tensor)
        graph = helper.make_graph(
            needed.nodes,
            "constant",
            [
                helper.make_tensor_value_info(
                    leaf, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
                )
                for leaf, value in feeds.items()
            ],
            [helper.make_empty_tensor_value_info(name)],
        )
        model = helper.make_model(
            graph, opset_imports=self._model.opset_import, ir_version=_IR_VERSION
        )
        try:
            values = ReferenceEvaluator(model).run(None, feeds)
        except Exception as error:  # noqa: BLE001 - operators fail in their own ways
            raise self._incomputable_error(name, f" ({error})") from None
        return np.asarray(next(iter(values)))

    @cached_property
    def _resolved(self) -> Resolved:
        """What the import of the model finds, small constants among it."""
        shapes = {each: self._network.tensors[each].shape for each in self._network.inputs}
        return resolve_proto(self._model, str(self._path), shapes=shapes)[1]

    def _incomputable_error(self, name: str, why: str = "") -> ModelError:
        return ModelError(
            f"constant '{name}' of '{self._path}' cannot be computed{why}: fold the constants of "
            "the model beforehand"
        )
