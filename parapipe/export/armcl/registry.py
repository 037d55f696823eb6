"""Every ONNX operator that can be exported, and its rule."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.export.armcl import (
    convolution,
    elementwise,
    layout,
    product,
    reduction,
    windows,
)
from parapipe.export.armcl.steps import Rule

RULES: Mapping[str, Rule] = {
    **convolution.RULES,
    **windows.RULES,
    **product.RULES,
    **elementwise.RULES,
    **reduction.RULES,
    **layout.RULES,
}
