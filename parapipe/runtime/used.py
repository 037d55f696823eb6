"""Which execution provider of ONNX Runtime really ran a processor's segments.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Used:
    """What runs a processor's segments.

    Parameters
    ----------
    processor
        Its name.
    provider, options
        ONNX Runtime's execution provider and what it was given, the number of threads included.
    nodes
        How many nodes of the segments each provider took, by its name: the CPU's kernels run what
        `provider` does not take. None where ONNX Runtime is older than 1.24 and does not tell.
    substitute
        Why `provider` stands in for the one that the platform names.
    """

    processor: str
    provider: str
    options: Mapping[str, str]
    nodes: Mapping[str, int] | None
    substitute: str | None

    def sentences(self) -> tuple[str, ...]:
        """Return what is to be known of it."""
        if self.substitute:
            return (f"'{self.processor}' is run by {self.provider}, since {self.substitute}",)
        left = sum(self.nodes.values()) - self.nodes.get(self.provider, 0) if self.nodes else 0
        if not left or not self.nodes:
            return ()
        of = sum(self.nodes.values())
        return (f"{self.provider} leaves {left} of {of} nodes of '{self.processor}' to the CPU",)
