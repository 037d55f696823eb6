"""Names of parts and of what runs again, and the operators of the model that they come from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import onnx

IR_VERSION = 10
"""The oldest with metadata of nodes."""
PART_TYPES = frozenset({"Slice", "Concat"})
"""Types of the nodes that cut and join."""
_KEY = "parapipe.parts"
_PART = re.compile(r"(.+)/part(\d+)")
_RECOMPUTED = re.compile(r"(.+)/again(\d+)")


def part_name(name: str, number: int) -> str:
    """Return the name of a part of a node, or of a tensor."""
    return f"{name}/part{number}"


def tensor_and_part(name: str) -> tuple[str, int] | None:
    """Return the name of what a part belongs to, and its number; None if it names no part."""
    match = _PART.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def recompute_name(name: str, number: int) -> str:
    """Return the name of a node, or of a tensor, of another run of an operator; 0 is its own."""
    return f"{name}/again{number}" if number else name


def operator_and_run(name: str) -> tuple[str, int] | None:
    """Return the name of what runs again, and the number of the run; None if it names none."""
    match = _RECOMPUTED.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def mark(node: onnx.NodeProto) -> onnx.NodeProto:
    """Mark a Slice that cuts a tensor for a part, or a Concat that joins parts."""
    node.metadata_props.add(key=_KEY, value="cut" if node.op_type == "Slice" else "join")
    return node


def is_within_buffer(node: onnx.NodeProto, first: Sequence[int], output: Sequence[int]) -> bool:
    """Whether a marked node copies nothing, if the whole tensor is allocated at once.

    Its parts then lie one behind the other in memory: all axes before the cut one have one element.

    Parameters
    ----------
    first, output
        Shapes of the first input and of the output.
    """
    if not any(entry.key == _KEY for entry in node.metadata_props):
        return False
    joined = first if node.op_type == "Slice" else output
    cut = [axis for axis in range(len(joined)) if first[axis] != output[axis]]
    return len(cut) == 1 and all(size == 1 for size in joined[: cut[0]])


class OperatorLike(Protocol):
    """An operator of a graph, or of a plan."""

    @property
    def id(self) -> str:
        """Name of its first output."""
        ...

    @property
    def inputs(self) -> Sequence[str]:
        """Names of what it reads."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """Names of what it makes."""
        ...


def origins(operators: Sequence[OperatorLike], model: Collection[str]) -> Mapping[str, str]:
    """Return the id of the model's operator for each id of the split model's.

    What cuts a tensor for parts or joins them belongs to the first operator that reads the result,
    or else to the one that makes what it reads.

    Parameters
    ----------
    operators
        Of the split model, in topological order.
    model
        Ids of the model's operators.
    """
    origin_of = {each.id: origin for each in operators if (origin := _origin(each.id, model))}
    if len(origin_of) == len(operators):
        return origin_of
    maker = {name: each.id for each in operators for name in each.outputs}
    makers = {each.id: [maker[n] for n in each.inputs if n in maker] for each in operators}
    readers: dict[str, list[str]] = defaultdict(list)
    for reader, sources in makers.items():
        for source in sources:
            readers[source].append(reader)
    for near, order in ((readers, reversed(operators)), (makers, operators)):
        for each in order:
            near_origins = (origin_of[other] for other in near[each.id] if other in origin_of)
            if each.id not in origin_of and (origin := next(near_origins, "")):
                origin_of[each.id] = origin
    return origin_of


def _origin(name: str, model: Collection[str]) -> str:
    """Return the id of the operator that this is, is a part or another run of; empty if none."""
    others = (match[0] for match in (tensor_and_part(name), operator_and_run(name)) if match)
    return next((origin for origin in (name, *others) if origin in model), "")
