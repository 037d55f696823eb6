"""A plan's operators as ONNX nodes, and models of its segments that hold them.

Nodes bear the names that the plan gives to tensors. Model-local functions are inlined, what is
constant is known, and nodes without effect are gone, as on import; so a plan's members are found by
the names that they had there. In a segment's model, nodes are marked with processor and stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import onnx

from parapipe.errors import ModelError, PlanError
from parapipe.export.constants import constant_parts
from parapipe.export.onnxruntime.weights import Key, Place, is_placed, key_of, refer
from parapipe.files.mistakes import listed
from parapipe.graph.data_types import dtype_names
from parapipe.graph.model_source import is_external, tensors_of_nodes
from parapipe.graph.onnx_import import resolve_proto
from parapipe.graph.order import inline_functions, reads_of, rename_node
from parapipe.graph.resolve import Resolved, ResolvedNode
from parapipe.plan.mapped import operands_of
from parapipe.plan.schema import Plan

_PLAIN = frozenset(dtype_names()) - {"float8"}  # which is the name of several types


@dataclass(frozen=True, slots=True)
class Network:
    """A model's nodes as a plan has them.

    Parameters
    ----------
    nodes
        Copies of the nodes of each operator by its id, in order; what they read and make bears
        the plan's names.
    resolved
        Types of tensors and constants, and what constants stem from.
    opsets
        Versions of the operators.
    ir_version
        Of the model's file.
    folder
        Where external data are.
    """

    nodes: Mapping[str, tuple[onnx.NodeProto, ...]]
    resolved: Resolved
    opsets: tuple[onnx.OperatorSetIdProto, ...]
    ir_version: int
    folder: Path


def load_network(plan: Plan, path: Path) -> Network:
    """Read a model as a plan has it, all of it but external data.

    Parameters
    ----------
    path
        The model that the plan was made for.

    Raises
    ------
    ModelError
        If it cannot be used.
    PlanError
        If the plan's operators are not those of the model.
    """
    model = inline_functions(_load_model(path), plan.model.name)
    _fix_unused_inputs(model, plan)
    model_tensors = {*plan.inputs, *(name for node in model.graph.node for name in node.output)}
    shapes = {
        name: (tensor.dtype, tensor.shape)
        for name, tensor in plan.tensors.items()
        if name in model_tensors and tensor.dtype in _PLAIN
    }
    try:
        _, resolved = resolve_proto(model, plan.model.name, shapes=shapes)
    except ModelError as error:
        raise PlanError(f"the plan does not fit its model: {error}") from error
    nodes = _operator_nodes(plan, resolved)
    _check_reads(plan, nodes, resolved)
    # The standard operators have their version under the name that nodes give them.
    versions = {
        "" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import
    }
    opsets = tuple(onnx.helper.make_opsetid(*each) for each in versions.items())
    return Network(nodes, resolved, opsets, model.ir_version, path.parent)


def _load_model(path: Path) -> onnx.ModelProto:
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ModelError(f"'{path}' is damaged ({error}): export the model again") from None


def _fix_unused_inputs(model: onnx.ModelProto, plan: Plan) -> None:
    """Give some size to unknown dimensions of inputs that the plan has no use for."""
    unused = [value for value in model.graph.input if value.name not in plan.inputs]
    used = {
        dim.dim_param
        for value in model.graph.input
        if value.name in plan.inputs
        for dim in value.type.tensor_type.shape.dim
    }
    for value in unused:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value") and (not dim.dim_param or dim.dim_param not in used):
                dim.dim_value = 1


def _operator_nodes(plan: Plan, resolved: Resolved) -> dict[str, tuple[onnx.NodeProto, ...]]:
    by_name = {item.name: item for item in resolved.nodes}
    unknown = [
        f"'{member}' of operator '{operator.id}'"
        for operator in plan.operators
        for member in operator.members
        if member not in by_name
    ]
    if unknown:
        raise PlanError(
            f"the plan has nodes that its model '{plan.model.name}' has not ({listed(unknown)}): "
            "map the model again"
        )
    new_name = _new_names(plan, resolved.nodes)
    return {
        operator.id: tuple(
            rename_node(deepcopy(by_name[name].node), new_name) for name in operator.members
        )
        for operator in plan.operators
    }


def _new_names(plan: Plan, nodes: Iterable[ResolvedNode]) -> dict[str, str]:
    """Return the plan's names of tensors that it calls otherwise.

    What a node without effect hands on is the tensor that it reads; that one is called by the name
    of a graph output where such a node makes one.
    """
    members = {member for operator in plan.operators for member in operator.members}
    singles = (single for each in plan.operators for single in (each, *each.parts))
    outputs = {*plan.inputs, *(name for single in singles for name in single.outputs)}
    source: dict[str, str] = {}
    for item in nodes:
        if item.name not in members and item.reads:
            source[item.writes[0]] = source.get(item.reads[0], item.reads[0])
    names = {
        first: name for name, first in source.items() if name in outputs and first not in outputs
    }
    return {name: names.get(first, first) for name, first in source.items()} | names


def _check_reads(
    plan: Plan, nodes: Mapping[str, tuple[onnx.NodeProto, ...]], resolved: Resolved
) -> None:
    """Check that operators read and make in the model what they do in the plan."""
    mistakes = []
    for operator in plan.operators:
        outputs: set[str] = set()
        read: set[str] = set()
        for node in nodes[operator.id]:
            read.update(name for name in reads_of(node) if name and name not in outputs)
            outputs.update(node.output)
        read = {name for name in read if name not in resolved.origins}
        if read != set(operands_of(operator, plan)) or not outputs.issuperset(operator.outputs):
            mistakes.append(f"'{operator.id}'")
    if mistakes:
        raise PlanError(
            f"operators read or make other tensors in the plan than in its model "
            f"'{plan.model.name}' ({listed(mistakes)}): map the model again"
        )


SEGMENT_IR = 10
"""The oldest with metadata of nodes; ONNX Runtime 1.20, the oldest supported, reads no newer."""
PLAIN_IR = 4
"""The first in which initializers need not be inputs."""
STAGED_IR = 11
"""The first with device configurations."""
LAYER = "layer_ann"
"""Metadata of a node by which ONNX Runtime assigns it to a device.

Source: https://onnxruntime.ai/docs, "Graph Partitioning with Annotations and Memory Constraints".
"""
_NEWEST_TYPE = onnx.TensorProto.INT4  # of those that IR version 10 knows


@dataclass(frozen=True, slots=True)
class Marked:
    """Nodes of one operator and where they run."""

    nodes: Sequence[onnx.NodeProto]
    processor: str
    stage: int


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What goes into one model file.

    Parameters
    ----------
    name
        Of the graph.
    marked
        Nodes, in order.
    inputs, outputs
        Names of its tensors.
    """

    name: str
    marked: Sequence[Marked]
    inputs: Sequence[str]
    outputs: Sequence[str]

    @property
    def nodes(self) -> Iterator[onnx.NodeProto]:
        """All nodes, in order."""
        return (node for each in self.marked for node in each.nodes)

    @property
    def reads(self) -> Iterator[str]:
        """What they read."""
        return (name for node in self.nodes for name in reads_of(node))


def placed_tensors(part: ModelFile, network: Network) -> dict[Key, onnx.TensorProto]:
    """Return the tensors of a model file whose data go into files of weights."""
    constants = constant_parts(part.reads, network.resolved)
    sparse = (each for s in constants.sparse.values() for each in (s.values, s.indices))
    within = (*sparse, *tensors_of_nodes(constants.nodes), *tensors_of_nodes(part.nodes))
    placed = {key_of(n, t): t for n, t in constants.tensors.items() if is_placed(t)}
    # What is no initializer, but in a body or an attribute, stays there if it is inside the file.
    return placed | {key_of(each.name, each): each for each in within if is_external(each)}


def segment_model(
    part: ModelFile, network: Network, where: Mapping[Key, Place], about: Mapping[str, str]
) -> onnx.ModelProto:
    """Return the model of a segment; its nodes have the processor's name.

    Parameters
    ----------
    where
        Places of all tensors that go into files of weights.
    about
        Metadata of the model.
    """
    model = _build_model(part, network, where, SEGMENT_IR)
    _mark_processors(model, part)
    onnx.helper.set_model_props(model, dict(about))
    return model


def plain_model(part: ModelFile, network: Network, where: Mapping[Key, Place]) -> onnx.ModelProto:
    """Return the model of a segment without marks or metadata, of the oldest version that will do.

    Parameters
    ----------
    where
        Places of tensors that go into files of weights; the others stay as they are in the model.
    """
    model = _build_model(part, network, where, min(max(network.ir_version, PLAIN_IR), SEGMENT_IR))
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("device_configurations")
        node.ClearField("doc_string")
    return model


def staged_model(
    part: ModelFile,
    network: Network,
    where: Mapping[Key, Place],
    configuration: str,
    processors: Sequence[str],
) -> onnx.ModelProto:
    """Return the model of a whole network with a device configuration.

    Each node says in which pipeline stage it is and on which device its outputs are made.

    Parameters
    ----------
    configuration
        Name of the device configuration.
    processors
        Its devices.
    """
    model = _build_model(part, network, where, STAGED_IR)
    _mark_processors(model, part)
    model.configuration.add(name=configuration, num_devices=len(processors), device=processors)
    nodes = iter(model.graph.node[len(model.graph.node) - len(list(part.nodes)) :])
    for each in part.marked:
        for _ in each.nodes:
            node = next(nodes)
            at = node.device_configurations.add(
                configuration_id=configuration, pipeline_stage=each.stage
            )
            for name in filter(None, node.output):
                at.sharding_spec.add(tensor_name=name, device=[processors.index(each.processor)])
    return model


def _build_model(
    part: ModelFile, network: Network, where: Mapping[Key, Place], ir_version: int
) -> onnx.ModelProto:
    constants = constant_parts(part.reads, network.resolved)
    sparse = deepcopy(list(constants.sparse.values()))
    for each in sparse:
        _refer_all((each.values, each.indices), where)
    nodes = [_copy_node(node, where) for node in constants.nodes]
    nodes += [_copy_node(node, where) for node in part.nodes]
    inputs, outputs = (
        [onnx.helper.make_value_info(name, network.resolved.types[name]) for name in names]
        for names in (part.inputs, part.outputs)
    )
    graph = onnx.helper.make_graph(
        nodes,
        part.name,
        inputs,
        outputs,
        [_make_initializer(name, tensor, where) for name, tensor in constants.tensors.items()],
        sparse_initializer=sparse,
    )
    types = [tensor.data_type for tensor in constants.tensors.values()]
    types += [kind.tensor_type.elem_type for kind in network.resolved.types.values()]
    if max(types) > _NEWEST_TYPE:
        ir_version = max(ir_version, network.ir_version)
    return onnx.helper.make_model(
        graph, opset_imports=network.opsets, ir_version=ir_version, producer_name="parapipe"
    )


def _make_initializer(
    name: str, tensor: onnx.TensorProto, where: Mapping[Key, Place]
) -> onnx.TensorProto:
    place = where.get(key_of(name, tensor)) if is_placed(tensor) else None
    if place is None:
        copy = deepcopy(tensor)
    else:
        copy = onnx.TensorProto(dims=tensor.dims, data_type=tensor.data_type)
        refer(copy, place)
    copy.name = name
    return copy


def _copy_node(original: onnx.NodeProto, where: Mapping[Key, Place]) -> onnx.NodeProto:
    node = deepcopy(original)
    _refer_all(tensors_of_nodes([node]), where)
    return node


def _refer_all(tensors: Iterable[onnx.TensorProto], where: Mapping[Key, Place]) -> None:
    for tensor in tensors:
        place = where.get(key_of(tensor.name, tensor)) if is_external(tensor) else None
        if place is not None:
            refer(tensor, place)


def _mark_processors(model: onnx.ModelProto, part: ModelFile) -> None:
    """Put the processors' names in the place of what the model said of layers and devices."""
    processors = [each.processor for each in part.marked for _ in each.nodes]
    computed = len(model.graph.node) - len(processors)  # constants, which come first
    for node, processor in zip(model.graph.node[computed:], processors, strict=True):
        other_entries = [entry for entry in node.metadata_props if entry.key != LAYER]
        node.ClearField("metadata_props")
        node.ClearField("device_configurations")
        node.metadata_props.extend(other_entries)
        node.metadata_props.add(key=LAYER, value=processor)
