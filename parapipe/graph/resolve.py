"""Walks an ONNX graph in topological order: what is constant, and the shape of everything else.

Shapes and small constant values are found together, node by node: the value of a shape chain
(Shape, Gather, Concat) is known before the Reshape that needs it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import onnx

from parapipe.errors import ModelError
from parapipe.graph.contrib_shapes import infer_contrib
from parapipe.graph.infer import (
    MOST_ELEMENTS,
    Array,
    constant_value,
    evaluate,
    infer,
    shape_of,
    tensor_of,
    tensor_type,
)
from parapipe.graph.listing import listed
from parapipe.graph.model_source import is_external
from parapipe.graph.operator_graph import Constant, Tensor
from parapipe.graph.order import needed, ordered, reads_of

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"}
    | {"Multinomial", "Bernoulli"}
)
_DATA_FIELDS = (
    "raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data",
    "uint64_data",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """An ONNX node that computes something in each frame.

    Parameters
    ----------
    name
        Unique: that of its first output where the node has none or shares it with another.
    reads
        Its inputs by position, "" where omitted, then what its subgraphs take from outside.
    writes
        Its outputs without optional ones that nobody reads.
    """

    node: onnx.NodeProto
    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The nodes that the outputs need, in topological order, and all they read and write.

    Parameters
    ----------
    values
        Small constants.
    outputs
        Graph outputs that a node makes; those that are constants or graph inputs are left out.
    """

    nodes: tuple[ResolvedNode, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    values: Mapping[str, Array]
    outputs: tuple[str, ...]


def resolve(
    model: onnx.ModelProto,
    model_name: str,
    inputs: Mapping[str, onnx.TypeProto],
    declared: Mapping[str, onnx.TypeProto],
) -> Resolved:
    """Find shapes, types and constants of a whole model.

    Parameters
    ----------
    inputs
        Types of the graph inputs, with known shapes.
    declared
        Types that the file declares for results; used where none can be inferred.

    Raises
    ------
    ModelError
        If the graph is not well formed, if it computes nothing from its inputs, or if shapes
        stay unknown; all their operators are named.
    """
    graph = model.graph
    outputs = list(dict.fromkeys(value.name for value in graph.output))
    walk = _Walk(_opsets(model), declared, dict(inputs))
    walk.tensors.update(_known_tensors(inputs))
    walk.add_initializers(graph)
    nodes = ordered(model_name, graph.node, walk.types)
    made = {name for node in nodes for name in node.output}
    if lost := [f"'{name}'" for name in outputs if name not in made and name not in walk.types]:
        raise ModelError(
            f"'{model_name}' has outputs that nothing makes ({listed(lost)}): export it again"
        )
    walk.run(needed(nodes, outputs))
    return _live(model_name, walk, outputs)


def _opsets(model: onnx.ModelProto) -> list[onnx.OperatorSetIdProto]:
    found = []
    for opset in model.opset_import:
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        found.append(onnx.helper.make_opsetid(domain, opset.version))
    return found


def _known_tensors(types: Mapping[str, onnx.TypeProto]) -> dict[str, Tensor]:
    found = {name: tensor_of(name, kind) for name, kind in types.items()}
    return {name: tensor for name, tensor in found.items() if tensor}


@dataclass(slots=True)
class _Walk:
    """What is known so far, while the nodes are visited one after the other."""

    opsets: list[onnx.OperatorSetIdProto]
    declared: Mapping[str, onnx.TypeProto]
    types: dict[str, onnx.TypeProto]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    kept: list[onnx.NodeProto] = field(default_factory=list)
    why_unknown: dict[str, str] = field(default_factory=dict)
    times_named: Counter[str] = field(default_factory=Counter)

    def name(self, node: onnx.NodeProto) -> str:
        """Name of a node, unique in the graph."""
        if self.times_named[node.name] == 1:
            return node.name
        return next((name for name in node.output if name), node.name or node.op_type)

    def add_initializers(self, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            self._add_tensor(tensor.name, tensor, ())
        for sparse in graph.sparse_initializer:
            kind = tensor_type(sparse.values.data_type, sparse.dims)
            self._add_constant(sparse.values.name, kind, ())

    def run(self, nodes: Sequence[onnx.NodeProto]) -> None:
        self.times_named.update(node.name for node in nodes if node.name)
        waiting = deque(nodes)
        while waiting:
            node = waiting.popleft()
            branch = self._taken_branch(node)
            if branch is None:
                self._visit(_in_main_domain(node))
            else:
                self.add_initializers(branch)
                inlined = [*branch.node, *_renaming(branch, node)]
                self.times_named.update(inner.name for inner in inlined if inner.name)
                waiting.extendleft(reversed(inlined))

    def _taken_branch(self, node: onnx.NodeProto) -> onnx.GraphProto | None:
        """Return the branch of an If whose condition is known; None for all else."""
        condition = self.values.get(node.input[0]) if node.op_type == "If" else None
        if condition is None or condition.size != 1:
            return None
        wanted = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        branch = next((a.g for a in node.attribute if a.name == wanted), None)
        own = {name for inner in branch.node for name in inner.output} if branch else set()
        # Two branches may use the same names inside; the second one is not inlined.
        return branch if own.isdisjoint(self.types) else None

    def _visit(self, node: onnx.NodeProto) -> None:
        reads = [name for name in reads_of(node) if name]
        if node.op_type == "Constant" and not node.domain:
            self._visit_constant(node)
            return
        inferred: dict[str, onnx.TypeProto] = {}
        why = ""
        if all(name in self.types for name in reads):
            inferred, why = infer(node, self.types, self.values, self.opsets)
            inferred = inferred or infer_contrib(node, self.types, self.opsets)
        for name in filter(None, node.output):
            if shape_of(inferred.get(name)) is None and shape_of(self.declared.get(name)):
                inferred[name] = self.declared[name]
        if not (self._is_constant(node, reads) and self._fold(node, reads, inferred)):
            self._keep(node, inferred, why)

    def _visit_constant(self, node: onnx.NodeProto) -> None:
        name = node.output[0]
        value = constant_value(node)
        recipe = (self.name(node),)
        if isinstance(value, onnx.TensorProto):
            self._add_tensor(name, value, recipe)
        elif isinstance(value, onnx.SparseTensorProto):
            self._add_constant(name, tensor_type(value.values.data_type, value.dims), recipe)
        elif value is not None:
            self._add_value(name, value, recipe)
        else:
            self._keep(node, {}, "it holds no value")

    def _is_constant(self, node: onnx.NodeProto, reads: Sequence[str]) -> bool:
        if node.op_type in ("Shape", "Size") and not node.domain:
            return shape_of(self.types.get(node.input[0])) is not None
        plain = not any(a.HasField("g") or a.graphs for a in node.attribute)
        known = onnx.defs.has(node.op_type, node.domain) and node.op_type not in _RANDOM
        return plain and known and all(name in self.constants for name in reads)

    def _fold(
        self, node: onnx.NodeProto, reads: Sequence[str], inferred: Mapping[str, onnx.TypeProto]
    ) -> bool:
        """Make constants of the outputs; False if the shape of one stays unknown."""
        values = evaluate(node, self.types, self.values, self.opsets, inferred)
        names = [name for name in node.output if name]
        if any(
            name not in values and tensor_of(name, inferred.get(name)) is None for name in names
        ):
            return False
        before = (self.constants[name].nodes for name in reads if name in self.constants)
        recipe = (*dict.fromkeys(step for steps in before for step in steps), self.name(node))
        for name in names:
            if name in values:
                self._add_value(name, values[name], recipe)
            else:
                self._add_constant(name, inferred[name], recipe)
        return True

    def _keep(self, node: onnx.NodeProto, inferred: Mapping[str, onnx.TypeProto], why: str) -> None:
        self.kept.append(node)
        for name in filter(None, node.output):
            if name in inferred:
                self.types[name] = inferred[name]
            tensor = tensor_of(name, inferred.get(name))
            if tensor:
                self.tensors[name] = tensor
            else:
                self.why_unknown[name] = why

    def _add_tensor(self, name: str, tensor: onnx.TensorProto, recipe: tuple[str, ...]) -> None:
        self._add_constant(
            name, tensor_type(tensor.data_type, tensor.dims), recipe, external=is_external(tensor)
        )
        if _has_data(tensor) and prod(tensor.dims) <= MOST_ELEMENTS:
            self.values[name] = onnx.numpy_helper.to_array(tensor)

    def _add_value(self, name: str, value: Array, recipe: tuple[str, ...]) -> None:
        element_type = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        self._add_constant(name, tensor_type(element_type, value.shape), recipe)
        self.values[name] = value

    def _add_constant(
        self, name: str, kind: onnx.TypeProto, recipe: tuple[str, ...], *, external: bool = False
    ) -> None:
        self.types[name] = kind
        tensor = tensor_of(name, kind)
        if tensor:
            self.constants[name] = Constant(name, tensor.shape, tensor.dtype, recipe, external)


def _in_main_domain(node: onnx.NodeProto) -> onnx.NodeProto:
    if node.domain != "ai.onnx":
        return node
    renamed = onnx.NodeProto()
    renamed.CopyFrom(node)
    renamed.domain = ""
    return renamed


def _renaming(branch: onnx.GraphProto, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    pairs = zip(branch.output, node.output, strict=True)
    return [
        onnx.helper.make_node("Identity", [inner.name], [outer]) for inner, outer in pairs if outer
    ]


def _has_data(tensor: onnx.TensorProto) -> bool:
    if is_external(tensor):
        return False
    return prod(tensor.dims) == 0 or any(len(getattr(tensor, name)) for name in _DATA_FIELDS)


def _live(model_name: str, walk: _Walk, outputs: Iterable[str]) -> Resolved:
    """Keep what the outputs need once constants are folded, and check that all is known."""
    nodes = needed(walk.kept, outputs)
    made = {name for node in nodes for name in node.output}
    wanted = tuple(name for name in outputs if name in made)
    if not wanted:
        raise ModelError(
            f"'{model_name}' has no output that depends on an input: nothing is left to map"
        )
    read = {name for node in nodes for name in reads_of(node)}.union(wanted)
    resolved = tuple(
        ResolvedNode(node, walk.name(node), reads_of(node), _writes(node, read, walk.opsets))
        for node in nodes
    )
    _check_known(model_name, resolved, walk)
    return Resolved(resolved, walk.tensors, walk.constants, walk.values, wanted)


def _writes(
    node: onnx.NodeProto, read: Collection[str], opsets: Iterable[onnx.OperatorSetIdProto]
) -> tuple[str, ...]:
    optional: set[int] = set()
    version = next((opset.version for opset in opsets if opset.domain == node.domain), 0)
    if version and onnx.defs.has(node.op_type, version, node.domain):
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        kind = onnx.defs.OpSchema.FormalParameterOption.Optional
        optional = {i for i, output in enumerate(schema.outputs) if output.option == kind}
    return tuple(
        name
        for position, name in enumerate(node.output)
        if name and (name in read or position not in optional)
    )


def _check_known(model_name: str, nodes: Sequence[ResolvedNode], walk: _Walk) -> None:
    made = {name for node in nodes for name in node.writes}
    known = walk.tensors.keys() | walk.constants.keys()
    read = {name for node in nodes for name in node.reads if name}
    if odd := sorted(f"'{name}'" for name in read - known - made):
        raise ModelError(
            f"'{model_name}' has constants of a type that parapipe does not know "
            f"({listed(odd)}): export it with another data type"
        )
    unknown = [node for node in nodes if not known.issuperset(node.writes)]
    # Others are unknown because these are.
    causes = [node for node in unknown if known.issuperset(filter(None, node.reads))] or unknown
    if causes:
        offenders = [_offender(node, walk.why_unknown) for node in causes]
        raise ModelError(
            f"'{model_name}' has {len(made - known)} results of unknown shape or type, first "
            f"those of {listed(offenders)}: declare the shapes of these outputs in the model "
            "(value_info), or give other input shapes with --shape"
        )


def _offender(node: ResolvedNode, why_unknown: Mapping[str, str]) -> str:
    domain = f"{node.node.domain}." if node.node.domain else ""
    why = next((reason for name in node.writes if (reason := why_unknown.get(name))), "")
    return f"operator '{node.name}' ({domain}{node.node.op_type}{': ' + why if why else ''})"
