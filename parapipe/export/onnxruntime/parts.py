"""A plan's segments with their nodes, in the data types that the plan gives them.

Each operator computes in the type that the plan gives it, as far as ONNX defines it there: which of
a node's inputs and outputs may be of a type stands in the operator's schema. What may not (scales
of Resize, boxes of NonMaxSuppression), operators of other domains, control flow and operators on
integers stay in the model's types, between casts. Converters of whole models, such as that of
onnxconverter-common, go by a list of operators that stay, and know no borders between segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from parapipe.export.constants import constant_parts
from parapipe.export.onnxruntime.boundary import CONVERTED_TO, Handovers, drop_copies
from parapipe.export.onnxruntime.network import Marked, ModelFile, Network, load_network
from parapipe.export.onnxruntime.session_document import numbered_segments
from parapipe.graph.data_types import CONVERTIBLE_TYPES, dtype_name, element_type, element_type_of
from parapipe.graph.infer import schema_of
from parapipe.graph.order import reads_of
from parapipe.graph.walk import Origin
from parapipe.plan.mapped import operands_of
from parapipe.plan.schema import Plan
from parapipe.plan.segments import NO_PIECES, Pieces
from parapipe.plan.sharing import InPlace
from parapipe.runtime.document import Segment, View

LARGEST = float(np.finfo(np.float16).max)


def converted_parts(
    parts: Iterable[ModelFile], network: Network, plan: Plan, handovers: Handovers
) -> tuple[list[ModelFile], Network]:
    """Return model files in the types of their plan, and the network with what they read besides.

    Weights in float16 are held in memory; those beyond its range become its largest number.

    Parameters
    ----------
    parts
        Nodes in the model's types; inputs and outputs as they are handed over.
    """
    typed = _TypedNetwork(
        network, handovers, dict(network.resolved.types), dict(network.resolved.origins)
    )
    types = {
        at.operator: at.data_type or handovers.working[processor.name]
        for stage in plan.stages
        for processor in stage.processors
        for at in processor.operators
    }
    on_integers = {operator.id for operator in plan.operators if operator.computes_in}
    wanted = {
        next(filter(None, node.output)): None if v in on_integers else types[v]
        for v, nodes in network.nodes.items()
        for node in nodes
    }
    converted = [_SegmentConversion(typed, part, wanted).converted() for part in parts]
    resolved = replace(network.resolved, types=typed.types, origins=typed.origins)
    return converted, replace(network, resolved=resolved)


@dataclass(frozen=True)
class _TypedNetwork:
    """Types and constants of the network, those in other types added as they are needed."""

    network: Network
    handovers: Handovers
    types: dict[str, onnx.TypeProto]
    origins: dict[str, Origin]

    @property
    def opsets(self) -> Mapping[str, int]:
        return {each.domain: each.version for each in self.network.opsets}

    def own_type(self, name: str) -> str | None:
        """Return the model's type of what is converted; None for all else."""
        dtype = dtype_name(element_type_of(self.network.resolved.types.get(name)))
        return dtype if dtype in CONVERTIBLE_TYPES else None

    def name_in_type(self, name: str, dtype: str) -> str:
        """Return the name of a tensor in a type, which is known from then on."""
        if dtype == self.own_type(name):
            return name
        new_name = self.handovers.name(name, dtype)
        if new_name not in self.types:
            kind = deepcopy(self.network.resolved.types[name])
            kind.tensor_type.elem_type = element_type(dtype) or 0
            self.types[new_name] = kind
        return new_name

    def constant_in_type(self, name: str, dtype: str) -> str:
        """Return the name of a constant in a type: converted here, or by a node when loaded."""
        new_name = self.name_in_type(name, dtype)
        if new_name not in self.origins:
            tensor = constant_parts([name], self.network.resolved).tensors.get(name)
            self.origins[new_name] = (
                helper.make_node("Cast", [name], [new_name], to=element_type(dtype))
                if tensor is None or dtype != "float16"
                else self._float16_values(tensor, new_name)
            )
        return new_name

    def _float16_values(self, tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
        values: Any = numpy_helper.to_array(tensor, str(self.network.folder)).astype(np.float32)
        clipped = np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), values)
        return numpy_helper.from_array(clipped.astype(np.float16), name)


@dataclass
class _SegmentConversion:
    """A segment being converted.

    Parameters
    ----------
    wanted
        Type that each node computes in, by its first output; None for the model's.
    there
        Types in which each tensor is there so far.
    nodes
        What was made so far of the operator at hand.
    """

    typed: _TypedNetwork
    part: ModelFile
    wanted: Mapping[str, str | None]
    there: dict[str, list[str]] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def converted(self) -> ModelFile:
        """Return the segment in its types."""
        tensor_and_type = self.typed.handovers.tensor_and_type
        for handover in self.part.inputs:
            name, dtype = tensor_and_type[handover]
            self.there.setdefault(name, []).append(dtype)
        marked = []
        for each in self.part.marked:
            for node in each.nodes:
                self._add_node(node)
            marked.append(Marked(self.nodes, each.processor, each.stage))
            self.nodes = []
        for handover in self.part.outputs:
            name, dtype = tensor_and_type[handover]
            if self.typed.own_type(name) is not None:
                self._cast_to(name, dtype)
        last = marked[-1]
        marked[-1] = replace(last, nodes=[*last.nodes, *self.nodes])
        return replace(self.part, marked=marked)

    def _add_node(self, original: onnx.NodeProto) -> None:
        """Add a node, its inputs cast to what it computes in."""
        node, typed = deepcopy(original), self.typed
        schema = schema_of(node.op_type, typed.opsets.get(node.domain, 0), node.domain)
        within = any(a.HasField("g") or a.graphs for a in node.attribute)
        wanted = self.wanted[next(filter(None, original.output))]
        as_it_is = schema is None or within or node.domain or wanted is None
        bound: dict[str, str] = {}
        for position, name in enumerate(node.input):
            own = typed.own_type(name) if name else None
            if own is None:
                continue
            formal = None if as_it_is or schema is None else _formal(schema.inputs, position)
            dtype = wanted if formal and wanted and f"tensor({wanted})" in formal.types else own
            if formal:
                bound[formal.type_str] = dtype
            node.input[position] = self._cast_to(name, dtype)
        for name in reads_of(node)[len(node.input) :]:  # what bodies take from outside
            if (own := typed.own_type(name)) is not None:
                self._cast_to(name, own)
        if node.op_type == "Cast" and not as_it_is and typed.own_type(node.output[0]):
            _set_integer(node, "to", element_type(wanted or "") or 0)
            bound["T2"] = wanted or ""
        for position, name in enumerate(node.output):
            own = typed.own_type(name) if name else None
            if own is None:
                continue
            formal = None if schema is None else _formal(schema.outputs, position)
            dtype = bound.get(formal.type_str, own) if formal else own
            node.output[position] = typed.name_in_type(name, dtype)
            self.there[name] = [dtype]
        self.nodes.append(node)

    def _cast_to(self, name: str, dtype: str) -> str:
        """Return the name of a tensor in a type, cast from the one that it is there in if need be.

        What is no tensor of the segment is a constant.
        """
        typed = self.typed
        if name not in self.there:
            return name if dtype == typed.own_type(name) else typed.constant_in_type(name, dtype)
        new_name = typed.name_in_type(name, dtype)
        if dtype not in self.there[name]:
            source = typed.name_in_type(name, self.there[name][0])
            cast = helper.make_node("Cast", [source], [new_name], to=element_type(dtype))
            self.nodes.append(cast)
            self.there[name].append(dtype)
        return new_name


def _formal(
    formals: Any,  # noqa: ANN401 - a list of onnx's own
    position: int,
) -> onnx.defs.OpSchema.FormalParameter | None:
    """Return what a schema says of an input or output; the last may stand for several."""
    if not formals:
        return None
    return formals[min(position, len(formals) - 1)]  # type: ignore[no-any-return]


def _set_integer(node: onnx.NodeProto, name: str, value: int) -> None:
    for attribute in node.attribute:
        if attribute.name == name:
            attribute.i = value


@dataclass(frozen=True, slots=True)
class Parts:
    """What the files of a plan hold.

    Parameters
    ----------
    handovers
        Names and types of what goes from segment to segment.
    plan
        As it runs: without operators that sessions need not run, if that was asked for.
    segments
        In an order in which they can run. They read what others make; the files may read views of
        it.
    views
        Ranges of tensors.
    files
        What goes into each segment's file, by its id.
    network_file
        What goes into the file of the whole network.
    network
        What they are made of.
    """

    plan: Plan
    handovers: Handovers
    segments: tuple[Segment, ...]
    views: tuple[View, ...]
    files: Mapping[str, ModelFile]
    network_file: ModelFile
    network: Network


def parts_of(
    plan: Plan,
    model: Path,
    *,
    in_place: bool = False,
    single: bool = False,
    pieces: Pieces = NO_PIECES,
) -> Parts:
    """Return the segments of a plan.

    Parameters
    ----------
    in_place
        Leave out what joins and cuts tensors where they lie; see `drop_copies`.
    single, pieces
        As of `segments`.

    Raises
    ------
    ModelError
        If the model cannot be used.
    PlanError
        If the plan's operators are not those of the model.
    """
    network = load_network(plan, model)
    run = (
        drop_copies(plan, network, single=single, pieces=pieces) if in_place else InPlace(plan, {})
    )
    handovers = Handovers.of(run.plan)
    segments = tuple(handovers.segments(numbered_segments(run.plan, single=single, pieces=pieces)))
    read = {each.id: _plan_inputs(each, plan) if run.ranges else each.inputs for each in segments}
    files = [
        ModelFile(each.id, _marked_nodes(each, network), read[each.id], each.outputs)
        for each in segments
    ]
    listed = numbered_segments(plan) if run.ranges else segments
    marked = [each for segment in listed for each in _marked_nodes(segment, network)]
    network_file = ModelFile("network", marked, plan.inputs, plan.outputs)
    if plan.precision == CONVERTED_TO:
        (network_file, *files), network = converted_parts(
            (network_file, *files), network, plan, handovers
        )
    views = tuple(
        View(each.tensor, each.whole, each.begin, each.end) for each in run.ranges.values()
    )
    by_name = {part.name: part for part in files}
    return Parts(run.plan, handovers, segments, views, by_name, network_file, network)


def _marked_nodes(segment: Segment, network: Network) -> list[Marked]:
    return [Marked(network.nodes[v], segment.processor, segment.stage) for v in segment.operators]


def _plan_inputs(segment: Segment, plan: Plan) -> tuple[str, ...]:
    """Return what the operators of a segment read in the plan and do not make."""
    operators = [each for each in plan.operators if each.id in segment.operators]
    outputs = {name for each in operators for name in each.outputs}
    names = dict.fromkeys(name for each in operators for name in operands_of(each, plan))
    return tuple(name for name in names if name not in outputs)
