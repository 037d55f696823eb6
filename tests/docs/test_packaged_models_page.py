"""docs/packaged-models.md tells of every model that its script names, and in its form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import packaged_exports, packaged_runs, pytorch_models
from docs.packaged_list import MODELS
from docs.packaged_models import CLOSE, COLUMNS
from docs.packaged_runs import WELL

PAGE = (Path(__file__).parents[2] / "docs" / "packaged-models.md").read_text(encoding="utf-8")


def cells(columns):
    """Return the cells of the page's lines that have as many as a table's columns, but its head."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return [line for line in lines if len(line) == len(columns) and line != list(columns)]


ROWS = [dict(zip(COLUMNS, line, strict=True)) for line in cells(COLUMNS)]
RUNS = cells(packaged_runs.COLUMNS)
EXPORTS = [
    dict(zip(packaged_exports.COLUMNS, line, strict=True))
    for line in cells(packaged_exports.COLUMNS)
]


def test_the_rows_are_models_of_the_script_in_its_order() -> None:
    named = [(row["package"], row["file"]) for row in ROWS]
    known = [(f"{each.package} {each.version}", f"`{Path(each.path).name}`") for each in MODELS]
    assert named == [each for each in known if each in named]


def test_there_are_models_of_the_kinds_that_people_use() -> None:
    assert len(ROWS) >= 10
    told = {row["what it does"] for row in ROWS}
    assert told == {each.what for each in MODELS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_every_row_has_figures_and_equal_results(row) -> None:
    for column in ("operators", "configurations", "ms", "frames/s", "mJ"):
        assert float(row[column]) > 0
    assert row["licence"]
    if row["results"] != "equal":
        off, alone = re.fullmatch(
            r"(\de-\d\d)(?: \(session alone: (\de-\d\d)\))?", row["results"]
        ).groups()
        assert float(off) <= (2 * float(alone) if alone else CLOSE)


@pytest.mark.parametrize("line", RUNS, ids=lambda line: " ".join(line[:2]))
def test_every_run_has_the_errors_of_its_figures_and_a_reason_where_they_are_large(line) -> None:
    _, _, *figures, why = line
    errors = []
    for predicted, measured, error in (figures[:3], figures[3:]):
        errors.append(float(error.rstrip("%")) / 100)
        low, high = float(measured) + 0.005, float(measured) - 0.005
        assert (float(predicted) - 0.005) / low - 1 <= errors[-1] + 5e-4
        assert (float(predicted) + 0.005) / high - 1 >= errors[-1] - 5e-4
    assert (why != "–") == any(abs(error) > WELL for error in errors)


def test_forty_models_of_three_packages_are_exported_by_pytorch() -> None:
    named = [(row["package"], row["model"].strip("`")) for row in EXPORTS]
    assert named == [(each.package, each.name) for each in pytorch_models.MODELS]
    assert len(named) == len(set(named)) == 40
    assert {package for package, _ in named} == {"torchvision", "timm", "transformers"}


@pytest.mark.parametrize("row", EXPORTS, ids=lambda row: row["model"])
def test_work_is_what_pytorch_counts_or_the_page_says_why_and_results_are_equal(row) -> None:
    for column in ("M weights", "operators", "M MACs", "configurations", "ms, least", "fps, most"):
        assert float(row[column]) > 0
    named = row["model"].strip("`")
    if row["of PyTorch"] != "equal":
        assert -0.01 < float(row["of PyTorch"].rstrip("%")) / 100 < 0
        assert f"{row['model']}, {packaged_exports.WHY[named]}" in " ".join(PAGE.split())
    else:
        assert named not in packaged_exports.WHY
    assert row["same results"] == "equal" or float(row["same results"]) <= CLOSE
