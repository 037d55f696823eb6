"""A mistake in a platform file: where it is, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

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


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word that is meant or most like this one; `cutoff` is that of difflib."""
    words = list(known)
    meant = [each for each in SAME.get(word.lower(), ()) if each in words]
    near = meant or get_close_matches(word, words, n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing if no known word is near."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""
