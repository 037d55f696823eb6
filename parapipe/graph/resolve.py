"""What of an ONNX graph is constant, and what is computed in each frame.

A quantised operator is found between DequantizeLinear nodes that nothing else reads. Where several
operators read the same one, each reader but the first gets a copy, as in ONNX Runtime
(EnsureUniqueDQForNodeUnit, `core/optimizer/qdq_transformer/ensure_unique_dq_for_node_unit.cc`); one
that is a graph output, or that a body reads, stays and all others get a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.graph.data_types import element_type_of
from parapipe.graph.infer import Array, Known, schema_of
from parapipe.graph.input_shapes import Given
from parapipe.graph.operator_graph import Constant, Tensor
from parapipe.graph.order import needed, ordered
from parapipe.graph.walk import Origin, Walk

DEQUANTISES = "DequantizeLinear"


def unshared(
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
        name for node in nodes for name in walk.known.nodes.reads(node)[len(node.input) :]
    }
    free: dict[str, list[str]] = {}  # names of outputs that no reader has yet, by the original's
    found: list[onnx.NodeProto] = []
    for node in nodes:
        found.append(_reading_own(node, free))
        if node.op_type != DEQUANTISES or not edges[node.output[0]]:
            continue
        name = node.output[0]
        kept = name in read_within or name in outputs
        free[name] = [] if kept else [name]
        for _ in range(edges[name] - len(free[name])):
            found.append(_copy(node, name, walk))
            free[name].append(found[-1].output[0])
    return found


def _reading_own(node: onnx.NodeProto, free: dict[str, list[str]]) -> onnx.NodeProto:
    """Return the node, its inputs renamed to copies that no other one reads."""
    own = [free[name].pop(0) if free.get(name) else name for name in node.input]
    if own == list(node.input):
        return node
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    changed.input[:] = own
    return changed


def _copy(node: onnx.NodeProto, name: str, walk: Walk) -> onnx.NodeProto:
    """Return a copy of a DequantizeLinear under a name that is not taken."""
    own = next(
        new
        for number in count(2)
        if (new := f"{name}/{number}") not in walk.known.types and not walk.times_named[new]
    )
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = ""  # it goes by its output's
    copy.output[0] = own
    if name in walk.known.types:
        walk.known.types[own] = walk.known.types[name]
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

    Each reader of a dequantised activation has a DequantizeLinear of its own (see `unshare`).

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
    """

    nodes: tuple[ResolvedNode, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    values: Mapping[str, Array]
    outputs: tuple[str, ...]
    types: Mapping[str, onnx.TypeProto]
    origins: Mapping[str, Origin]
    opsets: Mapping[str, int]
    notes: tuple[str, ...] = ()


def resolve(
    model: onnx.ModelProto,
    model_name: str,
    inputs: Mapping[str, onnx.TypeProto],
    declared: Mapping[str, onnx.TypeProto],
    given: Mapping[str, Given] | None = None,
) -> Resolved:
    """Find shapes, types and constants of a whole model.

    Parameters
    ----------
    inputs
        Types of the graph inputs, with known shapes.
    declared
        Types that the file declares for results; used where none can be inferred.
    given
        What the user says of results, which nothing may contradict.

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
    walk = Walk(Known(opsets, dict(inputs)), declared, given or {}, times_named)
    walk.add_initializers(graph)
    nodes = ordered(model_name, graph.node, walk.known.types, walk.known.nodes.reads)
    made = {name for node in nodes for name in node.output}
    if lost := [
        f"'{name}'" for name in outputs if name not in made and name not in walk.known.types
    ]:
        raise ModelError(
            f"'{model_name}' has outputs that nothing makes ({listed(lost)}): export it again"
        )
    walk.run(needed(nodes, outputs, walk.known.nodes.reads))
    if walk.disagreeing:
        raise ModelError(
            f"the shapes given for '{model_name}' are wrong: "
            f"{listed_sentences(walk.disagreeing)}, as follows from its inputs and what the file "
            "states"
        )
    return _live(model_name, walk, outputs, inputs)


def _live(model_name: str, walk: Walk, outputs: Iterable[str], inputs: Collection[str]) -> Resolved:
    """Keep what the outputs need once constants are folded, and check that all is known."""
    reads_of = walk.known.nodes.reads
    nodes = needed(walk.kept, outputs, reads_of)
    made = {name for node in nodes for name in node.output}
    wanted = tuple(name for name in outputs if name in made)
    nodes = unshared(nodes, wanted, walk)
    read = {name for node in nodes for name in reads_of(node)}.union(wanted)
    if not wanted or read.isdisjoint(inputs):
        raise ModelError(
            f"'{model_name}' has no output that depends on an input: nothing is left to map"
        )
    resolved = tuple(
        ResolvedNode(node, walk.name(node), reads_of(node), _writes(node, read, walk.known.opsets))
        for node in nodes
    )
    _check_known(model_name, resolved, walk)
    constants = {name: walk.constant(name) for name in sorted(read & walk.constants.keys())}
    return Resolved(
        resolved,
        walk.tensors,
        constants,
        walk.known.values,
        wanted,
        walk.known.types,
        walk.origins,
        walk.known.opsets,
        tuple(walk.notes),
    )


def _writes(
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


def _check_known(model_name: str, nodes: Sequence[ResolvedNode], walk: Walk) -> None:
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
        count = len(made - known)
        raise ModelError(
            f"'{model_name}' has {count} {'result' if count == 1 else 'results'} of unknown shape "
            f"or type, first those of {listed(offenders)}: {_advice(causes[0], walk)}, declare "
            "what is missing in the model (value_info), or give other shapes of inputs"
        )


def _advice(node: ResolvedNode, walk: Walk) -> str:
    """Return how to say what is not known of a node's first result that is not known."""
    known = walk.tensors.keys() | walk.constants.keys()
    result = next(name for name in node.writes if name not in known)
    kind = walk.known.types.get(result) or walk.declared.get(result)
    typed = "" if element_type_of(kind) else "float32:"
    if result in walk.given:
        sizes = "x".join(map(str, walk.given[result].shape))
        return f"give '{result}' a data type, as in `shapes` {result}={typed}{sizes}"
    return f"give shapes, as in `shapes` {result}={typed}1x3x224x224"


def _offender(node: ResolvedNode, why_unknown: Mapping[str, str]) -> str:
    domain = f"{node.node.domain}." if node.node.domain else ""
    why = next((reason for name in node.writes if (reason := why_unknown.get(name))), "")
    return f"operator '{node.name}' ({domain}{node.node.op_type}{': ' + why if why else ''})"
