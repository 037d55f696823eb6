"""The rules by which operators are cut, by domain and type."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.graph.parts import (
    attentions,
    elementwise,
    layout,
    normalisations,
    products,
    quantisation,
    reductions,
    resizes,
    transposed,
    views,
    windows,
)
from parapipe.graph.parts.part import Rule

RULES: Mapping[str, Mapping[str, Rule]] = {
    "": {
        **windows.RULES,
        **transposed.RULES,
        **products.RULES,
        **attentions.RULES,
        **elementwise.RULES,
        **normalisations.RULES,
        **reductions.RULES,
        **resizes.RULES,
        **layout.RULES,
        **views.RULES,
        **quantisation.RULES,
    },
    "com.microsoft": {
        **elementwise.MICROSOFT,
        **products.MICROSOFT,
        **attentions.MICROSOFT,
        **normalisations.MICROSOFT,
        **quantisation.MICROSOFT,
    },
}
