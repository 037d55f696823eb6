"""Several models as one: frames of each, side by side, with nothing between them.

A graph of several models is an operator graph like any other. The names of each frame's operators
and tensors begin with those of the model and of the frame, see `Member.prefix`; initializers begin
with the model's name alone, for its frames share them. What is made of the models' files in the
same way has the same names, so that plans of the graph fit it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import TypeVar

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import (
    Constant,
    Member,
    ModelSource,
    Operator,
    OperatorGraph,
    Tensor,
)
from parapipe.graph.order import inline_functions, rename_node

Named = TypeVar("Named", Tensor, Constant)


def source_of_members(members: Sequence[Member]) -> ModelSource:
    """Return where a graph of several models came from."""
    text = "".join(f"{each.name} {each.frames} {each.source.sha256}\n" for each in members)
    digest = sha256(text.encode()).hexdigest() if all(m.source.sha256 for m in members) else ""
    return ModelSource(" + ".join(each.name for each in members), digest, members=tuple(members))


def union(graphs: Sequence[OperatorGraph], members: Sequence[Member]) -> OperatorGraph:
    """Return the graph of several models: the frames of the first, then those of the next.

    Parameters
    ----------
    graphs
        One for each member.
    """
    operators: list[Operator] = []
    tensors: dict[str, Tensor] = {}
    constants: dict[str, Constant] = {}
    inputs: list[str] = []
    outputs: list[str] = []
    opsets: dict[str, int] = {}
    for graph, member in zip(graphs, members, strict=True):
        opsets |= {
            each: max(version, opsets.get(each, 0)) for each, version in graph.opsets.items()
        }
        for frame in range(member.frames):
            names = _Names(graph, member, frame)
            operators += map(names.operator, graph.operators)
            tensors |= {each.name: each for each in map(names.renamed, graph.tensors.values())}
            constants |= {each.name: each for each in names.constants()}
            inputs += map(names.name_of, graph.inputs)
            outputs += map(names.name_of, graph.outputs)
    return OperatorGraph(
        source_of_members(members),
        graphs[0].granularity,
        tuple(operators),
        tensors,
        constants,
        tuple(inputs),
        tuple(outputs),
        tuple(
            f"{member.name}: {note}"
            for graph, member in zip(graphs, members, strict=True)
            for note in graph.notes
        ),
        opsets,
    )


class _Names:
    """The names of one frame of a model."""

    def __init__(self, graph: OperatorGraph, member: Member, frame: int) -> None:
        self.graph, self.shared, self.own = graph, f"{member.name}/", member.prefix(frame)

    def name_of(self, name: str) -> str:
        """Return the name of a tensor, a constant or a node; "" stays."""
        constant = self.graph.constants.get(name)
        shared = constant is not None and not constant.nodes
        return name and (self.shared if shared else self.own) + name

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of several."""
        return tuple(map(self.name_of, names))

    def renamed(self, each: Named) -> Named:
        """Return a tensor or a constant."""
        return replace(each, name=self.name_of(each.name))

    def constants(self) -> Iterator[Constant]:
        """Yield the constants; nodes that compute some are the frame's own."""
        for each in self.graph.constants.values():
            yield replace(self.renamed(each), nodes=tuple(self.own + name for name in each.nodes))

    def operator(self, operator: Operator) -> Operator:
        """Return an operator."""
        return replace(
            operator,
            id=self.name_of(operator.id),
            name=self.own + operator.name,
            inputs=self.names(operator.inputs),
            outputs=self.names(operator.outputs),
            members=tuple(self.own + name for name in operator.members),
            parts=tuple(map(self.operator, operator.parts)),
            folded=tuple(map(self.operator, operator.folded)),
        )


def union_proto(
    models: Sequence[onnx.ModelProto], members: Sequence[Member], *, shapes: bool = True
) -> onnx.ModelProto:
    """Return the ONNX model of several: what `union` returns, as a file.

    Parameters
    ----------
    models
        One for each member; data of their weights are with them.
    shapes
        Whether to keep the shapes that they state of what is between operators.

    Raises
    ------
    ModelError
        If they have other versions of the same operators: a file has one version.
    """
    _check_versions(models, members)
    graph = onnx.GraphProto(name="several")
    versions: dict[str, int] = {}
    for model, member in zip(models, members, strict=True):
        flat = inline_functions(model, member.source.name)
        versions |= _opset_versions(flat)
        _add_frames(graph, flat.graph, member, shapes)
    opsets = [onnx.helper.make_opsetid(*each) for each in versions.items()]
    return onnx.helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=max(model.ir_version for model in models),
        producer_name="parapipe",
    )


def _opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    return {
        "" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import
    }


def _check_versions(models: Sequence[onnx.ModelProto], members: Sequence[Member]) -> None:
    by_domain: dict[str, dict[str, int]] = {}
    for model, member in zip(models, members, strict=True):
        for domain, version in _opset_versions(model).items():
            by_domain.setdefault(domain, {})[member.name] = version
    for domain, version_of in by_domain.items():
        if len({*version_of.values()}) > 1:
            text = listed([f"'{name}' has {version}" for name, version in version_of.items()])
            what = f"of '{domain}'" if domain else "of ONNX's operators"
            raise ModelError(
                f"models with other versions {what} cannot be put into one file ({text}): convert "
                "them to the same, by onnx.version_converter"
            )


def _add_frames(to: onnx.GraphProto, graph: onnx.GraphProto, member: Member, shapes: bool) -> None:
    """Add the frames of a model; it is left as it was, and shares its weights' data with nobody."""
    weights = [each.name for each in graph.initializer]
    weights += [each.values.name for each in graph.sparse_initializer]
    shared = {name: f"{member.name}/{name}" for name in weights}
    for tensor in graph.initializer:
        to.initializer.add().CopyFrom(tensor)
        to.initializer[-1].name = shared[tensor.name]
    for sparse in graph.sparse_initializer:
        to.sparse_initializer.add().CopyFrom(sparse)
        to.sparse_initializer[-1].values.name = shared[sparse.values.name]
    for frame in range(member.frames):
        prefix = member.prefix(frame)
        own = (*(each.name for each in graph.input), *chain(*(node.output for node in graph.node)))
        names = {name: prefix + name for name in own if name} | shared
        for node in graph.node:
            copy = rename_node(deepcopy(node), names)
            copy.name = copy.name and prefix + copy.name
            to.node.append(copy)
        fed = [each for each in graph.input if each.name not in shared]
        _add_renamed(to.input, fed, names)
        _add_renamed(to.output, graph.output, names)
        if shapes:
            intermediate = [each for each in graph.value_info if each.name not in shared]
            _add_renamed(to.value_info, intermediate, names)


def _add_renamed(
    to: MutableSequence[onnx.ValueInfoProto],
    values: Sequence[onnx.ValueInfoProto],
    names: Mapping[str, str],
) -> None:
    for each in values:
        copy = deepcopy(each)
        copy.name = names.get(each.name, each.name)
        to.append(copy)
