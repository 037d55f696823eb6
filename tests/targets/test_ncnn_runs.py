"""Segments converted by pnnx and run by ncnn, as `make test-ncnn` installs them."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

import parapipe
from parapipe.errors import ExportError, OutputError
from parapipe.targets.ncnn.folder import export
from tests.cases.session_runs import run_whole
from tests.cases.small_models import parsed
from tests.cases.split_models import MODELS, placed_plan, written

pytestmark = pytest.mark.skipif(
    "PARAPIPE_NCNN" not in os.environ,
    reason="`make test-ncnn` installs pnnx, ncnn and a software Vulkan, and runs these",
)
ALONE = """
import runpy, sys
for name in ("parapipe", "onnx", "onnxruntime", "pydantic", "click", "yaml", "networkx", "pandas"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ONE = min(os.sched_getaffinity(0))
TOLERANCE = 1e-4


def three_stages(v, count):
    return (3 * v // count,) * 2


def side_by_side(v, count):
    return 0, v % 3


def exported(folder, name="folded", place=three_stages):
    path = written(MODELS[name](), folder)
    plan = placed_plan(path, place)
    return parapipe.export_plan(plan, "ncnn", folder / "board", model=path), path


def run(folder, *arguments, **variables):
    document = json.loads((folder / "plan.json").read_text())
    words = [sys.executable, "-c", ALONE, str(folder / "run.py"), "--saturate"]
    for each in document["processors"]:
        if each["kind"] == "cpu":
            words += ["--cores", f"{each['name']}={ONE}"]
    return subprocess.run(
        [*words, *map(str, arguments)],
        check=False, capture_output=True, text=True, timeout=120, env={**os.environ, **variables},
    )  # fmt: skip


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ncnn")
    made, path = exported(folder)
    return made, path, folder / "board"


def test_the_folder_holds_two_files_a_segment_and_what_runs_them(board):
    made, _, folder = board
    names = {each.relative_to(folder).parts[0] for each in made.files}
    segments = {f"{name}.{end}" for name in ("00-big", "01-little", "02-gpu")
                for end in ("param", "bin")}  # fmt: skip
    assert names == segments | {
        "plan.json", "README.md", "requirements.txt", "run.py", "parapipe_runtime", "sample.npz",
        "expected.npz",
    }  # fmt: skip
    assert made.summary[0] == "segments    3: 1 on big, 1 on little, 1 on gpu"
    assert made.summary[2].startswith("accuracy    off ONNX Runtime by ")
    needed = [each.partition(">")[0] for each in (folder / "requirements.txt").read_text().split()]
    assert needed == ["numpy", "ncnn"]


def test_the_plan_says_ncnn_with_vulkan_for_the_gpu(board):
    document = json.loads((board[2] / "plan.json").read_text())
    of = {each["name"]: each for each in document["processors"]}
    assert {each["provider"] for each in of.values()} == {"ncnn"}
    assert {name: each["options"] for name, each in of.items()} == {
        "big": {}, "little": {}, "gpu": {"vulkan": "0"},
    }  # fmt: skip
    assert of["big"]["threads_option"] == "num_threads"
    assert document["whole"] is None


def test_it_runs_without_onnx_runtime_and_gives_what_the_model_gives(board, tmp_path):
    _, path, folder = board
    x = np.random.default_rng(1).random((5, 1, 3, 8, 8), np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    done = run(folder, "--input", tmp_path / "in.npz", "--keep", tmp_path / "out.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as results:
        for frame in range(5):
            expected = run_whole(path, {"x": x[frame]}, results.files)
            for name, wanted in expected.items():
                assert results[name][frame].shape == wanted.shape
                most = np.abs(wanted).max()
                assert np.abs(results[name][frame] - wanted).max() <= TOLERANCE * most


def test_the_gpu_is_run_by_vulkan_and_the_results_are_those_that_are_saved(board, tmp_path):
    done = run(board[2], "--check", "--frames", 6, "--json", "--trace", tmp_path / "trace.json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    of = {each["processor"]: each for each in figures["providers"]}
    assert (of["gpu"]["options"], of["gpu"]["substitute"]) == ({"vulkan": "0"}, None)
    assert of["big"]["options"] == {"num_threads": "1"}
    assert set(figures["differences"]) == {"out", "early"}
    assert max(figures["differences"].values()) <= TOLERANCE
    assert {each["name"] for each in figures["segments"]} == {"00-big", "01-little", "02-gpu"}
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"00-big", "01-little", "02-gpu"} <= {each["name"] for each in events}
    (tmp_path / "run.json").write_text(done.stdout)
    compared = parapipe.compare(tmp_path / "run.json")
    assert {each.order for each in compared.pairs} == {"big │ little │ gpu"}


def test_without_vulkan_the_cpu_stands_in_and_it_is_told(board):
    done = run(board[2], "--check", VK_ICD_FILENAMES="none", VK_DRIVER_FILES="none")
    assert done.returncode == 0, done.stderr
    told = "note: 'gpu' is run by ncnn on the CPU, since ncnn finds no Vulkan device here"
    assert told in done.stderr


def test_results_that_are_not_those_that_are_saved_end_in_an_error(board, tmp_path):
    subprocess.run(["cp", "-r", str(board[2]), str(tmp_path)], check=True)
    folder = tmp_path / "board"
    with np.load(folder / "expected.npz") as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(folder / "expected.npz", **{**arrays, "out": arrays["out"] + 0.1})
    done = run(folder, "--check")
    assert done.returncode == 1
    assert "of the largest number at most, in 'out', where 0.001 is allowed" in done.stderr


def test_a_param_of_another_make_is_told_in_one_line(board, tmp_path):
    subprocess.run(["cp", "-r", str(board[2]), str(tmp_path)], check=True)
    param = tmp_path / "board" / "01-little.param"
    param.write_text(param.read_text().replace("Pooling ", "Pulling "))
    done = run(tmp_path / "board", "--frames", 1)
    assert done.returncode == 1
    assert "segment '01-little' cannot be opened: ncnn does not take 01-little.param" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["settled", "shared"])
def test_processors_side_by_side_give_what_the_model_gives(tmp_path, name):
    exported(tmp_path, name, side_by_side)
    done = run(tmp_path / "board", "--check", "--frames", 5, "--json")
    assert done.returncode == 0, done.stderr
    assert max(json.loads(done.stdout)["differences"].values()) <= TOLERANCE


def test_a_plan_in_float16_computes_in_it_where_the_processor_does(tmp_path):
    path = written(MODELS["folded"](), tmp_path)
    plan = placed_plan(path, three_stages)
    half = tuple(p.model_copy(update={"data_type": "float16"}) for p in plan.processors)
    plan = plan.model_copy(update={"precision": "float16", "processors": half})
    made = export(plan, path, tmp_path / "board")
    document = json.loads((tmp_path / "board" / "plan.json").read_text())
    assert {each["options"]["float16"] for each in document["processors"]} == {"1"}
    assert any("may compute in float16 there" in note for note in made.notes)
    done = run(tmp_path / "board", "--check", "--json")
    assert done.returncode == 0, done.stderr
    differences = json.loads(done.stdout)["differences"]
    assert max(differences.values()) <= 5e-2


def test_all_operators_that_have_no_form_are_named_and_nothing_is_written(tmp_path):
    with pytest.raises(ExportError) as raised:
        exported(tmp_path, "many_inputs")
    told = str(raised.value)
    assert "operators have no form in ncnn: 'best' (ArgMax): it makes 'best' in int64" in told
    assert "'mask' (Greater): it makes 'mask' in bool" in told
    assert {"best", "mask", "c", "row"} <= set(raised.value.operators)
    assert "export to onnxruntime or native" in told
    assert not (tmp_path / "board").exists()


def test_a_node_without_a_layer_is_named_among_others_that_are_taken(tmp_path):
    model = parsed(
        """
        net (float[1, 4, 6] x) => (float[1, 4, 6] y) {
          a = Relu (x)
          b = CumSum (a, axis)
          y = Sigmoid (b)
        }
        """,
        axis=np.array(2, np.int64),
    )
    onnx.save(model, tmp_path / "cumsum.onnx")
    plan = placed_plan(tmp_path / "cumsum.onnx", lambda v, count: (0, 0))
    with pytest.raises(ExportError, match=r"an operator has no form in ncnn: 'b' \(CumSum\)") as no:
        parapipe.export_plan(plan, "ncnn", tmp_path / "board", model=tmp_path / "cumsum.onnx")
    assert no.value.operators == ("b",)


def test_an_earlier_export_is_replaced_and_other_files_are_not(tmp_path):
    exported(tmp_path)
    exported(tmp_path)
    (tmp_path / "board" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="which no export has written"):
        exported(tmp_path)
