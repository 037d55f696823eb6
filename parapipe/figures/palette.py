"""Looks of processors: Okabe and Ito's colours, and hatches for what is printed in grey."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8a8f98")
HATCHES = ("", "////", "..", "----", "\\\\\\\\", "||||", "xxxx", "++++")
IDLE = "0.92"
STATIC_ALPHA = 0.45


class Look(NamedTuple):
    """How a processor is drawn."""

    colour: str
    hatch: str


Looks = Mapping[str, Look]
"""How each processor of a platform is drawn, by its name."""


def looks(processors: Iterable[str]) -> Looks:
    """Return how each processor is drawn, by its place in the platform."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], HATCHES[i % len(HATCHES)])
        for i, name in enumerate(processors)
    }
