"""Long lists of offenders, as an error message shows them."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 8
_LONGEST = 200  # characters of an item: more has only a damaged file


def listed(items: Sequence[str]) -> str:
    """Join the first few items with commas, and say how many more there are."""
    rest = len(items) - _SHOWN
    shown = ", ".join(map(shortened, items[:_SHOWN]))
    return f"{shown} and {rest} more" if rest > 0 else shown


def shortened(item: str) -> str:
    """Return an item without what is beyond 200 characters."""
    return item if len(item) <= _LONGEST else f"{item[:_LONGEST]}…"
