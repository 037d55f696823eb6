"""The tables of docs/strategies.md are those of the code."""

from __future__ import annotations

import pytest

from docs.strategies import DISTURBED, MARK, PAGE, cell, fps, plan_of, simulated

pytestmark = pytest.mark.usefixtures("shared_cache")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").partition(MARK)[2].splitlines()
    if line.startswith("| googlenet")
]


def test_a_row_of_each_table_is_what_is_simulated() -> None:
    plan = plan_of("googlenet")
    assert [["googlenet", "0 %", cell(plan, "plan", 0.0), cell(plan, "steal", 0.0)]] == [
        row[:4] for row in ROWS if row[1] == "0 %"
    ]
    (gpu,) = (row for row in ROWS if row[1] == "gpu")
    found = simulated(plan, "steal", saturate=True, disturb={"gpu": DISTURBED})
    assert gpu[3].startswith(f"{fps(found):.2f} fps, ")
