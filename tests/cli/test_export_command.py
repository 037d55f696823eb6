"""`parapipe export`."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_paths()["purelib"])


MAPPED: dict[str, str] = {}


@pytest.fixture
def plan(parapipe, small_model, tmp_path):
    """Write a plan of a small model, which is mapped once for all tests."""
    model, out = small_model(), tmp_path / "out"
    if not MAPPED:
        command = ("map", model, "--platform", "amlogic-a311d", "--mapper", "heft", "--out", out)
        assert parapipe(*command).code == 0
        MAPPED[str(model)] = (out / "plans" / "c01.json").read_text()
    ((name, text),) = MAPPED.items()
    path = tmp_path / "plan.json"
    path.write_text(text.replace(name, str(model)))
    return path


def test_an_exported_folder_runs_where_only_onnxruntime_and_numpy_are(
    parapipe, plan, small_model, tmp_path
) -> None:
    folder, alone = tmp_path / "exported", tmp_path / "packages"
    ended = parapipe("export", plan, folder, "--to", "onnxruntime")
    assert ended.code == 0
    assert ended.out.startswith(f"wrote {folder}: ")
    alone.mkdir()
    for package in ("onnxruntime", "numpy", "numpy.libs"):
        if (PACKAGES / package).exists():
            (alone / package).symlink_to(PACKAGES / package)
    model = onnx.load(small_model())
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).uniform(-1, 1, (3, *shape)).astype(np.float32)
    np.savez(tmp_path / "frames.npz", data=x)
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    used = [each["name"] for each in json.loads((folder / "plan.json").read_text())["processors"]]
    program = f"import runpy, sys; sys.path[:0] = [{str(alone)!r}, {str(folder)!r}]; "
    program += (
        f"sys.argv[0] = {str(folder / 'run.py')!r}; runpy.run_path(sys.argv[0], None, '__main__')"
    )
    done = subprocess.run(
        [
            sys.executable, "-I", "-S", "-c", program,
            "--input", str(tmp_path / "frames.npz"), "--keep", str(tmp_path / "results.npz"),
            *(f"--cores={name}={cores}" for name in used),
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (results,) = np.load(tmp_path / "results.npz").values()
    expected = np.tanh(1 / (1 + np.exp(-np.maximum(x, 0))))
    assert results.reshape(x.shape) == pytest.approx(expected, abs=1e-6)


def test_the_document_lists_what_was_written(parapipe, plan, tmp_path) -> None:
    folder = tmp_path / "exported"
    document = json.loads(parapipe("export", plan, folder, "--to", "onnxruntime", "--json").out)
    assert document["target"] == "onnxruntime"
    there = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(document["files"]) == sorted(map(str, there))
    assert document["size_bytes"] == sum(path.stat().st_size for path in there)


def test_an_earlier_export_is_replaced_and_nothing_else(parapipe, plan, tmp_path) -> None:
    folder = tmp_path / "exported"
    assert parapipe("export", plan, folder, "--to", "onnxruntime").code == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert parapipe("export", plan, folder, "--to", "onnxruntime").code == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    (folder / "notes.txt").write_text("mine")
    complaint = parapipe("export", plan, folder, "--to", "onnxruntime").complaint
    assert "holds 'notes.txt', which no export has written" in complaint
    assert (folder / "notes.txt").read_text() == "mine"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert parapipe("export", plan, empty, "--to", "onnxruntime").code == 0


def test_another_model_than_the_plans_is_refused(parapipe, plan, small_model, tmp_path) -> None:
    small_model("Relu", "Tanh", "Tanh")
    complaint = parapipe("export", plan, tmp_path / "x", "--to", "onnxruntime").complaint
    assert "the plan was made for other files: the SHA-256 of" in complaint
    assert not (tmp_path / "x").exists()


def test_a_model_that_was_moved_is_asked_for(parapipe, plan, small_model, tmp_path) -> None:
    moved = tmp_path / "elsewhere.onnx"
    small_model().rename(moved)
    complaint = parapipe("export", plan, tmp_path / "x", "--to", "onnxruntime").complaint
    assert "say with --model where it is" in complaint
    ended = parapipe("export", plan, tmp_path / "x", "--to", "onnxruntime", "--model", moved)
    assert ended.code == 0


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (("members", 0), "the plan has nodes that its model"),
        (("inputs", 0), "read or make other tensors in the plan than in its model"),
    ],
)
def test_a_plan_that_is_not_of_its_model_is_refused(parapipe, plan, tmp_path, field, said) -> None:
    document = json.loads(plan.read_text())
    key, position = field
    document["operators"][-1][key][position] = "data"
    del document["memory"], document["buffers"]  # of other operators
    plan.write_text(json.dumps(document))
    ended = parapipe("export", plan, tmp_path / "x", "--to", "onnxruntime")
    assert ended.code == 1
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "x").exists()


def test_a_target_that_is_not_there_is_a_usage_error(parapipe, plan, tmp_path) -> None:
    ended = parapipe("export", plan, tmp_path / "x", "--to", "onnxruntme")
    assert ended.code == 2
    assert "did you mean 'onnxruntime'?" in ended.err


def test_a_folder_is_asked_for(parapipe, plan) -> None:
    assert "name it" in parapipe("export", plan, "--to", "onnxruntime").complaint


def test_a_place_that_is_a_file_is_left_alone(parapipe, plan, tmp_path) -> None:
    place = tmp_path / "file"
    place.write_text("mine")
    assert "is a file" in parapipe("export", plan, place, "--to", "onnxruntime").complaint
    assert place.read_text() == "mine"


@pytest.mark.parametrize(
    ("target", "name"),
    [("perfetto", ""), ("model-explorer", "stage.json"), ("model-explorer", "README.md")],
)
def test_a_file_that_no_export_has_written_is_replaced_by_force_only(
    parapipe, plan, tmp_path, target, name
) -> None:
    place = tmp_path / "place"
    file = place / name if name else place
    for _ in range(2):  # an export may replace an earlier one
        assert parapipe("export", plan, place, "--to", target).code == 0
    own = file.read_bytes()
    for mine in (b"mine", b'{"traceEvents": [{}]}', b'{"name": "x", "results": {}}', b"[1]"):
        file.write_bytes(mine)
        complaint = parapipe("export", plan, place, "--to", target).complaint
        assert f"{file}: is there already, and no export to {target} has" in complaint
        assert file.read_bytes() == mine
    assert parapipe("export", plan, place, "--to", target, "--force").code == 0
    assert file.read_bytes() == own


def test_of_an_edited_folder_the_edit_is_named_and_not_another_file(
    parapipe, plan, tmp_path
) -> None:
    folder = tmp_path / "exported"
    assert parapipe("export", plan, folder, "--to", "onnxruntime").code == 0
    document = (folder / "plan.json").read_text()
    for edited in (document + "x", document.replace("parapipe/", "other/", 1)):
        (folder / "plan.json").write_text(edited)
        complaint = parapipe("export", plan, folder, "--to", "onnxruntime").complaint
        assert "its plan.json is not one of this target, or has been edited" in complaint
        assert "holds" not in complaint


def test_a_folder_to_write_without_an_id_is_answered_with_where_the_id_goes(
    parapipe, small_model, tmp_path
) -> None:
    front, out = tmp_path / "front", tmp_path / "out"
    assert parapipe("map", small_model(), "--platform", "amlogic-a311d", "--out", front).code == 0
    ended = parapipe("export", front, out, "--to", "onnxruntime")
    assert ended.code == 2
    assert f"give the configuration's ID before it: {front} ID {out}" in ended.err
    assert "PLAN|DIR ID [DESTINATION]" in parapipe("export", "--help").out


@pytest.mark.parametrize("target", ["onnxruntime", "armcl", "segments", "model-explorer"])
def test_a_folder_says_what_it_is_and_what_it_needs_and_is_replaced(
    parapipe, plan, tmp_path, target
) -> None:
    folder = tmp_path / "exported"
    for _ in range(2):
        assert parapipe("export", plan, folder, "--to", target).code == 0
    text = (folder / "README.md").read_text()
    assert "small on amlogic-a311d" in text
    for path in folder.iterdir():
        named = path.name in text or ("NN-PROCESSOR" in text and path.name[:2].isdigit())
        assert named or path.name == "README.md"
    assert (folder / "requirements.txt").exists() == (target == "onnxruntime")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("rknpu", "the compiler of rknpu takes the ONNX models of the target 'segments'"),
        ("TensorRT", "the compiler of TensorRT takes the ONNX models of the target 'segments'"),
        ("acl", "did you mean 'armcl'?"),
        ("onnx", "did you mean 'onnxruntime'?"),
        ("segmnets", "did you mean 'segments'?"),
    ],
)
def test_a_target_that_is_not_there_is_answered_with_what_is_meant(
    parapipe, plan, tmp_path, target, told
) -> None:
    ended = parapipe("export", plan, tmp_path / "x", "--to", target)
    assert ended.code == 2
    assert ended.err.rstrip().endswith(told)


def test_what_a_folder_requires_is_what_parapipe_requires(parapipe, plan, tmp_path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = {*project["dependencies"], *project["optional-dependencies"]["run"]}
    parapipe("export", plan, tmp_path / "exported", "--to", "onnxruntime")
    lines = (tmp_path / "exported" / "requirements.txt").read_text().splitlines()
    assert [line.split(">=")[0] for line in lines] == ["numpy", "onnxruntime"]
    assert set(lines) <= own


def test_a_folder_for_arm_compute_library_is_written(parapipe, plan, tmp_path) -> None:
    folder = tmp_path / "exported"
    ended = parapipe("export", plan, folder, "--to", "armcl", "--json")
    assert ended.code == 0
    document = json.loads(ended.out)
    names = ("README.md", "plan.json", "weights.bin")
    assert document["files"] == [str(folder / name) for name in names]
    assert document["size_bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    assert json.loads((folder / "plan.json").read_text())["schema"] == "parapipe/armcl/1"


def test_a_trace_of_the_predicted_schedule_needs_no_model(parapipe, plan, tmp_path) -> None:
    text = plan.read_text().replace("small.onnx", "gone.onnx")
    plan.write_text(text)
    trace = tmp_path / "trace.json"
    ended = parapipe("export", plan, trace, "--to", "perfetto")
    assert ended.code == 0
    assert ended.out.startswith(f"wrote {trace}: 1 file, {trace.stat().st_size / 1e3:.0f} kB\n")
    assert json.loads(trace.read_text())["traceEvents"]
    assert "gone.onnx" in parapipe("export", plan, tmp_path / "x", "--to", "onnxruntime").complaint


def test_node_data_are_written_for_each_kind(parapipe, plan, tmp_path) -> None:
    folder = tmp_path / "data"
    assert parapipe("export", plan, folder, "--to", "model-explorer").code == 0
    assert {path.name for path in folder.iterdir()} == {
        "stage.json", "processor.json", "time.json", "energy.json", "README.md",
    }  # fmt: skip
    results = json.loads((folder / "time.json").read_text())["results"]
    assert list(results) == ["node0", "node1", "node2"]
