"""What Rockchip's compiler prints: `logs` holds what it printed for the models of the tests.

Lines about its passes are left out; of SqueezeNet, all but rewrites, the table and memory.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import parapipe
from parapipe.compilers.nodes import assign_nodes
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


def test_what_it_replaces_is_followed_back_to_the_models_nodes() -> None:
    origins = log("squeezenet").origins
    joined = ("fire2/concat", "fire3/squeeze1x1")
    assert origins["fire2/relu_expand3x3_conv"] == joined
    assert origins["fire2/relu_expand1x1_conv_add"] == joined
    assert origins["pool10_2gavg_2conv1"] == ("pool10",)
    assert log("gelu").origins["matmul#2"] == ("matmul",)
    assert log("gelu").origins["gelu/4_2gelu"] == tuple(f"gelu/{number}" for number in range(5))


def test_what_it_only_moves_keeps_its_origin() -> None:
    swapped = "D swap: remove node = ['a_rs', 'b'], add node = ['b', 'a_rs']"
    assert read_log(swapped).origins == {}
    made = "D add: remove node = [], add node = ['a_rs']"
    assert read_log(f"{made}\n{swapped}").origins == {"a_rs": ()}


def test_what_stands_beside_a_successor_stands_for_nothing() -> None:
    lines = (
        "D convert: remove node = ['norm'], add node = ['x_tp', 'norm#1', 'norm#1_rs']",
        "D convert: remove node = ['other'], add node = ['a_tp', 'other#1', 'other_mm_tp']",
        "D reduce: remove node = ['x_tp', 'other_mm_tp'], add node = ['words_tp']",
        "D tile: remove node = ['norm#1'], add node = ['norm#2_tile0', 'x_split']",
    )
    origins = read_log("\n".join(lines)).origins
    assert origins["norm#1"] == origins["norm#2_tile0"] == ("norm",)
    assert origins["other#1"] == ("other",)
    assert all(
        origins[each] == () for each in ("x_tp", "a_tp", "other_mm_tp", "words_tp", "x_split")
    )


def test_the_rows_of_a_network_stand_for_what_they_replace(tmp_path) -> None:
    """A tensor's name is that of the Relu that makes it, so names alone would mislead here."""
    parapipe.build_zoo("squeezenet", tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    text = log("squeezenet")
    rows = assign_nodes([row.name for row in text.rows], model, text.origins)
    members = {row.name: each for row, each in zip(text.rows, rows, strict=True)}
    assert members["fire2/expand3x3"].nodes == ("fire2/expand3x3", "fire2/relu_expand3x3")
    assert members["fire2/relu_expand3x3_conv"].nodes == (
        "fire2/concat", "fire3/squeeze1x1", "fire3/relu_squeeze1x1",
    )  # fmt: skip
    second = members["fire2/relu_expand1x1_conv_ConvAddRelu"]
    assert (second.nodes, second.part_of) == ((), "fire3/squeeze1x1")
    all_members = [node for each in rows for node in each.nodes]
    assert sorted(all_members) == sorted(node.name for node in model.graph.node)
