"""A folder of compiled segments: written with a stand-in compiler, run with a stand-in library."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

import parapipe
from parapipe.errors import ArgumentError, ExportError, OutputError, ParapipeError
from tests.cases.rknn_plans import STANDS_IN, rknn_plan, toolkit
from tests.cases.session_runs import assert_equal, run_whole

ALONE = """
import runpy, sys
for name in ("parapipe", "onnx", "pydantic", "click", "yaml", "networkx", "pandas"):
    sys.modules[name] = None
sys.path[:0] = [sys.argv[1], sys.argv[2].rpartition("/")[0]]
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ONE = min(os.sched_getaffinity(0))


@pytest.fixture(scope="module", autouse=True)
def compiler(tmp_path_factory):
    """The stand-in compiler for all tests, with a cache of its own."""
    tool = tmp_path_factory.mktemp("tool")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARAPIPE_COMPILER_RKNN", str(toolkit(tool)))
        patch.setenv("PARAPIPE_CACHE", str(tool / "cache"))
        yield


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """What export returns, the model's file and the folder, for tests that only run it."""
    return exported(tmp_path_factory.mktemp("exported"))


def exported(tmp_path, **given):
    plan_given = {key: given.pop(key) for key in ("name", "target", "place") if key in given}
    plan, path = rknn_plan(tmp_path, **plan_given)
    folder = tmp_path / "board"
    return parapipe.export_plan(plan, "rknn", folder, model=path, **given), path, folder


def run(folder, *arguments, library=STANDS_IN, **variables):
    words = [sys.executable, "-I", "-c", ALONE, str(library), str(folder / "run.py")]
    words += ["--cores", f"big={ONE}", "--saturate", *map(str, arguments)]
    return subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **variables},
    )


def calls_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def frames_of(path, count=5):
    shapes = {
        each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in onnx.load(path).graph.input
    }
    random = np.random.default_rng(1)
    return {name: random.random((count, *shape), np.float32) for name, shape in shapes.items()}


def test_the_folder_holds_compiled_segments_for_npus_and_onnx_for_the_cpu(board):
    made, _, folder = board
    names = {each.relative_to(folder).parts[0] for each in made.files}
    assert names == {
        "00-big.onnx", "01-npu0.rknn", "02-npu1.rknn", "plan.json", "manifest.json", "README.md",
        "requirements.txt", "run.py", "parapipe_runtime",
    }  # fmt: skip
    shares = "1 ONNX for big, 1 compiled for npu0, 1 compiled for npu1"
    assert made.summary[0] == f"segments    3: {shares}"
    assert "rknn-toolkit-lite2>=2.5.0" in (folder / "requirements.txt").read_text().split()
    assert "ssh BOARD 'cd board && python3 run.py'" in (folder / "README.md").read_text()


def test_the_manifest_says_what_the_compiler_said(board):
    _, _, folder = board
    document = json.loads((folder / "manifest.json").read_text())
    of = {each["file"]: each.get("compiled") for each in document["segments"]}
    assert of["00-big.onnx"] is None
    assert of["01-npu0.rknn"] == {
        "compiler": "rknn", "version": "2.5.0", "target": "rk3588", "precision": "float16",
        "on_cpu": [], "weight_bytes": 2048,
    }  # fmt: skip


def test_it_runs_without_parapipe_and_gives_what_the_model_gives(board, tmp_path):
    _, path, folder = board
    frames = frames_of(path)
    np.savez(tmp_path / "in.npz", **frames)
    done = run(folder, "--input", tmp_path / "in.npz", "--keep", tmp_path / "out.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as results:
        for frame in range(5):
            found = {name: results[name][frame] for name in results.files}
            feeds = {name: array[frame] for name, array in frames.items()}
            assert_equal(found, run_whole(path, feeds, list(found)))


def test_each_npu_segment_is_loaded_once_onto_the_core_of_its_processor(board, tmp_path):
    _, _, folder = board
    calls = tmp_path / "calls"
    done = run(folder, "--frames", 4, "--warmup", 0, RKNNLITE_CALLS=str(calls))
    assert done.returncode == 0, done.stderr
    for file, mask in (("01-npu0.rknn", 1), ("02-npu1.rknn", 2)):
        mine = [each for each in calls_of(calls) if each["file"] == file]
        assert [each["call"] for each in mine] == [
            "load_rknn", "init_runtime", *["inference"] * 4, "release"
        ]  # fmt: skip
        assert {each["core_mask"] for each in mine if "core_mask" in each} == {mask}


def test_inputs_of_four_axes_are_given_in_the_order_of_the_model(board, tmp_path):
    _, _, folder = board
    calls = tmp_path / "calls"
    assert run(folder, "--frames", 1, "--warmup", 0, RKNNLITE_CALLS=str(calls)).returncode == 0
    plan = json.loads((folder / "plan.json").read_text())
    for segment in plan["segments"][1:]:
        (call,) = [
            each
            for each in calls_of(calls)
            if (each["call"], each["file"]) == ("inference", segment["file"])
        ]
        shapes = [plan["tensors"][name]["shape"] for name in segment["inputs"]]
        assert call["shapes"] == shapes
        assert call["data_format"] == ["nchw" if len(each) == 4 else "nhwc" for each in shapes]


def test_a_chip_with_one_core_gets_no_mask(tmp_path):
    _, _, folder = exported(tmp_path, target="rk3568", place=lambda v, n: (2 * v // n,) * 2)
    calls = tmp_path / "calls"
    assert run(folder, "--frames", 1, RKNNLITE_CALLS=str(calls)).returncode == 0
    assert {each["core_mask"] for each in calls_of(calls) if "core_mask" in each} == {None}


def test_figures_and_a_trace_are_as_those_of_other_folders(board, tmp_path):
    _, _, folder = board
    done = run(folder, "--frames", 10, "--json", "--trace", tmp_path / "trace.json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["frames"] == 10
    assert {each["name"] for each in figures["segments"]} == {"00-big", "01-npu0", "02-npu1"}
    of = {each["processor"]: each for each in figures["providers"]}
    assert of["npu1"]["provider"] == "rknnlite"
    assert of["npu1"]["options"] == {"core_mask": "NPU_CORE_1"}
    (tmp_path / "run.json").write_text(done.stdout)
    compared = parapipe.compare(tmp_path / "run.json")
    of_parts = {each.part for each in compared.pairs if each.metric == "work of a segment"}
    assert of_parts == {"00-big", "01-npu0", "02-npu1"}
    (period,) = [each for each in compared.pairs if each.metric == "period"]
    assert period.measured == figures["period_s"]["measured"]
    assert {each.order for each in compared.pairs} == {"big │ npu0 │ npu1"}
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"01-npu0", "02-npu1"} <= {each["name"] for each in events}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("load", "cannot be opened: rknnlite's load_rknn has returned -1; is the file whole?"),
        ("init", "rknnlite's init_runtime has returned -1; is this the chip"),
        ("library", "librknnrt.so: cannot open shared object file"),
        ("nothing", "rknnlite's inference has returned nothing"),
        ("count", "rknnlite's inference has returned 0 arrays, and the segment has"),
        ("shape", "is float32[7,7] and should be float32["),
    ],
)
def test_a_fault_of_the_library_is_one_line(board, fault, words):
    _, _, folder = board
    done = run(folder, "--frames", 3, RKNNLITE_FAULT=fault)
    assert done.returncode == 1
    (line,) = [each for each in done.stderr.splitlines() if not each.startswith("running")]
    assert line.startswith("run.py: segment '0")
    assert words in line


def test_a_board_without_the_library_is_told_what_to_install(board, tmp_path):
    _, _, folder = board
    done = run(folder, library=tmp_path)
    assert done.returncode == 1
    assert "install the package rknn-toolkit-lite2 on the board" in done.stderr
    assert "Traceback" not in done.stderr


def test_segments_of_an_npu_take_no_cores(board):
    _, _, folder = board
    done = run(folder, "--cores", "npu0=0")
    assert done.returncode == 1
    assert "cores are given for npu0, whose segments are compiled for an NPU" in done.stderr


def test_all_segments_that_do_not_compile_are_told_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path))
    monkeypatch.setenv("RKNN_REFUSES", "Mul Concat Gemm Softmax")
    with pytest.raises(ExportError) as raised:
        exported(tmp_path)
    first, second = str(raised.value).splitlines()
    assert first.startswith("segment 01-npu0 (")
    assert "is not supported; map again with `--pin 'f=big'` and so on" in first
    assert first.endswith("or with `--exclude npu0`")
    assert second.startswith("segment 02-npu1 (")
    assert "(Softmax) is not supported" in second
    assert not (tmp_path / "board").exists()


def test_an_earlier_export_is_replaced_and_other_files_are_not(tmp_path):
    _, _, folder = exported(tmp_path)
    exported(tmp_path)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="which no export has written"):
        exported(tmp_path)


def test_a_plan_with_a_gpu_is_refused_with_what_to_leave_out(tmp_path):
    plan, path = rknn_plan(tmp_path)
    gpu = plan.processors[-1].model_copy(
        update={"kind": "gpu", "backend": "armcl-opencl", "compiler": None}
    )
    plan = plan.model_copy(update={"processors": (*plan.processors[:-1], gpu)})
    with pytest.raises(ExportError, match=r"npu1 \(armcl-opencl\), which has no runtime.*`--excl"):
        parapipe.export_plan(plan, "rknn", tmp_path / "board", model=path)


def test_a_plan_without_an_npu_is_refused(tmp_path):
    plan, path = rknn_plan(tmp_path, place=lambda _, __: (0, 0))
    with pytest.raises(ExportError, match="uses no processor whose platform names the compiler"):
        parapipe.export_plan(plan, "rknn", tmp_path / "board", model=path)


def test_more_npus_than_the_chip_has_cores_are_refused(tmp_path):
    plan, path = rknn_plan(tmp_path, target="rk3568")
    with pytest.raises(ExportError, match="npu0, npu1, and the NPU of rk3568 has 1 core:"):
        parapipe.export_plan(plan, "rknn", tmp_path / "board", model=path)


def test_without_the_compiler_its_absence_is_told_before_any_work(tmp_path, monkeypatch):
    monkeypatch.delenv("PARAPIPE_COMPILER_RKNN")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    with pytest.raises(ParapipeError, match="nobody has said where the compiler 'rknn' is"):
        exported(tmp_path)


def test_what_the_cpu_runs_inside_a_compiled_segment_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path))
    monkeypatch.setenv("RKNN_ON_CPU", "Concat")
    made, _, folder = exported(tmp_path)
    (note,) = made.notes
    assert note.startswith("inside 01-npu0.rknn, the board's CPU runs ")
    document = json.loads((folder / "manifest.json").read_text())
    assert [len(each["compiled"]["on_cpu"]) for each in document["segments"][1:]] == [1, 0]
    result = run(folder, "--frames", "3", "--json")
    assert "note: the board's CPU runs 1 node of 'npu0', as the compiler placed" in result.stderr
    (tmp_path / "run.json").write_text(result.stdout)
    (told,) = parapipe.compare(tmp_path / "run.json").notes
    assert "in segment 01-npu0, the board's CPU ran " in told


def test_calibration_gives_each_npu_segment_samples_of_its_own_inputs(tmp_path):
    _, path = rknn_plan(tmp_path)
    np.savez(tmp_path / "samples.npz", **frames_of(path, 3))
    _, _, folder = exported(tmp_path, calibration=tmp_path / "samples.npz")
    document = json.loads((folder / "manifest.json").read_text())
    assert {each["compiled"]["precision"] for each in document["segments"][1:]} == {"int8"}
    assert not (folder / "work").exists()


@pytest.mark.parametrize("folder_of_files", [False, True])
def test_samples_that_do_not_fit_the_model_are_refused(tmp_path, folder_of_files):
    samples = tmp_path / "samples"
    samples.mkdir()
    np.savez(samples / "a.npz", y=np.zeros(3, np.float32))
    given = samples if folder_of_files else samples / "a.npz"
    with pytest.raises(ArgumentError, match=r"a\.npz: has no array 'x', an input of the model"):
        exported(tmp_path, calibration=given)


def test_a_folder_without_samples_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match="holds no file"):
        exported(tmp_path, calibration=tmp_path / "empty")


def test_a_check_tells_the_cosine_of_outputs_and_borders_and_who_loses_most(tmp_path, monkeypatch):
    made, _, _ = exported(tmp_path, check=True)
    assert all(each["cosine"] == pytest.approx(1) for each in made.accuracy)
    assert made.summary[-1].strip() == "no segment loses any of it"
    outputs = {each["tensor"] for each in made.accuracy if each["is_output"]}
    assert outputs == {"out", "early"}
    monkeypatch.setenv("RKNN_NOISE", "0.5")
    noisy, _, _ = exported(tmp_path, check=True)
    worst = max(noisy.accuracy, key=lambda each: each["of_inputs"] - each["cosine"])
    assert worst["processor"] in ("npu0", "npu1")
    assert worst["cosine"] < 0.999
    assert f"{worst['segment']} loses most" in noisy.summary[-1]
    assert noisy.summary[2].startswith("accuracy    simulated against the float model, cosine: '")


def test_other_targets_take_neither_samples_nor_checks(tmp_path):
    plan, path = rknn_plan(tmp_path)
    with pytest.raises(ArgumentError, match="the target 'segments' takes no `check`, which is for"):
        parapipe.export_plan(plan, "segments", tmp_path / "out", model=path, check=True)
