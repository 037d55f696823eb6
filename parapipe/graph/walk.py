"""The walk through an ONNX graph that finds shapes, types and constants, node by node.

Shapes and small constant values are found together: the value of a shape chain (Shape, Gather,
Concat) is known before the Reshape that needs it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import starmap
from math import prod

import onnx

from parapipe.graph.body_work import work_of_bodies
from parapipe.graph.contrib_shapes import infer_contrib
from parapipe.graph.data_types import (
    dtype_name,
    element_type_of,
    shape_of,
    tensor_of,
    tensor_type,
)
from parapipe.graph.infer import (
    MOST_ELEMENTS,
    Array,
    Facts,
    Types,
    constant_value,
    evaluate,
    infer,
    integer,
)
from parapipe.graph.model_source import has_data, is_external
from parapipe.graph.operator_graph import Constant, Tensor, Work
from parapipe.graph.order import needed_nodes, outer_names
from parapipe.graph.sequences import (
    BodyResult,
    InferredTypes,
    elements_of,
    infer_by_bodies,
    sequence_tensor,
    shape_from_sequence,
)
from parapipe.graph.unknown_results import why_no_tensor, why_unknown
from parapipe.graph.user_shapes import UserShape
from parapipe.graph.value_lengths import bounded_types

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"}
    | {"Multinomial", "Bernoulli"}
)

_DEQUANTISES = "DequantizeLinear"
_SAME_ELEMENTS = frozenset({"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})

Origin = onnx.TensorProto | onnx.SparseTensorProto | onnx.NodeProto


@dataclass(slots=True)
class Walk:
    """What is found while the nodes are visited one after the other.

    Parameters
    ----------
    facts
        Types of the graph inputs at first, then of everything.
    declared
        Types that the file declares for results; used where none can be inferred.
    user_shapes
        What the user says of results.
    at_most
        Entries of results whose length depends on values; None if nobody says.
    times_named
        How many nodes of the file have each name.
    frame_nodes
        The nodes that are no constants, in order.
    origins
        What each constant stems from: a tensor of the file, or the node that computes it.
    why_unknown
        Reasons, by name of the results whose shape or type is not known.
    disagreeing
        Where what the user says is not what follows from the inputs.
    contradictions
        Why operators cannot run on what they read.
    notes
        What was assumed.
    bounded
        Results that are taken as long as `at_most` allows.
    outer
        Of a body: tensors and constants outside of it.
    body_works
        Work of control flow, by its first result, as far as its trips are constant.
    """

    facts: Facts
    declared: Types
    user_shapes: Mapping[str, UserShape]
    times_named: Counter[str]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    frame_nodes: list[onnx.NodeProto] = field(default_factory=list)
    why_unknown: dict[str, str] = field(default_factory=dict)
    disagreeing: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    at_most: int | None = None
    bounded: list[str] = field(default_factory=list)
    outer: Mapping[str, Tensor | Constant] = field(default_factory=dict)
    body_works: dict[str, Work] = field(default_factory=dict)
    _bodies: list[tuple[Walk, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take over the graph inputs."""
        for name, kind in self.facts.types.items():
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
            self._add_constant(tensor.name, tensor, tensor)
        for sparse in graph.sparse_initializer:
            self._add_constant(sparse.values.name, sparse, sparse)

    def run(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Visit nodes, which must be in topological order."""
        waiting = deque(nodes)
        while waiting:
            node = waiting.popleft()
            branch = self._constant_branch(node) or self._visit(_use_main_domain(node))
            if branch is not None:
                self.add_initializers(branch)
                pairs = zip(branch.output, node.output, strict=True)
                ends = [("Identity", [inner.name], [outer]) for inner, outer in pairs if outer]
                inlined = [*branch.node, *starmap(onnx.helper.make_node, ends)]
                self.times_named.update(inner.name for inner in inlined if inner.name)
                waiting.extendleft(reversed(inlined))

    def _constant_branch(self, node: onnx.NodeProto) -> onnx.GraphProto | None:
        """Return the branch of an If whose condition is known; None for all else."""
        condition = self.facts.values.get(node.input[0]) if node.op_type == "If" else None
        if condition is None or condition.size != 1:
            return None
        return self._branch(node, "then_branch" if condition.reshape(-1)[0] else "else_branch")

    def _branch(self, node: onnx.NodeProto, name: str) -> onnx.GraphProto | None:
        branch = next((a.g for a in node.attribute if a.name == name), None)
        own = {output for inner in branch.node for output in inner.output} if branch else set()
        # Two branches may use the same names inside; the second one is not inlined.
        return branch if own.isdisjoint(self.facts.types) else None

    def _visit(self, node: onnx.NodeProto) -> onnx.GraphProto | None:
        """Find what a node makes; return a branch to go on with in its place."""
        if node.op_type == "Constant" and not node.domain:
            value = constant_value(node)
            if value is None:
                self._add_frame_node(node, {}, "it holds no value")
            else:
                self._add_constant(node.output[0], value, node)
            return None
        reads = [name for name in self.facts.nodes.reads(node) if name]
        inferred: dict[str, onnx.TypeProto] = {}
        contradiction = ""
        if all(name in self.facts.types for name in reads):
            inferred, contradiction = infer(node, self.facts)
            if not inferred and not contradiction:
                inferred = infer_contrib(node, self.facts)
        if not contradiction:
            names = [name for name in node.output if name]
            if self.facts.nodes.has_body(node):
                result = self._infer_by_bodies(node)
                if any(shape_of(inferred.get(name)) is None for name in names):
                    inferred |= result.types
                else:
                    result = replace(result, only="")
                if result.only and (branch := self._branch(node, result.only)):
                    self.notes.append(
                        f"'{self.name(node)}' always takes its {result.only}: the other one cannot "
                        f"run on inputs of these shapes ({result.why})"
                    )
                    return branch
            self._fill_in_types(node, inferred)
        else:
            self.contradictions.append(f"{self.name(node)}: {contradiction}")
        if not (self._is_constant(node, reads) and self._fold(node, inferred)):
            self._add_frame_node(node, inferred, contradiction or why_unknown(node))
        return None

    def _infer_by_bodies(self, node: onnx.NodeProto) -> InferredTypes:
        """Find what control flow makes, and its work."""
        self._bodies = []
        result = infer_by_bodies(node, self.facts, self._walk_body)
        names = [each.name for each in node.attribute if each.HasField("g")]
        if node.op_type == "If":
            names = ["then_branch", "else_branch"]
        if len(names) == len(self._bodies) and not result.only and node.output:
            bodies = dict(zip(names, self._bodies, strict=True))
            if work := work_of_bodies(node, self.facts, bodies):
                self.body_works[node.output[0]] = work
        return result

    def _walk_body(self, body: onnx.GraphProto, fed: Types) -> BodyResult:
        """Walk through a body by itself, with what is known outside of it."""
        facts = self.facts
        outside = {name for name in outer_names(body) if name in facts.types}
        inside = Facts(
            facts.opsets,
            {**{name: facts.types[name] for name in outside}, **fed},
            {name: value for name, value in facts.values.items() if name in outside},
            {name: shapes for name, shapes in facts.elements.items() if name in outside},
        )
        declared = {value.name: value.type for value in (*body.value_info, *body.output)}
        inner = Walk(inside, declared, {}, Counter(), at_most=self.at_most)
        inner.constants |= {n: self.constants[n] for n in outside if n in self.constants}
        inner.add_initializers(body)
        inner.outer = {**self.outer, **self.tensors, **self.constants, **_tensors_of(fed)}
        results = [value.name for value in body.output]
        inner.run(needed_nodes(body.node, results))
        values = [inside.values.get(name) for name in results]
        always = tuple(value is not None and bool(value.all()) for value in values)
        self._bodies.append((inner, bool(always[:1] and always[0])))
        return BodyResult(
            tuple(inside.types.get(name) for name in results),
            always,
            next(iter(inner.contradictions), ""),
        )

    def _fill_in_types(self, node: onnx.NodeProto, inferred: dict[str, onnx.TypeProto]) -> None:
        """Take what inference leaves open from the user, from sequences, and from the file."""
        elements = elements_of(node, self.facts)
        if elements is not None:
            self.facts.elements[node.output[0]] = elements
        if self.at_most is not None:
            self._bound_results(node, inferred, self.at_most)
        shape = shape_from_sequence(node, self.facts)
        for name in node.output:
            if name:
                self._fill_in_result_type(name, shape, inferred)
            shape = None  # it was that of the first result

    def _bound_results(
        self, node: onnx.NodeProto, inferred: dict[str, onnx.TypeProto], most: int
    ) -> None:
        """Take results whose length depends on values as long as they may be."""
        for name, kind in bounded_types(node, self.facts, most).items():
            if name not in self.user_shapes and shape_of(inferred.get(name)) is None:
                inferred[name] = kind
                self.bounded.append(name)

    def _fill_in_result_type(
        self, name: str, shape: tuple[int, ...] | None, inferred: dict[str, onnx.TypeProto]
    ) -> None:
        declared, stated = self.declared.get(name), self.user_shapes.get(name)
        inferred_shape = shape_of(inferred.get(name))
        element_type = element_type_of(inferred.get(name)) or element_type_of(declared)
        if stated is not None:
            self._check_user_shape(name, stated, inferred_shape, element_type)
            shape, element_type = stated.shape, element_type or stated.element_type
        if inferred_shape is None and shape is not None and element_type:
            inferred[name] = tensor_type(element_type, shape)
        elif inferred_shape is None and declared is not None and shape_of(declared) is not None:
            inferred[name] = declared

    def _check_user_shape(
        self, name: str, stated: UserShape, shape: tuple[int, ...] | None, element_type: int
    ) -> None:
        """Remember where what the user says is not what is known without."""
        if shape is not None and stated.shape != shape:
            self.disagreeing.append(f"'{name}' is {_extents(shape)}, not {_extents(stated.shape)}")
        if element_type and stated.element_type not in (element_type, onnx.TensorProto.UNDEFINED):
            dtypes = dtype_name(element_type), dtype_name(stated.element_type)
            self.disagreeing.append(f"'{name}' is {dtypes[0]}, not {dtypes[1]}")

    def _is_constant(self, node: onnx.NodeProto, reads: Sequence[str]) -> bool:
        if node.op_type in ("Shape", "Size") and not node.domain:
            return self.facts.shape(node.input[0]) is not None
        if self.facts.nodes.has_body(node) or any(name not in self.constants for name in reads):
            return False
        if node.op_type == _DEQUANTISES and node.domain == "com.microsoft":
            return True
        return onnx.defs.has(node.op_type, node.domain) and node.op_type not in _RANDOM

    def _fold(self, node: onnx.NodeProto, inferred: Types) -> bool:
        """Make constants of the outputs; False if the shape of one stays unknown."""
        # Weights that are stored as integers have no values here, so that exports keep them so.
        stored = node.op_type == _DEQUANTISES
        values = {} if stored else evaluate(node, self.facts, inferred)
        names = [name for name in node.output if name]
        if any(name not in values and not tensor_of(name, inferred.get(name)) for name in names):
            return False
        for name in names:
            self._add_constant(name, values[name] if name in values else inferred[name], node)
        return True

    def constant(self, name: str) -> Constant:
        """Return a constant with the names of the nodes that compute it, in order."""
        steps: dict[str, None] = {}
        waiting = [(name, False)]
        visited: set[str] = set()
        while waiting:
            current, done = waiting.pop()
            node = self.origins.get(current)
            if not isinstance(node, onnx.NodeProto) or (current in visited and not done):
                continue
            visited.add(current)
            if done:
                steps[self.name(node)] = None
            else:
                waiting.append((current, True))
                waiting.extend((read, False) for read in reversed(self.facts.nodes.reads(node)))
        constant = replace(self.constants[name], nodes=tuple(steps))
        node = self._dequantiser(name)
        if node is None:
            return constant
        stored = dtype_name(element_type_of(self.facts.types.get(node.input[0]))) or ""
        blocked = integer(node, "block_size", 0) > 0
        beside = [tensor_of(each, self.facts.types[each]) for each in node.input[1:] if each]
        scale_bytes = sum(each.size_bytes for each in beside if each and blocked)
        return replace(constant, stored=stored, scale_bytes=scale_bytes)

    def _dequantiser(self, name: str) -> onnx.NodeProto | None:
        """Return the node that makes a constant of integers; None if none does."""
        node = self.origins.get(name)
        while isinstance(node, onnx.NodeProto) and node.op_type in _SAME_ELEMENTS:
            node = self.origins.get(node.input[0])
        is_dequantised = isinstance(node, onnx.NodeProto) and node.op_type == _DEQUANTISES
        return node if is_dequantised else None

    def _add_frame_node(self, node: onnx.NodeProto, inferred: Types, why: str) -> None:
        self.frame_nodes.append(node)
        for name in filter(None, node.output):
            kind = inferred.get(name)
            if kind is not None:
                self.facts.types[name] = kind
            tensor = tensor_of(name, kind)
            if kind is not None and name in self.facts.elements:
                tensor = sequence_tensor(name, kind, self.facts.elements[name])
            if tensor:
                self.tensors[name] = tensor
            else:
                self.why_unknown[name] = why_no_tensor(kind) or why

    def _add_constant(
        self,
        name: str,
        constant: onnx.TensorProto | onnx.SparseTensorProto | onnx.TypeProto | Array,
        origin: Origin,
    ) -> None:
        """Take over a constant: a tensor of the file, a value, or a type alone."""
        external = False
        if isinstance(constant, onnx.TensorProto):
            kind = tensor_type(constant.data_type, constant.dims)
            external = is_external(constant)
            if has_data(constant) and prod(constant.dims) <= MOST_ELEMENTS:
                self.facts.values[name] = onnx.numpy_helper.to_array(constant)
        elif isinstance(constant, onnx.SparseTensorProto):
            kind = tensor_type(constant.values.data_type, constant.dims)
        elif isinstance(constant, onnx.TypeProto):
            kind = constant
        else:
            number = onnx.helper.np_dtype_to_tensor_dtype(constant.dtype)
            kind = tensor_type(number, constant.shape)
            self.facts.values[name] = constant
        self.facts.types[name] = kind
        self.origins[name] = origin
        if tensor := tensor_of(name, kind):
            self.constants[name] = Constant(name, tensor.shape, tensor.dtype, (), external)


def _tensors_of(types: Types) -> dict[str, Tensor]:
    named = ((name, tensor_of(name, kind)) for name, kind in types.items())
    return {name: tensor for name, tensor in named if tensor}


def _extents(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"


def _use_main_domain(node: onnx.NodeProto) -> onnx.NodeProto:
    if node.domain != "ai.onnx":
        return node
    renamed = deepcopy(node)
    renamed.domain = ""
    return renamed
