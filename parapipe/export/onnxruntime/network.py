"""A plan's operators as ONNX nodes, under the names that the plan gives to tensors.

Model-local functions are inlined, what is constant is known, and nodes without effect are gone, as
on import; so a plan's members are found by the names that they had there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import onnx

from parapipe.errors import ModelError, PlanError
from parapipe.files.mistakes import listed
from parapipe.graph.data_types import dtype_names
from parapipe.graph.onnx_import import resolve_proto
from parapipe.graph.order import inlined, reads_of, renamed_node
from parapipe.graph.resolve import Resolved, ResolvedNode
from parapipe.plan.mapped import reads
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
    model = inlined(_read(path), plan.model.name)
    _fix_unused_inputs(model, plan)
    known = {*plan.inputs, *(name for node in model.graph.node for name in node.output)}
    shapes = {
        name: (tensor.dtype, tensor.shape)
        for name, tensor in plan.tensors.items()
        if name in known and tensor.dtype in _PLAIN
    }
    try:
        _, resolved = resolve_proto(model, plan.model.name, shapes=shapes)
    except ModelError as error:
        raise PlanError(f"the plan does not fit its model: {error}") from error
    nodes = _nodes(plan, resolved)
    _check_reads(plan, nodes, resolved)
    # The standard operators have their version under the name that nodes give them.
    versions = {
        "" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import
    }
    opsets = tuple(onnx.helper.make_opsetid(*each) for each in versions.items())
    return Network(nodes, resolved, opsets, model.ir_version, path.parent)


def _read(path: Path) -> onnx.ModelProto:
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


def _nodes(plan: Plan, resolved: Resolved) -> dict[str, tuple[onnx.NodeProto, ...]]:
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
            renamed_node(deepcopy(by_name[name].node), new_name) for name in operator.members
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
    made = {*plan.inputs, *(name for single in singles for name in single.outputs)}
    source: dict[str, str] = {}
    for item in nodes:
        if item.name not in members and item.reads:
            source[item.writes[0]] = source.get(item.reads[0], item.reads[0])
    names = {first: name for name, first in source.items() if name in made and first not in made}
    return {name: names.get(first, first) for name, first in source.items()} | names


def _check_reads(
    plan: Plan, nodes: Mapping[str, tuple[onnx.NodeProto, ...]], resolved: Resolved
) -> None:
    """Check that operators read and make in the model what they do in the plan."""
    mistakes = []
    for operator in plan.operators:
        made: set[str] = set()
        read: set[str] = set()
        for node in nodes[operator.id]:
            read.update(name for name in reads_of(node) if name and name not in made)
            made.update(node.output)
        read = {name for name in read if name not in resolved.origins}
        if read != set(reads(operator, plan)) or not made.issuperset(operator.outputs):
            mistakes.append(f"'{operator.id}'")
    if mistakes:
        raise PlanError(
            f"operators read or make other tensors in the plan than in its model "
            f"'{plan.model.name}' ({listed(mistakes)}): map the model again"
        )
