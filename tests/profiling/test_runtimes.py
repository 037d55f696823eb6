"""Which targets run which processors, told before a model is mapped and for each row of a front."""

import pytest

import parapipe
from parapipe.profiling.runtimes import exports_of, runtime_note

MODEL = "zoo:squeezenet"


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "rk3588.yaml"
    path.write_text(parapipe.new_platform(chip="rk3588").text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def processors(board):
    return parapipe.load_platform(board).processors


def test_what_has_no_runtime_beside_an_npu_is_told_with_what_to_do(processors):
    assert runtime_note(processors) == (
        "gpu of this board has no runtime here beside npu0, npu1 and npu2: leave it out by "
        "`--exclude gpu`, or take rows with it as nominal"
    )
    assert runtime_note([each for each in processors if each.name != "gpu"]) == ""


def test_nothing_is_told_of_platforms_without_a_compiler():
    assert runtime_note(parapipe.load_platform("amlogic-a311d").processors) == ""


@pytest.mark.parametrize(
    ("used", "precision", "targets"),
    [
        ({"big"}, "float16", ("onnxruntime",)),
        ({"little", "big"}, "model", ("onnxruntime",)),
        ({"npu0"}, "float16", ("rknn",)),
        ({"big", "npu0", "npu1"}, "float16", ("rknn",)),
        ({"gpu"}, "model", ("armcl",)),
        ({"gpu"}, "float16", ()),
        ({"gpu", "npu0"}, "float16", ()),
    ],
)
def test_a_target_runs_what_all_its_processors_have_a_back_end_for(
    processors, used, precision, targets
):
    assert exports_of(processors, used, precision) == targets


def test_of_a_platform_without_a_compiler_rows_say_nothing():
    processors = parapipe.load_platform("amlogic-a311d").processors
    assert exports_of(processors, {"big"}, "model") is None


def test_a_front_says_it_of_each_row_and_map_before_the_search(board):
    notes = []
    front = parapipe.map(
        MODEL, board, precision="float16", cache=False, draws=0, time_limit_s=1, note=notes.append
    )
    assert notes[0].startswith("gpu of this board has no runtime here")
    rows = front.document.to_json()["configurations"]
    with_gpu = {row["id"] for row in rows if "gpu" in row["drawing"]}
    assert with_gpu
    assert {row["id"] for row in rows if not row["exports"]} == with_gpu
