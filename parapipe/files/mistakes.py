"""Mistakes in files: where each is, what is wrong and what to do, and long lists of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

SHOWN = 5
_LONGEST = 200  # characters of an item: more has only a damaged file
_LONGEST_SENTENCE = 600
_NAME = "\0"  # stands for a name


def listed(items: Sequence[str]) -> str:
    """Join the first five items with commas, and say how many more there are."""
    return _join(", ", [shorten_text(item) for item in items[:SHOWN]], len(items))


def listed_sentences(items: Sequence[str]) -> str:
    """Join the first five sentences with semicolons, and say how many more there are."""
    shown = [shorten_text(item, _LONGEST_SENTENCE) for item in items[:SHOWN]]
    return _join("; ", shown, len(items))


def with_article(noun: str) -> str:
    """Return a noun behind `a`, or `an`."""
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


def shorten_text(item: str, longest: int = _LONGEST) -> str:
    """Return an item without what is beyond 200 characters, or as many as are given."""
    return item if len(item) <= longest else f"{item[:longest]}…"


def _join(between: str, shown: Sequence[str], count: int) -> str:
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
        tuple(names): _in_plural(text, names) if len(names) > 1 else texts[names[0]]
        for text, names in groups.items()
    }


def join_with_and(names: Sequence[str]) -> str:
    """Join names with commas, the last with `and`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _in_plural(text: str, names: Sequence[str]) -> str:
    text = re.sub(rf"{_NAME} (compute|run)s\b", rf"{_NAME} \1", text)
    text = text.replace(_NAME, join_with_and(names), 1)
    return re.sub(rf"{_NAME} (compute|run|cannot)\b", r"they \1", text).replace(_NAME, "them")


KeyPath = tuple[str | int, ...]
SAME = {
    "fp16": ("float16",), "f16": ("float16",), "half": ("float16",),
    "fp32": ("float32", "model"), "f32": ("float32", "model"), "float32": ("model",),
    "i8": ("int8",), "s8": ("int8",), "u8": ("uint8",), "bf16": ("bfloat16",),
    "ort": ("onnxruntime",), "onnx": ("onnxruntime",), "acl": ("armcl",),
}  # fmt: skip
"""What others call something, and what it may be called here."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake.

    Parameters
    ----------
    path
        Keys and list indices from the top of the file to the offender.
    text
        What is wrong and what to do; the sentence goes on after the key.
    line
        Where to look, from 1; None where only the key is known yet.
    """

    path: KeyPath
    text: str
    line: int | None = None

    def sentence(self, file: str, line: int) -> str:
        """Return `file:line: key: what is wrong, what to do`."""
        where = f"{file}:{line}: "
        return f"{where}{key_text(self.path)}: {self.text}" if self.path else where + self.text


def key_text(path: KeyPath) -> str:
    """Write a path as people do: processors[0].power.alpha_w_per_v2_hz."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def nearest(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word that is meant or most like this one; `cutoff` is that of difflib."""
    words = list(choices)
    meant = [each for each in SAME.get(word.lower(), ()) if each in words]
    near = meant or get_close_matches(word, words, n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing if no known word is near."""
    near = nearest(word, choices)
    return f"; did you mean '{near}'?" if near else ""
