"""What of an ONNX graph is constant, and what is computed in each frame.

A quantised operator is found between DequantizeLinear nodes that nothing else reads. Where several
operators read the same one, each reader but the first gets a copy, as in ONNX Runtime
(EnsureUniqueDQForNodeUnit, `core/optimizer/qdq_transformer/ensure_unique_dq_for_node_unit.cc`); one
that is a graph output, or that a body reads, stays and all others get a copy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.graph.data_types import element_type_of
from parapipe.graph.infer import Array, Facts, Types, schema_of
from parapipe.graph.operator_graph import Constant, Tensor, Work
from parapipe.graph.order import needed_nodes, sort_nodes
from parapipe.graph.user_shapes import UserShape
from parapipe.graph.value_lengths import depends_on_values
from parapipe.graph.walk import Origin, Walk

DEQUANTISES = "DequantizeLinear"
_ABOUT_SHAPES = re.compile("dimension|shape|rank", re.IGNORECASE)  # of what inference says


def unshare_dequantisers(
    nodes: Sequence[onnx.NodeProto], outputs: Collection[str], walk: Walk
) -> list[onnx.NodeProto]:
    """Return the nodes with the copies, each behind its original.

    Names of copies follow from the names and the order of the nodes alone, so that whoever reads
    the model again finds the same.

    Parameters
    ----------
    nodes
        Those that are no constants, in topological order. They are not changed.
    outputs
        Names of the graph outputs.
    walk
        What is known of all tensors; copies are added.
    """
    edges = Counter(name for node in nodes for name in node.input)
    read_within = {
        name for node in nodes for name in walk.facts.nodes.reads(node)[len(node.input) :]
    }
    free: dict[str, list[str]] = {}  # names of outputs that no reader has yet, by the original's
    result: list[onnx.NodeProto] = []
    for node in nodes:
        result.append(_use_own_copies(node, free))
        if node.op_type != DEQUANTISES or not edges[node.output[0]]:
            continue
        name = node.output[0]
        is_fixed = name in read_within or name in outputs
        free[name] = [] if is_fixed else [name]
        for _ in range(edges[name] - len(free[name])):
            result.append(_copy_dequantiser(node, name, walk))
            free[name].append(result[-1].output[0])
    return result


def _use_own_copies(node: onnx.NodeProto, free: dict[str, list[str]]) -> onnx.NodeProto:
    """Return the node, its inputs renamed to copies that no other one reads."""
    own = [free[name].pop(0) if free.get(name) else name for name in node.input]
    if own == list(node.input):
        return node
    changed = deepcopy(node)
    changed.input[:] = own
    return changed


def _copy_dequantiser(node: onnx.NodeProto, name: str, walk: Walk) -> onnx.NodeProto:
    """Return a copy of a DequantizeLinear under a name that is not taken."""
    own = next(
        new
        for number in count(2)
        if (new := f"{name}/{number}") not in walk.facts.types and not walk.times_named[new]
    )
    copy = deepcopy(node)
    copy.name = ""  # it goes by its output's
    copy.output[0] = own
    if name in walk.facts.types:
        walk.facts.types[own] = walk.facts.types[name]
    if name in walk.tensors:
        walk.tensors[own] = replace(walk.tensors[name], name=own)
    return copy


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

    Each reader of a dequantised activation has a DequantizeLinear of its own, see
    `unshare_dequantisers`.

    Parameters
    ----------
    values
        Small constants.
    outputs
        Graph outputs that a node makes; those that are constants or graph inputs are left out.
    types
        ONNX types of all that is known: tensors, sequences, constants.
    origins
        What each constant stems from, those included that others are computed from: a tensor of
        the file, or the node that computes it.
    opsets
        Versions of the operators by domain; "" is that of ONNX.
    notes
        A sentence for each thing that was assumed.
    body_works
        Work of control flow, by its first result, as far as its trips are constant.
    bounded
        Tensors whose length depends on values, which are taken as long as the user allows.
    """

    nodes: tuple[ResolvedNode, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    values: Mapping[str, Array]
    outputs: tuple[str, ...]
    types: Types
    origins: Mapping[str, Origin]
    opsets: Mapping[str, int]
    notes: tuple[str, ...] = ()
    body_works: Mapping[str, Work] = field(default_factory=dict)
    bounded: tuple[str, ...] = ()


def resolve(
    model: onnx.ModelProto,
    model_name: str,
    inputs: Types,
    declared: Types,
    user_shapes: Mapping[str, UserShape] | None = None,
    *,
    at_most: int | None = None,
) -> Resolved:
    """Find shapes, types and constants of a whole model.

    Parameters
    ----------
    inputs
        Types of the graph inputs, with known shapes.
    declared
        Types that the file declares for results; used where none can be inferred.
    user_shapes
        What the user says of results, which nothing may contradict.
    at_most
        Entries of results whose length depends on values, at most; None if nobody says.

    Raises
    ------
    ModelError
        If the graph is not well formed, if it computes nothing from its inputs, or if shapes
        stay unknown; all their operators are named.
    """
    graph = model.graph
    outputs = list(dict.fromkeys(value.name for value in graph.output))
    times_named = Counter(node.name for node in graph.node if node.name)
    opsets: dict[str, int] = {}
    for opset in model.opset_import:
        opsets.setdefault("" if opset.domain == "ai.onnx" else opset.domain, opset.version)
    walk = Walk(
        Facts(opsets, dict(inputs)), declared, user_shapes or {}, times_named, at_most=at_most
    )
    walk.add_initializers(graph)
    nodes = sort_nodes(model_name, graph.node, walk.facts.types, walk.facts.nodes.reads)
    produced = {name for node in nodes for name in node.output}
    if lost := [
        f"'{name}'" for name in outputs if name not in produced and name not in walk.facts.types
    ]:
        raise ModelError(
            f"'{model_name}' has outputs that nothing makes ({listed(lost)}): export it again"
        )
    walk.run(needed_nodes(nodes, outputs, walk.facts.nodes.reads))
    if walk.disagreeing:
        raise ModelError(
            f"the shapes given for '{model_name}' are wrong: "
            f"{listed_sentences(walk.disagreeing)}, as follows from its inputs and what the file "
            "states"
        )
    if at_most is not None and not walk.bounded:
        raise ModelError(
            f"'{model_name}' has no result whose length depends on values and is not known: leave "
            "out `at_most`"
        )
    if walk.bounded:
        walk.notes.append(
            f"results whose length depends on values are taken with {at_most} entries, the most "
            f"that may be: {listed(walk.bounded)}"
        )
    return _resolve_needed(model_name, walk, outputs, inputs)


def _resolve_needed(
    model_name: str, walk: Walk, outputs: Iterable[str], inputs: Collection[str]
) -> Resolved:
    """Keep what the outputs need once constants are folded, and check that all is known."""
    reads_of = walk.facts.nodes.reads
    nodes = needed_nodes(walk.frame_nodes, outputs, reads_of)
    produced = {name for node in nodes for name in node.output}
    produced_outputs = tuple(name for name in outputs if name in produced)
    nodes = unshare_dequantisers(nodes, produced_outputs, walk)
    read = {name for node in nodes for name in reads_of(node)}.union(produced_outputs)
    if not produced_outputs or read.isdisjoint(inputs):
        raise ModelError(
            f"'{model_name}' has no output that depends on an input: nothing is left to map"
        )
    resolved = tuple(
        ResolvedNode(node, walk.name(node), reads_of(node), _outputs(node, read, walk.facts.opsets))
        for node in nodes
    )
    _check_shapes(model_name, resolved, walk)
    constants = {name: walk.constant(name) for name in sorted(read & walk.constants.keys())}
    return Resolved(
        resolved,
        walk.tensors,
        constants,
        walk.facts.values,
        produced_outputs,
        walk.facts.types,
        walk.origins,
        walk.facts.opsets,
        tuple(walk.notes),
        walk.body_works,
        tuple(walk.bounded),
    )


def _outputs(
    node: onnx.NodeProto, read: Collection[str], opsets: Mapping[str, int]
) -> tuple[str, ...]:
    optional = _optional_outputs(node.op_type, opsets.get(node.domain, 0), node.domain)
    return tuple(
        name
        for position, name in enumerate(node.output)
        if name and (name in read or position not in optional)
    )


@cache
def _optional_outputs(op_type: str, version: int, domain: str) -> frozenset[int]:
    """Return the places of results that an operator need not make."""
    schema = schema_of(op_type, version, domain)
    kind = onnx.defs.OpSchema.FormalParameterOption.Optional
    outputs = schema.outputs if schema is not None else ()
    return frozenset(i for i, output in enumerate(outputs) if output.option == kind)


def _check_shapes(model_name: str, nodes: Sequence[ResolvedNode], walk: Walk) -> None:
    produced = {name for node in nodes for name in node.writes}
    resolved = walk.tensors.keys() | walk.constants.keys()
    read = {name for node in nodes for name in node.reads if name}
    if odd := sorted(f"'{name}'" for name in read - resolved - produced):
        raise ModelError(
            f"'{model_name}' has constants of a type that parapipe does not know "
            f"({listed(odd)}): export it with another data type"
        )
    unknown = [node for node in nodes if not resolved.issuperset(node.writes)]
    # Others are unknown because these are.
    causes = [node for node in unknown if resolved.issuperset(filter(None, node.reads))] or unknown
    if causes:
        offenders = [_describe_node(node, walk) for node in causes]
        bounds = any(depends_on_values(each.node) for each in causes) and walk.at_most is None
        count = len(produced - resolved)
        raise ModelError(
            f"'{model_name}' has {count} {'result' if count == 1 else 'results'} of unknown shape "
            f"or type, first those of {listed(offenders)}: "
            f"{'say how many entries there are at most, as in `at_most` 300, ' * bounds}"
            f"{_advice(causes[0], walk)}"
        )


def _advice(node: ResolvedNode, walk: Walk) -> str:
    """Return how to say what is not known of a node's first result that is not known."""
    resolved = walk.tensors.keys() | walk.constants.keys()
    result = next(name for name in node.writes if name not in resolved)
    kind = walk.facts.types.get(result) or walk.declared.get(result)
    typed = "" if element_type_of(kind) else "float32:"
    others = "declare what is missing in the model (value_info), or give other shapes of inputs"
    if result in walk.user_shapes:
        sizes = "x".join(map(str, walk.user_shapes[result].shape))
        return f"give '{result}' a data type, as in `shapes` {result}={typed}{sizes}, {others}"
    if _contradicts(node, walk):
        return (
            "give sizes of inputs that fit each other there, or, if they are right, the "
            f"result's shape, as in `shapes` {result}={typed}1x3x224x224"
        )
    return f"give shapes, as in `shapes` {result}={typed}1x3x224x224, {others}"


def _contradicts(node: ResolvedNode, walk: Walk) -> bool:
    """Tell whether shapes that a node reads, all of them known, do not fit each other."""
    why = _why_unknown(node, walk)
    known = walk.tensors.keys() | walk.constants.keys()
    return (
        f"{node.name}: {why}" in walk.contradictions
        and bool(_ABOUT_SHAPES.search(why))
        and known.issuperset(filter(None, node.reads))
    )


def _describe_node(node: ResolvedNode, walk: Walk) -> str:
    domain = f"{node.node.domain}." if node.node.domain else ""
    why = _why_unknown(node, walk)
    text = f"operator '{node.name}' ({domain}{node.node.op_type}{': ' + why if why else ''})"
    if not _contradicts(node, walk):
        return text
    known = [walk.tensors.get(name) or walk.constants[name] for name in node.reads if name]
    shapes = ["x".join(map(str, each.shape)) or "a number" for each in known]
    return f"{text}, which reads {listed(shapes)}"


def _why_unknown(node: ResolvedNode, walk: Walk) -> str:
    return next((why for name in node.writes if (why := walk.why_unknown.get(name))), "")
