"""The values of a plan's constants: those that the model holds, and those that nodes compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from parapipe.errors import ModelError
from parapipe.graph.infer import Array
from parapipe.graph.weights import Weights
from parapipe.plan.schema import Operator, Tensor

if TYPE_CHECKING:
    import onnx

_IR_VERSION = 10


class Network(Protocol):
    """What a plan says of its network, wherever it runs."""

    @property
    def inputs(self) -> Sequence[str]:
        """Graph inputs."""

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
        Such as a plan.
    model
        The model file that it was made from.

    Raises
    ------
    ModelError
        If the file cannot be read.
    """

    def __init__(self, network: Network, model: Path) -> None:
        from parapipe.graph.inline import inlined
        from parapipe.graph.skim import skim

        self._network = network
        self._path = model
        self._weights = Weights(model)
        self._model = inlined(skim(model), str(model))
        self._makers = {
            name: node for node in _nodes(self._model.graph) for name in node.output if name
        }
        self._small: Mapping[str, Array] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._weights.__exit__(kind, error, trace)

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
        if name not in self._makers:
            return self._small_value(name)
        return self._computed(name)

    def _computed(self, name: str) -> Array:
        """Run the nodes that make a constant, in ONNX's reference implementation."""
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        nodes, leaves = self._recipe(name)
        feeds = {leaf: self._leaf(leaf) for leaf in leaves}
        graph = helper.make_graph(
            nodes,
            "constant",
            [_typed(leaf, value) for leaf, value in feeds.items()],
            [helper.make_empty_tensor_value_info(name)],
        )
        model = helper.make_model(
            graph, opset_imports=self._model.opset_import, ir_version=_IR_VERSION
        )
        try:
            values = ReferenceEvaluator(model).run(None, feeds)
        except Exception as error:  # noqa: BLE001 - operators fail in their own ways
            raise ModelError(
                f"constant '{name}' of '{self._path}' cannot be computed ({error}): fold the "
                "constants of the model beforehand"
            ) from None
        return np.asarray(next(iter(values)))

    def _recipe(self, name: str) -> tuple[list[onnx.NodeProto], list[str]]:
        """Return the nodes that make a constant, in order, and what they start from."""
        from parapipe.graph.order import reads_of

        nodes: dict[int, onnx.NodeProto] = {}
        leaves: dict[str, None] = {}
        seen: set[str] = set()
        waiting = [(name, False)]
        while waiting:
            current, done = waiting.pop()
            maker = self._makers.get(current)
            if done and maker is not None:
                nodes[id(maker)] = maker
            elif current in seen:
                continue
            elif maker is None or current in self._weights or maker.op_type in ("Shape", "Size"):
                leaves[current] = None
            else:
                waiting.append((current, True))
                waiting.extend((read, False) for read in reversed(reads_of(maker)) if read)
            seen.add(current)
        return list(nodes.values()), list(leaves)

    def _leaf(self, name: str) -> Array:
        return self._weights.read(name) if name in self._weights else self._small_value(name)

    def _small_value(self, name: str) -> Array:
        """Return a constant that follows from shapes, as the import of the model finds it."""
        if self._small is None:
            from parapipe.graph.onnx_import import resolve_proto

            shapes = {each: self._network.tensors[each].shape for each in self._network.inputs}
            _, resolved = resolve_proto(self._model, str(self._path), shapes=shapes)
            self._small = resolved.values
        if name not in self._small:
            raise ModelError(
                f"constant '{name}' of '{self._path}' cannot be computed: fold the constants of "
                "the model beforehand"
            )
        return self._small[name]


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield nodes, those of bodies first, so that outer ones count where names are the same."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
    yield from graph.node


def _typed(name: str, value: Array) -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
    )
