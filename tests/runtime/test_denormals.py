"""Numbers below the normal range count as zero where frames are run, and nowhere else."""

import os
import subprocess
import sys

import numpy as np
import pytest

from parapipe.runtime.denormals import _CONTROL
from tests.cases.hand_made import Piece, folder_of, node, scalar

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

pytestmark = pytest.mark.skipif(
    os.uname().machine not in _CONTROL, reason="this processor's control register is not known"
)


def ran(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.parametrize("cores", [HERE[:1], HERE])
def test_frames_are_run_with_denormals_as_zero_and_the_caller_keeps_them(tmp_path, cores):
    piece = Piece(
        "s", "a", [node("Mul", "x", "w", "y")], ["x"], ["y"], initializers=[scalar("w", DENORMAL)]
    )
    shapes = {"x": [1, 50000], "y": [1, 50000]}
    folder_of(tmp_path, [piece], inputs=["x"], outputs=["y"], shapes=shapes, cores={"a": cores})
    assert np.float32(DENORMAL) != 0
    assert ran(RUN, tmp_path) == ["0", "50000"]


def test_a_thread_has_its_denormals_back_afterwards():
    program = """
import sys
from parapipe.runtime.denormals import denormals_to_zero

half = lambda: sys.float_info.min / 2 != 0
print(half())
with denormals_to_zero():
    print(half())
print(half())
"""
    assert ran(program) == ["True", "False", "True"]
