"""`python -m benchmarks.onnx_coverage`: import all that the ONNX project tests its backends with.

Every model of `onnx.backend.test` (the node, simple and real cases that the package makes, and the
files that it ships) is written to a file and imported and partitioned, and so is every other file
of its data folder. A case ends as imported, or as refused with a ModelError, of which the cause is
counted; anything else is a mistake in parapipe, such as a partition that breaks a rule. Where a
test comes with results, shapes are compared.

Writes docs/onnx-coverage.md; a test keeps it true.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

from benchmarks.partition_rules import breaches
from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_model
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition

PAGE = Path(__file__).parents[1] / "docs" / "onnx-coverage.md"
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
Shapes = Mapping[str, tuple[int, ...]]

IMPORTED = "imported"
CAUSES: Mapping[str, str] = {
    r"no output that depends on an input": "it computes nothing from an input",
    r"no dense tensors of a known type": "an input is a sequence, whose length no file states",
    r"sequence whose length follows": "a sequence's length depends on the values of an input",
    r"of unknown shape or type": "a result's shape depends on the values of an input",
    r"with unknown dimensions": "an input leaves a dimension open",
    r"is no ONNX model|no graph with operators": "it is not a model",
}
INTRODUCTION = """\
# What of ONNX's own test suite is imported

Written by `python -m benchmarks.onnx_coverage` with onnx {version}; a test keeps it true.

Every model of `onnx.backend.test` is imported and partitioned, or refused with one line that names
the cause. Where a test states results, their shapes are compared with those that parapipe found:
{compared} of them, all equal. There are no tracebacks.

What leaves a dimension of an input open is imported once `--shape INPUT=1x5` gives it; what is
refused because the shape of a result depends on values, once `--shape RESULT=1x5` does.

"""


@dataclass(frozen=True, slots=True)
class Case:
    """A file to import, and the shapes of its results where the test states them."""

    family: str
    name: str
    content: bytes
    results: Shapes


@dataclass(frozen=True, slots=True)
class Survey:
    """How many cases of each family had each ending, and what must not be."""

    endings: Mapping[tuple[str, str], int]
    compared: int
    mistakes: tuple[str, ...]

    def page(self) -> str:
        """Return the page of the documentation."""
        families = list(dict.fromkeys(family for family, _ in self.endings))
        refused = [cause for cause in CAUSES.values() if any(self._row(families, cause))]
        rows = [["", *families, "all"], ["---", *["---:"] * (len(families) + 1)]]
        for title, ending in ((IMPORTED, IMPORTED), *((f"refused: {c}", c) for c in refused)):
            counts = self._row(families, ending)
            rows.append([title, *(str(count or "") for count in counts), str(sum(counts))])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        introduction = INTRODUCTION.format(version=onnx.__version__, compared=self.compared)
        return f"{introduction}{table}\n"

    def _row(self, families: Sequence[str], ending: str) -> list[int]:
        return [self.endings.get((family, ending), 0) for family in families]


def cases() -> Iterator[Case]:
    """Yield all models that the package makes, then all files that it ships."""
    from onnx.backend.test.case.model import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = [*load_model_tests(kind="node"), *collect_testcases()]
    for case in made:
        if case.model is not None and case.data_sets is not None:
            _, results = case.data_sets[0]
            yield Case(
                f"{case.kind} cases",
                case.name,
                case.model.SerializeToString(),
                _shapes(case.model.graph.output, results),
            )
    for path in sorted(
        path for path in DATA.rglob("*") if path.suffix in (".onnx", ".pb", ".json")
    ):
        family = (
            f"{path.relative_to(DATA).parts[0]} files" if path.suffix == ".onnx" else "other files"
        )
        yield Case(family, str(path), path.read_bytes(), {})


def _shapes(values: Sequence[onnx.ValueInfoProto], arrays: Sequence[object]) -> Shapes:
    return {
        value.name: array.shape
        for value, array in zip(values, arrays, strict=False)
        if isinstance(array, np.ndarray | np.generic)
    }


def survey() -> Survey:
    """Import all cases and count how they end."""
    endings: Counter[tuple[str, str]] = Counter()
    mistakes: list[str] = []
    compared = 0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for case in cases():
            path.write_bytes(case.content)
            ending, graph = _ending(path)
            endings[case.family, ending] += 1
            if graph is None and ending not in CAUSES.values():
                mistakes.append(f"{case.name}: {ending}")
            for name, shape in case.results.items():
                if graph is not None and name in graph.outputs:
                    compared += 1
                    if graph.tensors[name].shape != shape:
                        mistakes.append(f"{case.name}: {name} is {graph.tensors[name].shape}")
    return Survey(endings, compared, tuple(mistakes))


def _ending(path: Path) -> tuple[str, OperatorGraph | None]:
    try:
        graph = import_model(path)
        broken = [*breaches(graph, partition(graph))]
    except ModelError as error:
        message = str(error)
    except Exception as error:  # noqa: BLE001 - this is what the survey looks for
        return repr(error), None
    else:
        return ("; ".join(broken), None) if broken else (IMPORTED, graph)
    return next(
        (cause for form, cause in CAUSES.items() if re.search(form, message)), message
    ), None


def main() -> None:
    """Write the page, and say what must not be."""
    found = survey()
    PAGE.write_text(found.page(), encoding="utf-8")
    print("\n".join([found.page(), *found.mistakes]))


if __name__ == "__main__":
    main()
