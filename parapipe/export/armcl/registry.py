"""Every ONNX operator that can be exported, and its rule."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.export.armcl import (
    activation,
    arithmetic,
    convolution,
    layout,
    pooling,
    product,
    reduction,
    resize,
    slices,
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
    **slices.RULES,
    **resize.RULES,
}
