"""What Vela writes, read from files of ethos-u-vela 5.2.0: columns of its table, and warnings."""

from __future__ import annotations

from pathlib import Path

from parapipe.compilers.vela.table import compiled_rows, read_reasons, read_rows
from tests.cases.compiler_models import sine

TRACE = Path(__file__).with_name("traces") / "sine"


def rows():
    return compiled_rows(read_rows(TRACE / "quantized_per-layer.csv"), sine())


def test_each_node_stands_in_the_row_of_its_own_operator() -> None:
    places = {node: (row.operator, row.target) for row in rows() for node in row.nodes}
    assert places == {"conv": ("Conv2D", "NPU"), "sin": ("Sin", "CPU"), "relu": ("Relu", "NPU")}


def test_a_change_of_layout_is_part_of_the_node_that_it_is_for_and_has_cycles() -> None:
    added = [row for row in rows() if row.operator == "Transpose" and row.part_of]
    assert [(row.nodes, row.part_of) for row in added] == [((), "conv")]
    assert all(row.cycles for row in rows() if row.operator == "Transpose")


def test_what_stays_on_the_cpu_has_no_price_and_a_reason() -> None:
    assert {row.cycles for row in rows() if not row.on_npu} == {None}
    reasons = read_reasons((TRACE / "log.txt").read_text("utf-8"))
    assert reasons["sin", 1] == "Unsupported opType"
    assert reasons["quantize", 1].startswith("Operation has tensor with unsupported DataType")
