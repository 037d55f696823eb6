"""Long lists of offenders, as an error message shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SHOWN = 5
_LONGEST = 200  # characters of an item: more has only a damaged file
_LONGEST_SENTENCE = 600
_NAME = "\0"  # stands for a name


def listed(items: Sequence[str]) -> str:
    """Join the first five items with commas, and say how many more there are."""
    return _joined(", ", [shortened(item) for item in items[:SHOWN]], len(items))


def listed_sentences(items: Sequence[str]) -> str:
    """Join the first five sentences with semicolons, and say how many more there are."""
    shown = [shortened(item, _LONGEST_SENTENCE) for item in items[:SHOWN]]
    return _joined("; ", shown, len(items))


def with_article(noun: str) -> str:
    """Return a noun behind `a`, or `an`."""
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


def shortened(item: str, longest: int = _LONGEST) -> str:
    """Return an item without what is beyond 200 characters, or as many as are given."""
    return item if len(item) <= longest else f"{item[:longest]}…"


def _joined(between: str, shown: Sequence[str], count: int) -> str:
    rest = count - len(shown)
    return between.join(shown) + (f" and {rest} more" if rest > 0 else "")


def together(texts: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Return one text for all names whose texts differ in the name alone, with verbs in the plural.

    Parameters
    ----------
    texts
        About what bears a name, by that name.
    """
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _NAME, text), []).append(name)
    return {
        tuple(names): _of_all(text, names) if len(names) > 1 else texts[names[0]]
        for text, names in groups.items()
    }


def with_and(names: Sequence[str]) -> str:
    """Join names with commas, the last with `and`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _of_all(text: str, names: Sequence[str]) -> str:
    text = re.sub(rf"{_NAME} (compute|run)s\b", rf"{_NAME} \1", text)
    text = text.replace(_NAME, with_and(names), 1)
    return re.sub(rf"{_NAME} (compute|run|cannot)\b", r"they \1", text).replace(_NAME, "them")
