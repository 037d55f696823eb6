"""`parapipe inspect`, and what it says about a model that it cannot read."""

import json
from pathlib import Path

import onnx
import pytest

from parapipe.documents.inspection import InspectionDocument
from tests.cases.quantised_models import small_qdq


def light_inception() -> Path:
    """Return the GoogLeNet that the onnx wheel ships for its own tests."""
    return Path(onnx.__file__).parent / "backend/test/data/light/light_inception_v1.onnx"


def test_the_inception_of_the_onnx_wheel_has_141_operators_in_11_subgraphs(parapipe) -> None:
    ended = parapipe("inspect", light_inception(), "--json")
    document = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert (document["operators"], document["subgraphs"]) == (141, 11)
    assert document["max_parallelism"] == 4


def test_zoo_googlenet_has_141_operators_in_11_subgraphs_with_parallelism_4(parapipe) -> None:
    ended = parapipe("inspect", "zoo:googlenet", "--json")
    document = json.loads(ended.out)
    assert (document["operators"], document["subgraphs"]) == (141, 11)
    assert document["max_parallelism"] == 4


def test_the_text_says_the_same_and_fits_in_100_columns(parapipe) -> None:
    ended = parapipe("inspect", light_inception())
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert "operators        141; 84 once fused" in lines
    assert "subgraphs        11" in lines
    assert "max parallelism  4" in lines
    assert all(len(line) <= 100 for line in lines if str(light_inception()) not in line)


def test_a_missing_file_is_named(parapipe, tmp_path) -> None:
    assert str(tmp_path / "no.onnx") in parapipe("inspect", tmp_path / "no.onnx").complaint


@pytest.mark.parametrize("content", [b"", b"this is no model\n", b"\x08\x08\x12\xff\xff\xff\x7f"])
def test_a_file_that_is_no_model_is_named(parapipe, tmp_path, content) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    assert str(path) in parapipe("inspect", path).complaint


def test_a_truncated_model_is_named(parapipe, tmp_path) -> None:
    content = light_inception().read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(content[: len(content) // 2])
    assert str(path) in parapipe("inspect", path).complaint


def test_a_folder_is_no_model(parapipe, tmp_path) -> None:
    assert str(tmp_path) in parapipe("inspect", tmp_path).complaint


def test_an_unknown_zoo_name_is_answered_with_the_nearest(parapipe) -> None:
    assert "googlenet" in parapipe("inspect", "zoo:googlenat").complaint


def test_unknown_dimensions_are_named_with_the_options_that_give_them(
    parapipe, small_model
) -> None:
    complaint = parapipe("inspect", small_model(shape=("batch", 8, "height", 16))).complaint
    for word in ("data", "height", "--dim", "--shape"):
        assert word in complaint


@pytest.mark.parametrize(
    "options",
    [["--dim", "batch=1", "--dim", "height=4"], ["--shape", "data=1x8x4x16"]],
)
def test_dimensions_given_on_the_command_line_are_taken(parapipe, small_model, options) -> None:
    model = small_model(shape=("batch", 8, "height", 16))
    ended = parapipe("inspect", model, "--json", *options)
    assert json.loads(ended.out)["inputs"] == {"data": [1, 8, 4, 16]}


def test_a_custom_operator_is_imported_once_its_result_has_a_shape_and_a_type(
    parapipe, tmp_path
) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
    g (float[1,3,8,8] x) => (float[1,4] z) { y = com.example.Turn(x) z = Relu(y) }"""
    path = tmp_path / "custom.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert "--shape y=float32:1x3x224x224" in parapipe("inspect", path).complaint
    ended = parapipe("inspect", path, "--shape", "y=float32:1x4", "--json")
    assert json.loads(ended.out)["unmodelled"] == {"Turn": 1}


def test_a_dimension_that_the_model_does_not_have_is_a_complaint(parapipe, small_model) -> None:
    model = small_model(shape=("batch", 8, 16, 16))
    complaint = parapipe("inspect", model, "--dim", "batsh=1", "--dim", "batch=1").complaint
    assert "batsh" in complaint
    assert "batch" in complaint


def test_json_keeps_to_the_published_schema_with_a_platform_and_without(parapipe) -> None:
    for more in ([], ["--platform", "amlogic-a311d"]):
        document = parapipe("inspect", light_inception(), "--json", *more).out
        found = InspectionDocument.model_validate_json(document)
        assert found.schema_version == "parapipe/inspection/2"
        assert (found.coverage is None) == (not more)


def test_the_rows_add_up_to_the_whole(parapipe) -> None:
    document = json.loads(parapipe("inspect", "zoo:googlenet", "--json").out)
    rows = document["subgraph_table"]
    assert sum(row["operators"] for row in rows) == document["operators"]
    assert sum(row["macs"] for row in rows) == document["macs"]
    assert sum(document["operator_types"].values()) == document["operators"]
    assert rows[0]["boundary_tensors"] == ["pool2/3x3_s2"]
    assert rows[0]["boundary_bytes"] == 192 * 28 * 28 * 4
    assert rows[-1]["boundary_tensors"] == []
    # The largest normalisation reads and makes 192 x 56 x 56 numbers.
    assert document["peak_activation_bytes"] == 2 * 192 * 56 * 56 * 4
    assert document["peak_operator"] == "conv2/norm2"
    # No order can do without both.
    assert document["least_peak_activation_bytes"] == document["peak_activation_bytes"]
    assert document["least_peak_bound_bytes"] == document["peak_activation_bytes"]


def test_the_least_peak_is_proven_or_has_a_bound(parapipe) -> None:
    assert (
        "4.82 MB in the order of least memory, proven" in parapipe("inspect", "zoo:googlenet").out
    )
    text = " ".join(parapipe("inspect", "zoo:bevformer").out.split())
    assert "in the order of least memory that was found; no order needs less than 408.80 MB" in text


def test_the_flows_of_a_chain_of_subgraphs_are_its_boundaries(parapipe) -> None:
    document = json.loads(parapipe("inspect", "zoo:googlenet", "--json").out)
    assert [
        (flow["source"], flow["target"], flow["size_bytes"]) for flow in document["subgraph_flows"]
    ] == [
        (row["number"], row["number"] + 1, row["boundary_bytes"])
        for row in document["subgraph_table"][:-1]
    ]


def test_a_platform_adds_who_runs_what_and_where_times_come_from(parapipe) -> None:
    ended = parapipe("inspect", "zoo:googlenet", "--platform", "bst-a1000")
    assert (ended.code, ended.err) == (0, "")
    assert "npu runs 82 of 84 fused operators; not 1 AveragePool, 1 Softmax" in ended.out
    assert "dsp0 runs 84 of 84 fused operators\n" in ended.out
    told = " ".join(ended.out.split())
    assert "measured 0 % (0 %), stated 96 % (99 %), fitted 3 % (1 %), nominal 1 % (<1 %)" in told
    assert all(len(line) <= 100 for line in ended.out.splitlines())


def test_identical_processors_that_run_the_same_are_named_together(parapipe, tmp_path) -> None:
    board = tmp_path / "board.yaml"
    assert parapipe("platforms", "new", "--chip", "rk3588", "--out", board).code == 0
    ended = parapipe("inspect", "zoo:googlenet", "--platform", board)
    told = " ".join(ended.out.split())
    assert told.count("npu0, npu1 and npu2 run 0 of 84 fused operators; not 57 Conv") == 1
    assert "npu1 runs" not in told


def test_a_platform_that_is_not_there_is_a_complaint(parapipe) -> None:
    assert (
        "amlogic-a311d"
        in parapipe("inspect", "zoo:googlenet", "--platform", "amlogic-a311").complaint
    )


def test_pictures_are_written_and_say_the_same_each_time(parapipe, tmp_path) -> None:
    written = []
    for run in ("first", "second"):
        dot, svg = tmp_path / f"{run}.dot", tmp_path / f"{run}.svg"
        assert parapipe("inspect", "zoo:googlenet", "--dot", dot, "--svg", svg).code == 0
        written.append((dot.read_bytes(), svg.read_bytes()))
    assert written[0] == written[1]
    assert written[0][0].startswith(b'digraph "zoo:googlenet" {')
    assert b"<svg " in written[0][1]


@pytest.mark.parametrize(("option", "first"), [("--dot", "digraph "), ("--svg", "<?xml ")])
def test_a_picture_may_go_to_standard_output_alone(
    parapipe, tmp_path, monkeypatch, option, first
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parapipe("inspect", "zoo:alexnet", option, "picture").code == 0
    ended = parapipe("inspect", "zoo:alexnet", option, "-")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(first)
    assert ended.out == (tmp_path / "picture").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["picture"]


def test_a_zoo_name_without_zoo_is_answered_with_what_was_meant(parapipe, tmp_path) -> None:
    platform = ("--platform", "amlogic-a311d")
    for command in (
        ["inspect"], ["map", *platform, "--out", tmp_path], ["evaluate", *platform, "--order", "G"],
        ["profile", *platform, "--out", tmp_path / "p.csv"],
    ):  # fmt: skip
        for name in ("googlenet", "gpt:2"):
            assert (
                f"did you mean 'zoo:{name}'?" in parapipe(command[0], name, *command[1:]).complaint
            )


def test_a_picture_in_a_folder_that_is_not_there_is_a_complaint(parapipe, tmp_path) -> None:
    path = tmp_path / "no" / "picture.svg"
    assert str(path) in parapipe("inspect", "zoo:googlenet", "--svg", path).complaint


def test_what_is_computed_in_which_data_type_is_told_of_a_quantised_model(parapipe, tmp_path):
    path = tmp_path / "small.onnx"
    onnx.save(small_qdq(), path)
    document = json.loads(parapipe("inspect", path, "--json").out)
    assert document["data_types"] == {
        "uint8": {"operators": 5, "macs": 4 * 64 * 27 + 4 * 64 * 4 + 20},
        "float32": {"operators": 3, "macs": 0},
    }
    assert "data types       5 operators in uint8 (100.0% of the work), 3 operators in float32" in (
        parapipe("inspect", path).out
    )


def test_the_data_type_of_a_model_with_one_is_not_told(parapipe) -> None:
    assert "data types" not in parapipe("inspect", light_inception()).out
