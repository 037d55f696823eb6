"""Writes the tables of native-backends.md, kept true by a test: python docs/native_backends.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from docs.armcl_operators import network_row
from parapipe.targets.native.backends import BACKENDS, BackendName
from parapipe.targets.native.library_plan import FORMS
from parapipe.zoo.registry import examples

PAGE = Path(__file__).with_name("native-backends.md")
SOURCES = Path(__file__).parents[1] / "runtimes/native/src"
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)
_FUNCTION, _LOOP, _MOVES, _NOTHING = "function", "loop", "copy", "-"


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    return {"types": "\n".join(_types()), "networks": "\n".join(_networks())}


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found[match[2]], text)


def _types() -> Iterator[str]:
    yield f"| type | {' | '.join(BACKENDS)} |"
    yield "|---" * (len(BACKENDS) + 1) + "|"
    rows: dict[tuple[str, ...], list[str]] = {}
    for kind in FORMS:
        row = tuple(means(kind, backend) for backend in BACKENDS)
        rows.setdefault(row, []).append(f"`{kind}`")
    for row, kinds in rows.items():
        yield f"| {', '.join(kinds)} | {' | '.join(row)} |"


def means(kind: str, backend: BackendName) -> str:
    """Return how a back end computes a type of operator, as its source says."""
    if not BACKENDS[backend].complete:
        return _NOTHING if kind in _compared(_in_sources("operators/support.cpp")) else _FUNCTION
    builds = _in_sources(f"backends/{backend}/build_*.cpp")
    loops = _in_sources("backends/host/*_loops.cpp")
    if f'{{"{kind}", ' in builds or kind in _listed(builds):
        return _FUNCTION
    return _MOVES if re.search(rf'\{{"{kind}", \w+, true\}}', loops) else _LOOP


def _in_sources(pattern: str) -> str:
    return "\n".join(path.read_text() for path in sorted(SOURCES.glob(pattern)))


def _compared(text: str) -> set[str]:
    """Return the types that ARM Compute Library has no function for at all."""
    whole = text.partition("has no function in")[0]
    return set(re.findall(r'op\.type == "(\w+)"', whole))


def _listed(text: str) -> set[str]:
    """Return the types in loops over lists of types."""
    lists = re.findall(r"for \(const char \*type : \{(.*?)\}\)", text, re.DOTALL)
    return {name for each in lists for name in re.findall(r'"(\w+)"', each)}


def _networks() -> Iterator[str]:
    yield "| model | operators | in the runner | in the way |\n|---|---:|---:|---|"
    yield from (network_row(name, "plain") for name in examples())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), tables()))
    sys.stdout.write(f"wrote {PAGE}\n")
