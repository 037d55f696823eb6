"""The walk through an ONNX graph that finds shapes, types and constants, node by node.

Shapes and small constant values are found together: the value of a shape chain (Shape, Gather,
Concat) is known before the Reshape that needs it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import onnx

from parapipe.graph.bodies import Walked, infer_by_bodies
from parapipe.graph.contrib_shapes import infer_contrib
from parapipe.graph.dtypes import dtype_name
from parapipe.graph.given_shapes import Given
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
from parapipe.graph.model_source import is_external
from parapipe.graph.operator_graph import Constant, Tensor
from parapipe.graph.order import has_body, reads_of, taken_from_outside
from parapipe.graph.sequences import Elements, Lists, elements_of, sequence_tensor, taken_shape
from parapipe.graph.shape_facts import element_type_of, filled_in, why_no_tensor, why_unknown
from parapipe.graph.soundness import has_data

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"}
    | {"Multinomial", "Bernoulli"}
)

Origin = onnx.TensorProto | onnx.SparseTensorProto | onnx.NodeProto


@dataclass(slots=True)
class Walk:
    """What is known so far, while the nodes are visited one after the other.

    Parameters
    ----------
    declared
        Types that the file declares for results; used where none can be inferred.
    given
        What the user says of results.
    types
        Of the graph inputs at first, then of everything.
    times_named
        How many nodes of the file have each name.
    kept
        The nodes that are no constants, in order.
    recipes
        The node that computes each constant and what it reads, where a node does.
    origins
        What each constant stems from: a tensor of the file, or the node that computes it.
    elements
        Shapes of the elements of sequences whose length is known.
    why_unknown
        Reasons, by name of the results whose shape or type is not known.
    disagreeing
        Where what the user says is not what follows from the inputs.
    """

    opsets: list[onnx.OperatorSetIdProto]
    declared: Mapping[str, onnx.TypeProto]
    given: Mapping[str, Given]
    types: dict[str, onnx.TypeProto]
    times_named: Counter[str]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    recipes: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    kept: list[onnx.NodeProto] = field(default_factory=list)
    elements: dict[str, Elements] = field(default_factory=dict)
    why_unknown: dict[str, str] = field(default_factory=dict)
    disagreeing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take over the graph inputs."""
        for name, kind in self.types.items():
            if tensor := tensor_of(name, kind):
                self.tensors[name] = tensor

    def name(self, node: onnx.NodeProto) -> str:
        """Return a node's name, or its first output's where the name is missing or shared."""
        if self.times_named[node.name] == 1:
            return node.name
        return next((name for name in node.output if name), node.name or node.op_type)

    def add_initializers(self, graph: onnx.GraphProto) -> None:
        """Take over the constants of a graph or of the branch of an If."""
        for tensor in graph.initializer:
            self._add_tensor(tensor.name, tensor)
            self.origins[tensor.name] = tensor
        for sparse in graph.sparse_initializer:
            kind = tensor_type(sparse.values.data_type, sparse.dims)
            self._add_constant(sparse.values.name, kind)
            self.origins[sparse.values.name] = sparse

    def run(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Visit nodes, which must be in topological order."""
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
        contradiction = ""
        if all(name in self.types for name in reads):
            inferred, contradiction = infer(node, self.types, self.values, self.opsets)
            if not inferred and not contradiction:
                inferred = infer_contrib(node, self.types, self.opsets)
        if not contradiction:
            if has_body(node) and any(
                shape_of(inferred.get(name)) is None for name in node.output if name
            ):
                inferred |= infer_by_bodies(
                    node, self.types, self.values, self.version(), self._walk_body
                )
            self._fill_in(node, inferred)
        if not (self._is_constant(node, reads) and self._fold(node, reads, inferred)):
            self._keep(node, inferred, contradiction or why_unknown(node))

    def version(self) -> int:
        """Return the version of the standard operators."""
        return next((opset.version for opset in self.opsets if not opset.domain), 0)

    def _walk_body(self, body: onnx.GraphProto, fed: Mapping[str, onnx.TypeProto]) -> Walked:
        """Walk through a body by itself, with what is known outside of it."""
        outside = {name for name in taken_from_outside(body) if name in self.types}
        declared = {value.name: value.type for value in (*body.value_info, *body.output)}
        types = {**{name: self.types[name] for name in outside}, **fed}
        inner = Walk(self.opsets, declared, {}, types, Counter())
        inner.constants |= {n: self.constants[n] for n in outside if n in self.constants}
        inner.values |= {n: self.values[n] for n in outside if n in self.values}
        inner.elements |= {n: self.elements[n] for n in outside if n in self.elements}
        inner.add_initializers(body)
        inner.run(body.node)
        values = [inner.values.get(value.name) for value in body.output]
        return Walked(
            tuple(inner.types.get(value.name) for value in body.output),
            tuple(value is not None and bool(value.all()) for value in values),
        )

    def _fill_in(self, node: onnx.NodeProto, inferred: dict[str, onnx.TypeProto]) -> None:
        """Take what inference leaves open from sequences, the user, and the file."""
        lists = Lists(self.elements, self.types, self.values)
        elements = elements_of(node, lists)
        if elements is not None:
            self.elements[node.output[0]] = elements
        taken = taken_shape(node, lists)
        for position, name in enumerate(node.output):
            if not name:
                continue
            follows = taken if position == 0 else None
            inferred_shape = shape_of(inferred.get(name))
            given = self.given.get(name)
            if given is not None:
                self._compare(name, given, inferred.get(name))
            if inferred_shape is None:
                known = inferred.get(name), self.declared.get(name)
                kind = (
                    filled_in(*known, given.shape, given.element_type)
                    if given is not None
                    else filled_in(*known, follows)
                )
                if kind is not None:
                    inferred[name] = kind

    def _compare(self, name: str, given: Given, inferred: onnx.TypeProto | None) -> None:
        """Remember where what the user says is not what is known without."""
        shape = shape_of(inferred)
        if shape is not None and given.shape != shape:
            self.disagreeing.append(f"'{name}' is {_extents(shape)}, not {_extents(given.shape)}")
        known = element_type_of(inferred) or element_type_of(self.declared.get(name))
        if known and given.element_type not in (known, onnx.TensorProto.UNDEFINED):
            told = dtype_name(known), dtype_name(given.element_type)
            self.disagreeing.append(f"'{name}' is {told[0]}, not {told[1]}")

    def _visit_constant(self, node: onnx.NodeProto) -> None:
        name = node.output[0]
        value = constant_value(node)
        if value is not None:
            self.recipes[name] = self.name(node), ()
            self.origins[name] = node
        if isinstance(value, onnx.TensorProto):
            self._add_tensor(name, value)
        elif isinstance(value, onnx.SparseTensorProto):
            self._add_constant(name, tensor_type(value.values.data_type, value.dims))
        elif value is not None:
            self._add_value(name, value)
        else:
            self._keep(node, {}, "it holds no value")

    def _is_constant(self, node: onnx.NodeProto, reads: Sequence[str]) -> bool:
        if node.op_type in ("Shape", "Size") and not node.domain:
            return shape_of(self.types.get(node.input[0])) is not None
        plain = not has_body(node)
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
        for name in names:
            self.recipes[name] = self.name(node), tuple(reads)
            self.origins[name] = node
            if name in values:
                self._add_value(name, values[name])
            else:
                self._add_constant(name, inferred[name])
        return True

    def constant(self, name: str) -> Constant:
        """Return a constant with the names of the nodes that compute it, in order."""
        steps: dict[str, None] = {}
        waiting = [(name, False)]
        seen: set[str] = set()
        while waiting:
            current, done = waiting.pop()
            if current not in self.recipes or (current in seen and not done):
                continue
            seen.add(current)
            step, reads = self.recipes[current]
            if done:
                steps[step] = None
            else:
                waiting.append((current, True))
                waiting.extend((read, False) for read in reversed(reads))
        return replace(self.constants[name], nodes=tuple(steps))

    def _keep(self, node: onnx.NodeProto, inferred: Mapping[str, onnx.TypeProto], why: str) -> None:
        self.kept.append(node)
        for name in filter(None, node.output):
            kind = inferred.get(name)
            if kind is not None:
                self.types[name] = kind
            tensor = tensor_of(name, kind)
            if kind is not None and name in self.elements:
                tensor = sequence_tensor(name, kind, self.elements[name])
            if tensor:
                self.tensors[name] = tensor
            else:
                self.why_unknown[name] = why_no_tensor(kind) or why

    def _add_tensor(self, name: str, tensor: onnx.TensorProto) -> None:
        self._add_constant(
            name, tensor_type(tensor.data_type, tensor.dims), external=is_external(tensor)
        )
        if has_data(tensor) and prod(tensor.dims) <= MOST_ELEMENTS:
            self.values[name] = onnx.numpy_helper.to_array(tensor)

    def _add_value(self, name: str, value: Array) -> None:
        element_type = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        self._add_constant(name, tensor_type(element_type, value.shape))
        self.values[name] = value

    def _add_constant(self, name: str, kind: onnx.TypeProto, *, external: bool = False) -> None:
        self.types[name] = kind
        tensor = tensor_of(name, kind)
        if tensor:
            self.constants[name] = Constant(name, tensor.shape, tensor.dtype, (), external)


def _extents(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"


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
