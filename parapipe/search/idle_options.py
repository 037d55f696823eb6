"""Options of `map` that say nothing beside the others, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def needs_memory(arguments: Mapping[str, Any]) -> str:
    """Say why an option of memory has no effect; nothing if it has."""
    if arguments["max_memory_bytes"] is not None or "memory" in arguments["objectives"]:
        return ""
    return (
        "has no effect without a limit of memory; give --max-memory, or memory among --objectives, "
        "too"
    )


def needs_energy(arguments: Mapping[str, Any]) -> str:
    """Say why an option of energy has no effect; nothing if it has."""
    if "energy" in arguments["objectives"]:
        return ""
    return f"has no effect with --objectives {arguments['objectives']}; give one of them"


def needs_clock(arguments: Mapping[str, Any]) -> str:
    """Say what a budget contradicts; nothing if nothing."""
    if arguments["budget_s"] is None or not arguments["deterministic"]:
        return ""
    return "contradicts --deterministic, which looks at no clock; give one of them"
