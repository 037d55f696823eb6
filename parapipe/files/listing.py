"""Long lists of offenders, as an error message shows them."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 5
_LONGEST = 200  # characters of an item: more has only a damaged file
_LONGEST_SENTENCE = 600


def listed(items: Sequence[str]) -> str:
    """Join the first five items with commas, and say how many more there are."""
    return _joined(", ", [shortened(item) for item in items[:SHOWN]], len(items))


def listed_sentences(items: Sequence[str]) -> str:
    """Join the first five sentences with semicolons, and say how many more there are."""
    shown = [shortened(item, _LONGEST_SENTENCE) for item in items[:SHOWN]]
    return _joined("; ", shown, len(items))


def shortened(item: str, longest: int = _LONGEST) -> str:
    """Return an item without what is beyond 200 characters, or as many as are given."""
    return item if len(item) <= longest else f"{item[:longest]}…"


def _joined(between: str, shown: Sequence[str], count: int) -> str:
    rest = count - len(shown)
    return between.join(shown) + (f" and {rest} more" if rest > 0 else "")
