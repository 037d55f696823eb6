"""docs/co-run-fronts.md says what plans have that were made without the law of co-runs."""

from __future__ import annotations

import re

import pytest

from benchmarks import co_run_fronts
from parapipe.platform.load import read_platform

LINES = co_run_fronts.PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_is_its_text_with_every_place_filled() -> None:
    text = co_run_fronts.TEXT.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ .*$", text, flags=re.MULTILINE)
    assert [line for line in LINES if line.startswith("#")] == headings
    assert not [line for line in LINES if "{" in line]


def test_no_plan_has_more_than_it_promises_nor_the_aware_front_less() -> None:
    rows = [line.split(" | ") for line in LINES if line.startswith("| ") and line.count("|") > 8]
    figures = [[*row[2:5], row[6]] for row in rows if re.fullmatch(r"[0-9.]+", row[2])]
    assert len(figures) == 3 * len(co_run_fronts.NETWORKS)
    for promised, really, best, aware in (map(float, row) for row in figures):
        assert really <= promised
        assert really <= best
        assert best <= aware * 1.001  # figures have four digits


@pytest.mark.parametrize("law", ["shared", "phone"])
def test_platforms_differ_in_the_law_alone(law: co_run_fronts.Law) -> None:
    blind, aware = (
        read_platform(text, "chip.yaml")
        for text in co_run_fronts.platform_texts("amlogic-a311d", law)
    )
    assert blind.co_run is None
    assert aware.co_run is not None
    assert blind.memory == aware.memory


@pytest.mark.nightly
def test_a_row_of_the_page_is_what_mapping_gives() -> None:
    assert f"| {' | '.join(co_run_fronts.row('alexnet', 'amlogic-a311d'))} |" in LINES
