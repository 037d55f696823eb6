"""A model with operators split into parts: another ONNX model with the same results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Unpack

import onnx
from google.protobuf.message import Message

from parapipe.errors import SplitError
from parapipe.files.mistakes import listed_sentences
from parapipe.graph.onnx_import import graph_of_nodes, resolve_proto, simplify
from parapipe.graph.operator_graph import Granularity, ModelSource, OperatorGraph
from parapipe.graph.order import inline_functions, needed_nodes, reads_of, sort_nodes
from parapipe.graph.part_marks import IR_VERSION
from parapipe.graph.resolve import DEQUANTISES, Resolved
from parapipe.graph.user_shapes import SizeKeywords
from parapipe.parts.nodes import Names, PartNodes, Slices
from parapipe.parts.part import NotCuttableError, divide_axis
from parapipe.parts.rules import SplitRule, Target, convex_closure, find_targets
from parapipe.parts.run import Run, RunPart, outside_reads

_OPSET_JOINING_ALL = 4
_ALWAYS_JOINED = frozenset({"float16", "float32", "float64"})
_NEVER_JOINED = frozenset({"float8", "float4", "int4", "uint4", "int2", "uint2"})
_MAIN_DOMAIN = "ai.onnx"


@dataclass(frozen=True, slots=True)
class SplitOperator:
    """An operator, or a run of several, that was split.

    Parameters
    ----------
    name
        Of the operator, or of the first and the last of a run.
    operators
        Names of the ONNX nodes that every part has.
    axis
        Along which axis of the last one's result.
    ranges
        First element of each part, and the one behind its last.
    """

    name: str
    operators: tuple[str, ...]
    axis: int
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class UncutOperator:
    """An operator, or a run, that a rule concerns and that stays whole, and why."""

    name: str
    type: str
    why: str


@dataclass(frozen=True, slots=True)
class Split:
    """What was split in a model.

    Parameters
    ----------
    model
        The model as the user names it.
    file
        Where the split model was written; empty if it was not.
    """

    model: str
    file: str
    split: tuple[SplitOperator, ...]
    whole: tuple[UncutOperator, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return asdict(self)


def split_proto(
    model: onnx.ModelProto,
    name: str,
    rules: Sequence[SplitRule],
    *,
    granularity: Granularity = "fused",
    by_nodes: bool = False,
    **sizes: Unpack[SizeKeywords],
) -> tuple[onnx.ModelProto, Split]:
    """Return a model with operators split into parts, and what was split.

    Parameters
    ----------
    model
        With all its weights but external ones. It is not changed.
    name
        What to call it in messages.
    granularity
        "fused": what runtimes run at one go is cut together; "onnx": every node by itself.
    dims, shapes
        As for `import_proto`. The split model has these sizes only.
    by_nodes
        Whether nodes cut constants, too: then the split model is the same one without the numbers
        of weights.

    Raises
    ------
    ModelError
        As `import_proto` does.
    SplitError
        If a rule concerns nothing, or nothing can be split.
    """
    model = inline_functions(model, name)
    inputs, resolved = resolve_proto(model, name, **sizes)
    source = ModelSource(name, "")
    nodes = graph_of_nodes(resolved, source, inputs)
    graph = simplify(nodes, resolved, granularity)
    copies = _copied_names(resolved, visible_names(model))
    finder = _Finder(nodes, visible_names(model) | copies.keys(), frozenset(resolved.bounded))
    split: list[tuple[SplitOperator, Run, list[RunPart]]] = []
    uncut: list[UncutOperator] = []
    for each in find_targets(graph, rules):
        last = graph.operators[each.operators[-1]]
        try:
            split.append(finder.cut(each, graph))
        except NotCuttableError as error:
            uncut.append(UncutOperator(each.name, last.type, str(error)))
    if not split:
        raise SplitError(
            f"nothing of '{name}' is split: "
            + listed_sentences([f"{each.name} ({each.type}): {each.why}" for each in uncut])
        )
    report = Split(name, "", tuple(each for each, _, _ in split), tuple(uncut), resolved.notes)
    tensors = Names(set(resolved.types) | visible_names(model))
    node_names = Names(
        {node.name for node in model.graph.node} | {item.name for item in resolved.nodes}
    )
    slices = Slices(resolved, tensors, node_names, copies, by_nodes=by_nodes)
    place = {operator.id: v for v, operator in enumerate(nodes.operators)}
    in_order = sorted(split, key=lambda each: place[each[1].last.id])
    return _rewrite_model(model, slices, [(run, parts) for _, run, parts in in_order]), report


def visible_names(model: onnx.ModelProto) -> set[str]:
    """Return the names that nodes of the main graph may read."""
    graph = model.graph
    return (
        {value.name for value in graph.input}
        | {tensor.name for tensor in graph.initializer}
        | {sparse.values.name for sparse in graph.sparse_initializer}
        | {name for node in graph.node for name in node.output}
    )


def _copied_names(resolved: Resolved, visible: set[str]) -> dict[str, str]:
    """Return what the model calls the results of DequantizeLinears that import has copied."""
    dequantised = {
        tuple(item.node.input): item.node.output[0]
        for item in resolved.nodes
        if item.node.op_type == DEQUANTISES and item.node.output[0] in visible
    }
    return {
        item.node.output[0]: dequantised[tuple(item.node.input)]
        for item in resolved.nodes
        if item.node.op_type == DEQUANTISES
        and item.node.output[0] not in visible
        and tuple(item.node.input) in dequantised
    }


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the parts of chosen operators among a model's nodes."""

    nodes: OperatorGraph
    visible: set[str]
    bounded: frozenset[str]

    def cut(self, target: Target, graph: OperatorGraph) -> tuple[SplitOperator, Run, list[RunPart]]:
        """Return the parts of an operator or a run; WholeError if it stays whole."""
        run = self._target_run(target, graph)
        self._check_types(run)
        for name in (each for operator in run.operators for each in operator.outputs):
            if name in self.bounded:
                raise NotCuttableError(f"how long '{name}' is depends on values")
        axis = target.rule.axis_of(graph.operators[target.operators[-1]], len(run.shape))
        step = run.step(axis)
        ranges = divide_axis(axis, run.shape[axis], step, target.rule.shares)
        parts = [run.part(each) for each in ranges]
        members = tuple(step.operator.name for step in parts[0].steps)
        bounds = tuple((each.begin, each.end) for each in ranges)
        return SplitOperator(target.name, members, axis, bounds), run, parts

    def _target_run(self, target: Target, graph: OperatorGraph) -> Run:
        at = {operator.name: v for v, operator in enumerate(self.nodes.operators)}
        members = [at[name] for v in target.operators for name in graph.operators[v].members]
        inside = convex_closure(self.nodes, members)
        operators = [self.nodes.operators[v] for v in inside]
        self._check_ends(inside, operators)
        run = Run(
            tuple(operators), {**self.nodes.constants, **self.nodes.tensors}, self.nodes.opsets
        )
        names = {name for each in operators for name in (*each.inputs, *each.outputs) if name}
        if not self.visible.issuperset(names):
            raise NotCuttableError("it stands in the branch of an If")
        return run

    def _check_types(self, run: Run) -> None:
        """Check that Slice and Concat take the types of the tensors of a run."""
        old = self.nodes.opsets.get("", 0) < _OPSET_JOINING_ALL
        for operator in run.operators:
            for name in (*operator.inputs, *operator.outputs):
                dtype = run.tensors[name].dtype if name else "float32"
                if dtype in _NEVER_JOINED or (old and dtype not in _ALWAYS_JOINED):
                    raise NotCuttableError(f"the model's opset has no Slice or Concat of {dtype}")

    def _check_ends(self, inside: Iterable[int], operators: Sequence[object]) -> None:
        """Check that nothing outside reads what is made within, but for the last one's results."""
        within = set(inside)
        *others, _ = sorted(within)
        for v in others:
            for name in self.nodes.operators[v].outputs:
                readers = self.nodes.consumers.get(name, ())
                if name in self.nodes.outputs:
                    raise NotCuttableError(f"'{name}' within it is an output of the model")
                if not within.issuperset(readers):
                    reader = self.nodes.operators[min(set(readers) - within)]
                    raise NotCuttableError(f"'{reader.name}' also reads '{name}' within it")


def _rewrite_model(
    model: onnx.ModelProto, slices: Slices, split: Sequence[tuple[Run, list[RunPart]]]
) -> onnx.ModelProto:
    writer = PartNodes({item.name: item.node for item in slices.resolved.nodes}, slices)
    replaced: set[str] = set()
    cut_constants: set[str] = set()
    for run, parts in split:
        writer.add(run, parts)
        replaced.update(filter(None, run.last.outputs))
        cut_constants.update(outside_reads(parts[0]))
    before = model.graph
    nodes = replace_nodes(before, replaced, slices.nodes, "the split model", slices.initializers)
    unread = cut_constants.difference(
        *map(reads_of, nodes), (value.name for value in before.output)
    )
    gone = {each.name for each in before.initializer}.intersection(unread)
    produced = {name for node in nodes for name in node.output}
    return replace_graph_fields(
        model,
        slices.resolved,
        node=nodes,
        initializer=[
            *(each for each in before.initializer if each.name not in gone),
            *slices.initializers,
        ],
        input=[each for each in before.input if each.name not in gone],
        value_info=[each for each in before.value_info if each.name in produced],
    )


def replace_nodes(
    graph: onnx.GraphProto,
    replaced: Collection[str],
    added: Sequence[onnx.NodeProto],
    title: str,
    initializers: Sequence[onnx.TensorProto] = (),
) -> list[onnx.NodeProto]:
    """Return the nodes that a graph's outputs need once others make some tensors, in order.

    Parameters
    ----------
    replaced
        Names of tensors whose nodes go.
    added
        Nodes in their place, which may read the initializers, too.
    title
        What to call the new model in messages.
    """
    rest = [node for node in graph.node if set(replaced).isdisjoint(node.output)]
    names = {each.name for each in (*graph.input, *graph.initializer, *initializers)}
    names |= {each.values.name for each in graph.sparse_initializer}
    outputs = (value.name for value in graph.output)
    return needed_nodes(sort_nodes(title, [*rest, *added], names), outputs)


def replace_graph_fields(
    model: onnx.ModelProto, resolved: Resolved, **changed: Sequence[Message]
) -> onnx.ModelProto:
    """Return a model with other fields of its graph, for the sizes that it was resolved with."""
    result = onnx.ModelProto()
    _copy_fields(model, result, graph=[])
    _copy_fields(model.graph, result.graph, **changed)
    for value in (*result.graph.input, *result.graph.output, *result.graph.value_info):
        kind = resolved.types.get(value.name)
        if kind is not None and kind.HasField("tensor_type"):
            value.type.CopyFrom(kind)
    stated = {each.name for each in (*result.graph.output, *result.graph.value_info)}
    result.graph.value_info.extend(
        onnx.helper.make_value_info(name, resolved.types[name])
        for name in resolved.bounded
        if name not in stated
    )
    _use_main_domain(result)
    result.ir_version = max(result.ir_version, IR_VERSION)
    return result


def _copy_fields(source: Message, target: Message, **changed: Sequence[Message]) -> None:
    """Copy the fields of a message, some of them changed; each weight is copied once."""
    for field, value in source.ListFields():
        if field.name in changed:
            continue
        if isinstance(value, Iterable) and not isinstance(value, str | bytes):
            getattr(target, field.name).extend(value)
        else:
            setattr(target, field.name, value)
    for name, values in changed.items():
        if values:
            getattr(target, name).extend(values)


def _use_main_domain(model: onnx.ModelProto) -> None:
    """Call ONNX's own domain by its first name, since the nodes of parts do."""
    for opset in model.opset_import:
        opset.domain = "" if opset.domain == _MAIN_DOMAIN else opset.domain
    waiting = list(model.graph.node)
    while waiting:
        node = waiting.pop()
        node.domain = "" if node.domain == _MAIN_DOMAIN else node.domain
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                waiting.extend(body.node)


def with_file(split: Split, file: str) -> Split:
    """Return what was split, with the file that it was written to."""
    return replace(split, file=file)
