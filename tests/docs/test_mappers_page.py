"""docs/mappers.md tells of every mapper, and its table is what the benchmark measures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.granularity import line, rows, table
from parapipe.solvers.registry import MAPPERS

PAGE = (Path(__file__).parents[2] / "docs" / "mappers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MAPPERS.names())
def test_every_mapper_has_a_section(name) -> None:
    section = re.search(rf"^## `{name}`\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert section
    assert len(section[1].split()) > 10


def test_no_section_tells_of_a_mapper_that_is_not_there() -> None:
    assert set(re.findall(r"^## `(\w+)`$", PAGE, flags=re.MULTILINE)) == set(MAPPERS.names())


def test_the_table_of_hand_overs_is_that_of_the_benchmark() -> None:
    assert table([]) in PAGE
    (found,) = rows("zoo:googlenet", [("big", "little")])
    assert line(found) in PAGE.splitlines()
