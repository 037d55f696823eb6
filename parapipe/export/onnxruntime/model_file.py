"""ONNX models of a plan's segments, their nodes marked with processor and stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import onnx

from parapipe.export.constants import constant_parts
from parapipe.export.onnxruntime.network import Network
from parapipe.export.onnxruntime.weights import Key, Place, is_placed, key_of, refer
from parapipe.graph.model_source import is_external, tensors_of_nodes
from parapipe.graph.order import reads_of

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
    _annotate(model, part)
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
    _annotate(model, part)
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
        [_initializer(name, tensor, where) for name, tensor in constants.tensors.items()],
        sparse_initializer=sparse,
    )
    types = [tensor.data_type for tensor in constants.tensors.values()]
    types += [kind.tensor_type.elem_type for kind in network.resolved.types.values()]
    if max(types) > _NEWEST_TYPE:
        ir_version = max(ir_version, network.ir_version)
    return onnx.helper.make_model(
        graph, opset_imports=network.opsets, ir_version=ir_version, producer_name="parapipe"
    )


def _initializer(
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


def _annotate(model: onnx.ModelProto, part: ModelFile) -> None:
    """Put the processors' names in the place of what the model said of layers and devices."""
    processors = [each.processor for each in part.marked for _ in each.nodes]
    computed = len(model.graph.node) - len(processors)  # constants, which come first
    for node, processor in zip(model.graph.node[computed:], processors, strict=True):
        other_entries = [entry for entry in node.metadata_props if entry.key != LAYER]
        node.ClearField("metadata_props")
        node.ClearField("device_configurations")
        node.metadata_props.extend(other_entries)
        node.metadata_props.add(key=LAYER, value=processor)
