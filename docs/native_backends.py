"""Writes the tables of native-backends.md, kept true by a test: python -m docs.native_backends.

`python -m docs.native_backends FOLDER` also looks at the packaged models that packaged_list.py has
installed below FOLDER: it writes how many operators of each type they have into
packaged_operators.csv, and their table. `make packaged-models` does that. Without FOLDER that table
stays as it is.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import parapipe
from docs.armcl_operators import model_row, network_row
from docs.packaged_list import MODELS, installed
from parapipe.targets.native import loops
from parapipe.targets.native.backends import BACKENDS, BackendName
from parapipe.targets.native.build import RULES
from parapipe.targets.native.library_plan import FORMS
from parapipe.targets.native.steps import Rule
from parapipe.zoo.registry import examples

PAGE = Path(__file__).with_name("native-backends.md")
PACKAGED = Path(__file__).with_name("packaged_operators.csv")
SOURCES = Path(__file__).parents[1] / "runtimes/native/src"
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)
_FUNCTION, _LOOP, _MOVES, _NOTHING = "function", "loop", "copy", "-"


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    return {
        "types": "\n".join(_types()),
        "networks": "\n".join(_networks()),
        "operators": "\n".join(_operators(packaged_counts())),
    }


def page(text: str, found: Mapping[str, str]) -> str:
    """Return the page's text with those of its tables replaced that are given."""
    return _TABLE.sub(lambda match: match[1] + found.get(match[2], match[0][len(match[1]) :]), text)


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


def packaged_counts() -> dict[str, int]:
    """Return how many operators of each ONNX type the packaged models have, as they are kept."""
    counts: Counter[str] = Counter()
    with PACKAGED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            counts[row["type"]] += int(row["operators"])
    return dict(sorted(counts.items()))


def _operators(counts: Mapping[str, int]) -> Iterator[str]:
    yield f"| ONNX operator | {' | '.join(BACKENDS)} |\n{'|---' * (len(BACKENDS) + 1)}|"
    rows: dict[tuple[str, ...], list[str]] = {}
    for kind, count in counts.items():
        row = tuple(lowered(kind, backend) for backend in BACKENDS)
        rows.setdefault(row, []).append(f"{count} `{kind}`")
    for row, kinds in sorted(rows.items(), key=lambda item: item[1][0].partition(" ")[2]):
        yield f"| {', '.join(kinds)} | {' | '.join(row)} |"


def lowered(kind: str, backend: BackendName) -> str:
    """Return what computes an ONNX operator on a back end: all of what it usually becomes."""
    rules: Mapping[str, Rule] = RULES | (loops.RULES if BACKENDS[backend].complete else {})
    if kind not in rules:
        return _NOTHING
    usually = rules[kind].becomes.partition(";")[0].partition(", or")[0]
    means_of = [means(step, backend) for step in re.findall(r"\w+", usually) if step in FORMS]
    order = (_NOTHING, _LOOP, _FUNCTION, _MOVES)
    return min(means_of, key=order.index)


def look_at_packaged(folder: Path) -> str:
    """Write the types of the packaged models' operators, and return the models' table."""
    lines = ["| model | operators | in the runner | in the way |\n|---|---:|---:|---|"]
    with PACKAGED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("package", "file", "type", "operators"))
        for each in MODELS:
            path = installed(each, folder) / each.path
            graph = parapipe.load_model(path, shapes=each.shapes, note=lambda _: None)
            counts = Counter(part.type for operator in graph.operators for part in operator.singles)
            name = f"{each.package} {each.version}"
            writer.writerows((name, path.name, *item) for item in sorted(counts.items()))
            lines.append(model_row(f"{name}: {path.name}", path, graph, "plain"))
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Write the page, and what it says of packaged models if their folder is given."""
    packaged = {"packaged": look_at_packaged(Path(words[0]))} if words else {}
    PAGE.write_text(page(PAGE.read_text(), tables() | packaged))
    sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
