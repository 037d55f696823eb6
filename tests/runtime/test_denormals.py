"""Numbers below the normal range count as zero where frames are run, and nowhere else."""

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import parapipe
from parapipe.runtime.folder import open_folder
from parapipe.runtime.machine import _CONTROL, denormals_note
from tests.cases.hand_made import Piece, folder_of, node, scalar
from tests.cases.small_network import small_network

HERE = sorted(os.sched_getaffinity(0))
DENORMAL = 1e-39
RUN = """
import sys
from pathlib import Path
import numpy as np
import onnxruntime as ort
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder

# The first session of a process decides for the thread that opens it: this one says nothing.
ort.InferenceSession(str(Path(sys.argv[1]) / "s.onnx"), providers=["CPUExecutionProvider"])
x = np.ones((1, 50000), np.float32)
(results,) = Executor(open_folder(Path(sys.argv[1]))).run([{"x": x}])
print(np.count_nonzero(results["y"]), np.count_nonzero(x * np.float32(1e-39)))
"""

switched = pytest.mark.skipif(
    os.uname().machine not in _CONTROL, reason="this processor's control register is not known"
)


def ran(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout.split()


@switched
@pytest.mark.parametrize("cores", [HERE[:1], HERE])
def test_frames_are_run_with_denormals_as_zero_and_the_caller_keeps_them(tmp_path, cores):
    piece = Piece(
        "s", "a", [node("Mul", "x", "w", "y")], ["x"], ["y"], initializers=[scalar("w", DENORMAL)]
    )
    shapes = {"x": [1, 50000], "y": [1, 50000]}
    folder_of(tmp_path, [piece], inputs=["x"], outputs=["y"], shapes=shapes, cores={"a": cores})
    assert np.float32(DENORMAL) != 0
    assert ran(RUN, tmp_path) == ["0", "50000"]


@switched
def test_the_first_session_of_a_process_leaves_the_callers_denormals_too(tmp_path):
    piece = Piece(
        "s", "a", [node("Mul", "x", "w", "y")], ["x"], ["y"], initializers=[scalar("w", DENORMAL)]
    )
    shapes = {"x": [1, 50000], "y": [1, 50000]}
    folder_of(tmp_path, [piece], inputs=["x"], outputs=["y"], shapes=shapes, cores={"a": HERE[:1]})
    first = "\n".join(line for line in RUN.splitlines() if "ort." not in line)
    assert ran(first, tmp_path) == ["0", "50000"]
    measured = """
import sys
from pathlib import Path
import numpy as np
from parapipe.profiling.measure import preserve_thread_state, session

with preserve_thread_state():
    session(Path(sys.argv[1]) / "s.onnx", 1, "CPUExecutionProvider")
    print(np.count_nonzero(np.ones(9, np.float32) * np.float32(1e-39)))
print(np.count_nonzero(np.ones(9, np.float32) * np.float32(1e-39)))
"""
    assert ran(measured, tmp_path) == ["0", "9"]


@switched
def test_a_thread_has_its_denormals_back_afterwards():
    program = """
import sys
from parapipe.runtime.machine import denormals_to_zero

half = lambda: sys.float_info.min / 2 != 0
print(half())
with denormals_to_zero():
    print(half())
print(half())
"""
    assert ran(program) == ["True", "False", "True"]


def test_weights_with_many_denormals_are_told_the_worst_first_and_few_are_not():
    found = [("a", 10, 1000), ("b", 9, 1000), ("c", 2000, 4000), ("d", 30, 40), ("e", 20, 20)]
    found += [("f", 5, 5), ("g", 4, 5)]
    assert denormals_note(found) == (
        "weights are denormal, smaller than the normal range (2,000 of 4,000 in 'c', 30 of 40 in "
        "'d', 20 of 20 in 'e', 10 of 1,000 in 'a', 5 of 5 in 'f' and 1 more): they count as zero "
        "here, and slow down a runtime that does not do so"
    )
    assert denormals_note(found[1:2]) == ""
    assert denormals_note([]) == ""


@pytest.fixture
def denormal(tmp_path):
    model = small_network()
    (weight,) = (each for each in model.graph.initializer if each.name == "w3")
    values = numpy_helper.to_array(weight).copy()
    values.flat[:100] = DENORMAL
    weight.CopyFrom(numpy_helper.from_array(values, "w3"))
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


TOLD = "weights are denormal, smaller than the normal range (100 of 576 in 'w3')"


def test_run_and_export_tell_of_a_model_with_denormal_weights(denormal, tmp_path):
    front = parapipe.map(
        denormal, "amlogic-a311d", cache=False, jobs=1, objectives="latency-throughput",
        note=lambda _note: None, interleave="none",
    )  # fmt: skip
    plan = front["pipe-only"].plan()
    told = parapipe.export_plan(plan, "onnxruntime", tmp_path / "board").notes
    assert [note for note in told if note.startswith(TOLD)]
    (found,) = open_folder(tmp_path / "board").denormals
    assert (found.tensor, found.count, found.of) == ("w3", 100, 576)
    cores = {each.name: HERE[:1] for each in plan.processors}
    run = parapipe.run_plan(plan, frames=4, saturate=True, cores=cores)
    assert [note for note in run.notes if note.startswith(TOLD)]


def test_a_bundle_for_a_profile_tells_of_denormal_weights(denormal, tmp_path):
    told = parapipe.write_profile_bundle(denormal, "amlogic-a311d", tmp_path / "bundle")
    assert [note for note in told if note.startswith(TOLD)]
