"""The rules by which operators are cut, by domain and type."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.parts import elementwise, layout, products, windows
from parapipe.parts.part import Rule

RULES: Mapping[str, Mapping[str, Rule]] = {
    "": {
        **windows.RULES,
        **windows.TRANSPOSED_RULES,
        **products.RULES,
        **products.ATTENTION_RULES,
        **elementwise.RULES,
        **elementwise.NORMALISATION_RULES,
        **elementwise.REDUCTION_RULES,
        **layout.RESIZE_RULES,
        **layout.RULES,
        **elementwise.VIEW_RULES,
        **layout.QUANTISATION_RULES,
    },
    "com.microsoft": {
        **elementwise.MICROSOFT,
        **products.MICROSOFT,
        **products.MICROSOFT_ATTENTIONS,
        **elementwise.MICROSOFT_NORMALISATIONS,
        **layout.MICROSOFT_QUANTISATION,
    },
}
