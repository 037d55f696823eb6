"""docs/packaged-models.md tells of every model that its script names, and in its form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.packaged_models import COLUMNS, MODELS

PAGE = (Path(__file__).parents[2] / "docs" / "packaged-models.md").read_text(encoding="utf-8")
ROWS = [
    dict(zip(COLUMNS, line.strip("| ").split(" | "), strict=True))
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(f"| {COLUMNS[0]} |")
]


def test_the_rows_are_models_of_the_script_in_its_order() -> None:
    named = [(row["package"], row["file"]) for row in ROWS]
    known = [(f"{each.package} {each.version}", f"`{Path(each.path).name}`") for each in MODELS]
    assert named == [each for each in known if each in named]


def test_there_are_models_of_the_kinds_that_people_use() -> None:
    assert len(ROWS) >= 8
    told = " ".join(row["what it does"] for row in ROWS)
    for kind in ("text recognition", "text direction", "file type", "voice activity", "pitch"):
        assert kind in told


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_every_row_has_figures_and_equal_results(row) -> None:
    for column in ("operators", "configurations", "ms", "frames/s", "mJ"):
        assert float(row[column]) > 0
    assert row["results"] == "equal" or re.fullmatch(r"\de-\d\d", row["results"])
    assert row["licence"]
