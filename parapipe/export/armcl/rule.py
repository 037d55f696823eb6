"""A rule: how an ONNX operator becomes steps, and what the documentation says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parapipe.export.armcl.steps import Steps
from parapipe.plan.schema import Operator


@dataclass(frozen=True, slots=True)
class Rule:
    """How operators of an ONNX type are exported.

    Parameters
    ----------
    lower
        Adds the steps of one operator; raises `NotExportable` where it cannot.
    becomes
        The steps, in words.
    condition
        What must hold besides, in words; empty if nothing.
    dimensions
        Whether it takes tensors of more than four dimensions.
    """

    lower: Callable[[Operator, Steps], None]
    becomes: str
    condition: str = ""
    dimensions: bool = False
