"""What Rockchip's compiler prints: `logs` holds what it printed for the models of the tests.

Lines about its passes are left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from parapipe.compilers.rknn.table import TableRow, read_log

LOGS = Path(__file__).with_name("logs")


def log(name: str):
    return read_log((LOGS / f"{name}.txt").read_text(encoding="utf-8"))


def test_rows_have_operator_target_type_name_cycles_and_traffic() -> None:
    assert log("left_to_the_cpu").rows == (
        TableRow("Conv", "FLOAT16", "NPU", "conv", 2304, 5 * 1024),
        TableRow("LRN", "FLOAT16", "CPU", "lrn", 0, 4 * 1024),
        TableRow("Erf", "FLOAT16", "CPU", "erf", 0, 4 * 1024),
    )


def test_inputs_and_outputs_are_no_rows_even_between_others() -> None:
    names = [row.name for row in log("two_inputs").rows]
    assert names == ["sub", "conv", "pool_2conv0", "pool_2conv1", "flatten_2rs"]


def test_memory_is_in_bytes() -> None:
    assert (log("left_to_the_cpu").internal_bytes, log("left_to_the_cpu").weight_bytes) == (
        12 * 1024, round(3.125 * 1024),
    )  # fmt: skip
    assert log("two_inputs").weight_bytes == round(5.4375 * 1024)


def test_a_fused_activation_is_in_the_operators_name() -> None:
    assert [row.operator for row in log("gelu").rows] == [
        "Reshape", "Transpose", "ConvExGelu", "Transpose", "Reshape",
    ]  # fmt: skip


def test_what_it_refuses_stands_in_its_errors_and_there_are_no_rows() -> None:
    refused = log("refused")
    assert refused.rows == ()
    assert (refused.internal_bytes, refused.weight_bytes) == (None, None)
    assert any("NonZero('nz') need to be constant!" in line for line in refused.errors)


def test_colours_and_returns_of_progress_bars_are_left_out() -> None:
    lines = (LOGS / "left_to_the_cpu.txt").read_text(encoding="utf-8").splitlines()
    bar = "I loading :  0%\r\x1b[36mI loading : 100%\r"
    coloured = bar + "\n".join(f"\x1b[36m{each}\x1b[0m" for each in lines)
    assert read_log(coloured).rows == log("left_to_the_cpu").rows


def test_of_two_tables_the_last_one_counts() -> None:
    texts = [(LOGS / f"{name}.txt").read_text("utf-8") for name in ("gelu", "left_to_the_cpu")]
    assert read_log("\n".join(texts)).rows == log("left_to_the_cpu").rows


@pytest.mark.parametrize("text", ["", "\n", "\ufffd" * 100, "ID   OpType  Cycles(DDR/NPU/Total) "])
def test_a_log_without_a_table_has_no_rows(text) -> None:
    assert read_log(text).rows == ()
