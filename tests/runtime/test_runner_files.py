"""An exported folder's `run.py`, in processes that have nothing of parapipe."""

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from parapipe.runtime.copied import runner_files
from parapipe.runtime.folder import RunError
from parapipe.runtime.frames import MOST_DIMENSIONS, frames_in, random_frames
from tests.cases.hand_made import hybrid

ONE = min(os.sched_getaffinity(0))
ALONE = """
import runpy, sys
for name in ("parapipe", "onnx", "pydantic", "click", "yaml", "networkx", "pandas"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("exported")
    hybrid(path, cores={name: [ONE] for name in "abc"})
    for name, content in runner_files().items():
        file = path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return path


def words(folder, *arguments):
    return [sys.executable, "-I", "-c", ALONE, str(folder / "run.py"), *map(str, arguments)]


def run(folder, *arguments):
    return subprocess.run(
        words(folder, *arguments), check=False, capture_output=True, text=True, timeout=60
    )


def test_it_runs_with_onnxruntime_and_numpy_only_and_tells_predicted_and_measured(folder):
    done = run(folder, "--frames", 20)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[:7]] == [
        "frames", "latency", "period", "throughput", "a", "b", "c"
    ]  # fmt: skip
    assert all("predicted" in line for line in done.stdout.splitlines()[1:7])


def test_a_package_that_is_missing_is_named_in_one_line(folder):
    for name in ("numpy", "onnxruntime"):
        words = [sys.executable, "-I", "-c", ALONE.replace('"parapipe"', f'"parapipe", "{name}"')]
        done = subprocess.run(
            [*words, str(folder / "run.py")], check=False, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"run.py: this Python has no {name}: install")
        assert done.stderr.count("\n") == 1


def test_frames_of_a_file_come_out_in_order_into_another(folder, tmp_path):
    x = np.arange(30, dtype=np.float32)[:, None, None] * np.ones((1, 2, 3), np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    done = run(folder, "--input", tmp_path / "in.npz", "--keep", tmp_path / "out.npz", "--saturate")
    assert done.returncode == 0, done.stderr
    assert "waiting for admission included" in done.stdout
    with np.load(tmp_path / "out.npz") as file:
        assert np.array_equal(file["y"], 11 * (x + 1))


def test_figures_as_json_and_a_trace_with_a_lane_for_each_processor(folder, tmp_path):
    done = run(folder, "--frames", 10, "--json", "--trace", tmp_path / "trace.json")
    assert json.loads(done.stdout)["frames"] == 10
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    processors = [each["args"]["name"] for each in events if each["name"] == "thread_name"]
    assert processors == ["a", "b", "c"]
    assert sum(each["ph"] == "X" for each in events) == 50


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"z": np.zeros((2, 3), np.float32)},
            "holds arrays ['z'], and the model's inputs are ['x']",
        ),
        ({"x": np.zeros((4, 3, 2), np.float32)}, "input 'x' is float32[4,3,2] and should be"),
        ({"x": np.zeros((0, 2, 3), np.float32)}, "holds no frames"),
        ({"x": np.zeros((2, 3), ">f4")}, "input 'x' is >f4[2,3] and should be float32[2,3]"),
        ({"x": np.zeros((2, 3))}, "input 'x' is float64[2,3] and should be float32[2,3]"),
    ],
)
def test_frames_that_do_not_fit_are_told_before_anything_runs(folder, tmp_path, arrays, message):
    np.savez(tmp_path / "in.npz", **arrays)
    done = run(folder, "--input", tmp_path / "in.npz")
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.startswith("run.py: ")
    assert done.stderr.count("\n") == 1


def test_a_single_array_or_nothing_is_no_file_of_frames(folder, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "empty.npz").touch()
    for name in ("in.npy", "empty.npz"):
        done = run(folder, "--input", tmp_path / name)
        assert done.returncode == 1
        told = f"run.py: {tmp_path / name}: is no .npz file; write it by numpy.savez\n"
        assert done.stderr == told


@pytest.mark.parametrize(
    "arguments",
    [
        ["--queue", "1"],
        ["--frames", "0"],
        ["--cores", "a=x"],
        ["--cores", "a=0,0"],
        ["--cores", "a=0", "--cores", "a=1"],
        ["--saturate", "--period", "1"],
        ["--period", "0"],
        ["--warmup", "-1"],
        ["--patience", "-1"],
        ["--patience", "0"],
        ["--patience", "nan"],
        ["--patience", "inf"],
    ],
    ids=" ".join,
)
def test_wrong_options_are_usage_errors(folder, arguments):
    done = run(folder, *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_frames_that_come_too_fast_are_told_and_a_period_gives_them_time(folder):
    too_fast = "frames arrive faster than the pipeline takes them"
    assert too_fast in run(folder, "--frames", 20, "--period", "1e-9").stdout
    assert too_fast not in run(folder, "--frames", 20, "--saturate").stdout


def test_cores_may_be_a_range_and_a_shared_one_is_a_note(folder):
    done = run(folder, "--frames", 2, "--cores", f"a={ONE}-{ONE}")
    assert done.returncode == 0, done.stderr
    assert f"run.py: note: 'a' and 'b' and 'c' run on core {ONE}: they take turns" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"queue_depth": 2', '"queue_depth": "x"',
            "'channels[0].queue_depth' is 'x', not a whole number of at least 1",
        ),
        ('"threads": 1', '"threads": true', "'processors[0].threads' is True, not a whole number"),
        ('"lag": 0', '"log": 0', "'segments[0].lag' is missing"),
        ('"time_s": 0.001', '"time_s": NaN', "'segments[0].time_s' is nan, not a number of second"),
        ('"period_s": 0.001', '"period_s": null', "'predicted.period_s' is None, not a number"),
        ('"processor": "a"', '"processor": "d"', "it names processor d, which is not there"),
        ('"producer": "s0-a-0"', '"producer": "s9"', "it names segment s9, which is not there"),
    ],
    ids=lambda value: None,
)  # fmt: skip
def test_a_damaged_field_is_named_in_one_line(folder, tmp_path, old, new, words):
    text = (folder / "plan.json").read_text()
    assert old in text
    (tmp_path / "plan.json").write_text(text.replace(old, new, 1))
    done = run(folder, tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.endswith("; export the plan again\n")
    assert done.stderr.count("\n") == 1


def test_files_that_are_missing_are_named(folder, tmp_path):
    document = json.loads((folder / "plan.json").read_text())
    document["files"] = {"s0-a-0.bin": "0" * 64, "network.onnx": "0" * 64}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    for segment in document["segments"][1:]:
        (tmp_path / segment["file"]).write_bytes(b"")
    done = run(folder, tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"run.py: {tmp_path}: s0-a-0.onnx, s0-a-0.bin are missing; export the plan again\n"
    )


@pytest.mark.parametrize("option", ["--keep", "--trace"])
@pytest.mark.parametrize(
    ("place", "words"), [("..", "is a folder"), ("missing/file", "there is no folder missing")]
)
def test_a_place_for_a_file_is_looked_at_before_anything_runs(folder, option, place, words):
    done = run(folder, option, place)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_keeps_the_results_there_are(folder, tmp_path, number, code):
    kept = tmp_path / "out.npz"
    process = subprocess.Popen(
        words(folder, "--frames", 10**7, "--keep", kept), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "running 10000000 frames of hand-made on a, b, c\n"
    process.send_signal(number)
    assert process.wait(30) == code
    assert process.stderr.read() == f"run.py: ended by {number.name}\n"
    process.stderr.close()
    with np.load(kept) as file:
        assert set(file.files) <= {"y"}


@pytest.mark.parametrize("option", ["--keep", "--trace"])
def test_a_file_that_does_not_fit_is_told_in_one_line_and_nothing_is_left(folder, tmp_path, option):
    done = subprocess.run(
        words(folder, "--frames", 2, option, tmp_path / "out"),
        check=False, capture_output=True, text=True, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
    )  # fmt: skip
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert first.startswith("running 2 frames")
    assert last == f"run.py: {tmp_path / 'out'}: cannot be written (File too large)"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_figures_that_do_not_fit_are_told_in_one_line(folder, options):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            words(folder, "--frames", 2, *options),
            check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if ": note: " not in line]
    assert lines[1:] == ["run.py: standard output: cannot be written (No space left on device)"]


def test_standard_error_on_a_full_disk_ends_it_with_1(folder):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(words(folder, "--frames", 2), check=False, stderr=full, timeout=60)
    assert done.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("package", ["numpy", "onnxruntime"])
def test_a_signal_while_packages_are_imported_is_answered_in_one_line(
    folder, tmp_path, number, package
):
    (tmp_path / f"{package}.py").write_text(f"import os; os.kill(os.getpid(), {int(number)})\n")
    done = subprocess.run(
        [sys.executable, folder / "run.py"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + number, f"run.py: ended by {number.name}\n")


@pytest.mark.parametrize("count", [MOST_DIMENSIONS, MOST_DIMENSIONS + 1, 200])
@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_shapes_of_more_dimensions_than_arrays_have_are_named(tmp_path, count, which):
    folder = hybrid(tmp_path, cores={name: [ONE] for name in "abc"})
    name = folder.inputs[0] if which == "inputs" else folder.outputs[0].tensor
    shape = (1,) * (count - 1) + (6,)
    tensors = {**folder.tensors, name: replace(folder.tensors[name], shape=shape)}
    deep = replace(folder, tensors=tensors)
    if count <= MOST_DIMENSIONS:
        assert next(iter(random_frames(deep, 1)))
        return
    for frames in (lambda: random_frames(deep, 1), lambda: frames_in(tmp_path / "no.npz", deep)):
        with pytest.raises(RunError, match=f"^tensor '{name}' has {count} dimensions, and NumPy"):
            frames()
