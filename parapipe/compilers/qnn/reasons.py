"""Reads why Qualcomm's compiler leaves nodes to the CPU."""

from __future__ import annotations

import re
from collections.abc import Mapping

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REFUSAL = re.compile(
    r"Validation FAILED for .*\n(?P<nodes>(?:[ \t]*Operator type: .*\n)+)"
    r"[ \t]*REASON : (?P<reason>.+?)(?:\w+ node `[^`]*` will not be assigned to QNN EP\.)?[ \t]*$",
    re.MULTILINE,
)
_NODE = re.compile(r"Node name: (.*?) Node index: \d+")


def read_reasons(text: str) -> Mapping[str, str]:
    """Return the reason by the name of the node, as ONNX Runtime calls it, of a verbose log.

    A node that is refused together with others, as between QuantizeLinear and DequantizeLinear, has
    the reason of all.
    """
    return {
        node: refusal["reason"].strip()
        for refusal in _REFUSAL.finditer(_COLOUR.sub("", text))
        for node in _NODE.findall(refusal["nodes"])
    }
