"""Names of parts and of what runs again, and marks of the nodes that cut tensors and join them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx

IR_VERSION = 10
"""The oldest with metadata of nodes."""
PART_TYPES = frozenset({"Slice", "Concat"})
"""Types of the nodes that cut and join."""
_KEY = "parapipe.parts"
_PART = re.compile(r"(.+)/part(\d+)")
_AGAIN = re.compile(r"(.+)/again(\d+)")


def part_name(name: str, number: int) -> str:
    """Return the name of a part of a node, or of a tensor."""
    return f"{name}/part{number}"


def whole_and_number(name: str) -> tuple[str, int] | None:
    """Return the name of what a part belongs to, and its number; None if it names no part."""
    match = _PART.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def again_name(name: str, number: int) -> str:
    """Return the name of a node, or of a tensor, of another run of an operator; 0 is its own."""
    return f"{name}/again{number}" if number else name


def own_and_run(name: str) -> tuple[str, int] | None:
    """Return the name of what runs again, and the number of the run; None if it names none."""
    match = _AGAIN.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def mark(node: onnx.NodeProto) -> onnx.NodeProto:
    """Mark a Slice that cuts a tensor for a part, or a Concat that joins parts."""
    node.metadata_props.add(key=_KEY, value="cut" if node.op_type == "Slice" else "join")
    return node


def is_within_buffer(node: onnx.NodeProto, read: Sequence[int], made: Sequence[int]) -> bool:
    """Whether a marked node copies nothing, if the whole tensor is allocated at once.

    Its parts then lie one behind the other in memory: all axes before the cut one have one element.

    Parameters
    ----------
    read, made
        Shapes of the first input and of the output.
    """
    if not any(entry.key == _KEY for entry in node.metadata_props):
        return False
    whole = read if node.op_type == "Slice" else made
    cut = [axis for axis in range(len(whole)) if read[axis] != made[axis]]
    return len(cut) == 1 and all(size == 1 for size in whole[: cut[0]])
