"""Every ONNX operator that can be exported, and its rule."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.export.armcl import (
    activation,
    arithmetic,
    convolution,
    layout,
    pieces,
    pooling,
    product,
    reduction,
    resize,
)
from parapipe.export.armcl.steps import Rule

RULES: Mapping[str, Rule] = {
    **convolution.RULES,
    **pooling.RULES,
    **product.RULES,
    **arithmetic.RULES,
    **activation.RULES,
    **reduction.RULES,
    **layout.RULES,
    **pieces.RULES,
    **resize.RULES,
}
