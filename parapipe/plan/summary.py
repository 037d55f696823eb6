"""What a plan is and what it promises, with its replicas and batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from parapipe.errors import PlanError
from parapipe.files.mistakes import listed
from parapipe.files.titles import stages_title
from parapipe.graph.onnx_import import import_checked, open_model
from parapipe.graph.operator_graph import ModelSource, OperatorGraph, size_in_bytes
from parapipe.plan.schema import Plan, Tensor


def stages_of(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return the names of the processors of each stage, of those that take turns the first."""
    return tuple(tuple(each.name for each in stage.processors) for stage in plan.stages)


def replicas_of(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return the names of processors that take turns, those of each stage together."""
    processors = (each for stage in plan.stages for each in stage.processors)
    return tuple((each.name, *each.replicas) for each in processors if each.replicas)


def plan_stages_title(plan: Plan) -> str:
    """Return the processors of a plan's stages, as `stages_title` does."""
    return stages_title(stages_of(plan), replicas_of(plan))


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """One of several models of a plan.

    Parameters
    ----------
    frames
        Of it in a pattern.
    throughput_fps
        Frames of it per second.
    latency_s
        From when a frame comes to its last end, of the one that takes longest.
    """

    name: str
    frames: int
    throughput_fps: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A plan in a few figures; of several models, a frame is a pattern with frames of all.

    Parameters
    ----------
    stages
        Names of the processors of each stage, of those that take turns on its frames the first.
    fused
        How many of the operators are fused ones.
    nodes
        ONNX nodes that the operators stand for.
    models
        Several models that share the platform; empty if there is one.
    replicas
        Names of processors that take turns on the frames of a stage, those of each together.
    """

    model: str
    platform: str
    stages: tuple[tuple[str, ...], ...]
    operators: int
    fused: int
    nodes: int
    transfers: int
    transfer_bytes: int
    latency_s: float
    period_s: float
    sustained_period_s: float
    throughput_fps: float
    energy_j: float
    board_energy_j: float
    models: tuple[ModelSummary, ...] = ()
    replicas: tuple[tuple[str, ...], ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the same as plain values for JSON."""
        plain = asdict(self)
        lists = {name: [*map(list, plain[name])] for name in ("stages", "replicas")}
        return {**plain, **lists, "models": list(plain["models"])}


def summarize(plan: Plan) -> Summary:
    """Say what a plan is and what it promises."""
    left_out = {"input_s", "output_s", "memory_s", "power", "coverage"}
    promised = plan.predicted.model_dump(exclude=left_out)
    return Summary(
        model=plan.model.name,
        platform=plan.platform,
        stages=stages_of(plan),
        replicas=replicas_of(plan),
        operators=len(plan.operators),
        fused=sum(1 for operator in plan.operators if operator.parts),
        nodes=sum(len(operator.members) for operator in plan.operators),
        transfers=len(plan.transfers),
        transfer_bytes=sum(transfer.size_bytes for transfer in plan.transfers),
        **promised,
        models=tuple(
            ModelSummary(
                each.short_name,
                len(each.prefixes),
                len(each.prefixes) / plan.predicted.period_s,
                each.latency_s,
            )
            for each in plan.models or ()
        ),
    )


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
        self._model, source = open_model(path, digests=False, weights=False)
        self._source: ModelSource = source
        shapes = {name: plan.tensors[name].shape for name in plan.inputs}
        self._open_inputs = {
            value.name
            for value in self._model.graph.input
            if shapes.get(value.name)
            if not value.type.tensor_type.shape.dim[0].HasField("dim_value")
        }
        sizes = {shapes[name][0] for name in self._open_inputs}
        self.size = sizes.pop() if len(sizes) == 1 else 1

    def plan_of(self, size: int) -> Plan:
        """Return the plan for batches of another size; what it predicts is that of the plan.

        Raises
        ------
        PlanError
            If the model has other operators with batches of that size.
        """
        plan = self._plan
        graph = self._graph_of(size)
        tensors = {name: _tensor_of(graph, name) for name in plan.tensors if name in graph.tensors}
        if lacking := sorted(plan.tensors.keys() - tensors.keys()):
            raise PlanError(
                f"with a batch of {size}, '{plan.model.name}' lacks tensors of the plan "
                f"({listed(lacking)}): run it with a strategy that does not split batches"
            )
        # What was laid out in memory, and moved, was so for the other size.
        transfers = tuple(
            each.model_copy(update={"size_bytes": tensors[each.tensor].size_bytes})
            for each in plan.transfers
        )
        update: Mapping[str, object] = {
            "tensors": tensors, "transfers": transfers, "memory": None, "buffers": ()
        }  # fmt: skip
        return plan.model_copy(update=update)

    def _graph_of(self, size: int) -> OperatorGraph:
        shapes = {
            name: (size, *shape[1:]) if name in self._open_inputs else shape
            for name in self._plan.inputs
            for shape in [self._plan.tensors[name].shape]
        }
        return import_checked(self._model, source=self._source, granularity="onnx", shapes=shapes)


def _tensor_of(graph: OperatorGraph, name: str) -> Tensor:
    tensor = graph.tensors[name]
    size_bytes = size_in_bytes(tensor.shape, tensor.dtype) or 0
    return Tensor(shape=tensor.shape, dtype=tensor.dtype, size_bytes=size_bytes)
