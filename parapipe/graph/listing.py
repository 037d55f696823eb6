"""Long lists of offenders, as an error message shows them."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 8


def listed(items: Sequence[str]) -> str:
    """Join the first few items with commas, and say how many more there are."""
    rest = len(items) - _SHOWN
    shown = ", ".join(items[:_SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown
