"""A plan for batches of another size: the same operators, processors and order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from parapipe.errors import PlanError
from parapipe.files.listing import listed
from parapipe.graph.onnx_import import import_checked, opened_model
from parapipe.graph.operator_graph import ModelSource, OperatorGraph, size_in_bytes
from parapipe.plan.schema import Plan, Tensor


class Batches:
    """The sizes of batches that a plan's model can be run with.

    Parameters
    ----------
    plan
        Any.
    path
        The file of its model.

    Attributes
    ----------
    size
        That of the plan: what the first dimension of some graph inputs is, which the model leaves
        open; 1 if there are none, or they differ.
    """

    def __init__(self, plan: Plan, path: Path) -> None:
        self._plan, self._path = plan, path
        self._model, source = opened_model(path, digests=False, weights=False)
        self._source: ModelSource = source
        shapes = {name: plan.tensors[name].shape for name in plan.inputs}
        self._open = {
            value.name
            for value in self._model.graph.input
            if shapes.get(value.name)
            if not value.type.tensor_type.shape.dim[0].HasField("dim_value")
        }
        sizes = {shapes[name][0] for name in self._open}
        self.size = sizes.pop() if len(sizes) == 1 else 1

    def plan_of(self, size: int) -> Plan:
        """Return the plan for batches of another size; what it predicts is that of the plan.

        Raises
        ------
        PlanError
            If the model has other operators with batches of that size.
        """
        plan = self._plan
        graph = self._graph(size)
        tensors = {name: _tensor(graph, name) for name in plan.tensors if name in graph.tensors}
        if lacking := sorted(plan.tensors.keys() - tensors.keys()):
            raise PlanError(
                f"with a batch of {size}, '{plan.model.name}' lacks tensors of the plan "
                f"({listed(lacking)}): run it with a strategy that does not split batches"
            )
        # What was laid out in memory, and moved, was so for the other size.
        moved = tuple(
            each.model_copy(update={"size_bytes": tensors[each.tensor].size_bytes})
            for each in plan.transfers
        )
        update: Mapping[str, object] = {
            "tensors": tensors, "transfers": moved, "memory": None, "buffers": ()
        }  # fmt: skip
        return plan.model_copy(update=update)

    def _graph(self, size: int) -> OperatorGraph:
        shapes = {
            name: (size, *shape[1:]) if name in self._open else shape
            for name in self._plan.inputs
            for shape in [self._plan.tensors[name].shape]
        }
        return import_checked(self._model, source=self._source, granularity="onnx", shapes=shapes)


def _tensor(graph: OperatorGraph, name: str) -> Tensor:
    found = graph.tensors[name]
    size_bytes = size_in_bytes(found.shape, found.dtype) or 0
    return Tensor(shape=found.shape, dtype=found.dtype, size_bytes=size_bytes)
