"""Programs for GPUs without a GPU: streams, events and libraries are stood in for on the CPU.

What CUDA, cuDNN and cuBLAS themselves do is not tested here; all else is, with streams that run as
late and as far out of order as events allow, and memory that holds no numbers at first.
"""

import os
import shutil
import subprocess
from fcntl import LOCK_EX, flock
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from parapipe import export_plan
from tests.cases.armcl_cases import cases, inception, separable, write_case
from tests.cases.armcl_plans import plan_for
from tests.cases.attention_cases import attention_cases
from tests.runtimes.onednn.conftest import BUILD
from tests.targets.test_cuda_folder import on_streams

pytestmark = pytest.mark.nightly  # compiles all of the program's library again

TOLERANCE = 1e-5  # of the largest number of the output
OPERATORS = (
    "add_executable(operators runtime/tests/gpu_operators.cpp)\n"
    "target_link_libraries(operators PRIVATE parapipe_gpu_program)\n"
)


def built(folder, place):
    """Build an exported program with what stands in for a GPU; return it, and `operators`."""
    path = folder / "CMakeLists.txt"
    text = path.read_text().replace("LANGUAGES CXX CUDA)", "LANGUAGES CXX)")
    path.write_text(text.replace("set(PARAPIPE_CUDA ON", "set(PARAPIPE_GPU_ON_HOST ON") + OPERATORS)
    shutil.copytree("runtimes/native/tests", folder / "runtime" / "tests")
    home = Path(os.environ[BUILD]).absolute() / "gpu"
    with Path(os.environ[BUILD], "gpu.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        for source in folder.rglob("*"):
            target = home / source.relative_to(folder)
            if source.is_file() and source.name != "weights.bin":
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists() or target.read_bytes() != source.read_bytes():
                    shutil.copyfile(source, target)
        for words in (["-S", ".", "-B", "build"], ["--build", "build", "--parallel", "2"]):
            done = subprocess.run(
                ["cmake", *words], cwd=home, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        for name in ("model", "operators"):
            shutil.copy(home / "build" / name, place / name)
    return place / "model", place / "operators"


def assert_equal(made, wanted):
    assert made.size == wanted.size > 0
    assert np.abs(made - wanted).max() <= TOLERANCE * np.abs(wanted).max()


@pytest.mark.parametrize("network", [inception, separable])
@pytest.mark.parametrize("streams", [1, 2, 4])
def test_streams_give_the_results_of_onnx_runtime(tmp_path, network, streams):
    path = tmp_path / "model.onnx"
    path.write_bytes(network().SerializeToString())
    plan = on_streams(plan_for(path, "sequential" if streams == 1 else "para-only"))
    if streams == 4:  # no two tensors share bytes
        plan = plan.model_copy(update={"memory": None, "buffers": ()})
    out = tmp_path / "out"
    export_plan(plan, "cuda", out, model=path)
    program, _ = built(out, tmp_path)
    session = onnxruntime.InferenceSession(path)
    generator = np.random.default_rng(1)
    names = list(plan.inputs)
    frames = [
        {i.name: generator.standard_normal(i.shape).astype("<f4") for i in session.get_inputs()}
        for _ in range(3)
    ]
    (out / "input.bin").write_bytes(b"".join(f[n].tobytes() for f in frames for n in names))
    wanted = [session.run(list(plan.outputs), frame) for frame in frames]
    words = [program, "--frames", "3", "--input", "input.bin", "--output", "made.bin"]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = np.fromfile(out / "made.bin", "<f4")
    assert_equal(made, np.concatenate([each.ravel() for frame in wanted for each in frame]))


def test_every_operator_computes_what_onnx_runtime_does(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    out = tmp_path / "out"
    export_plan(on_streams(plan_for(path, "sequential")), "cuda", out, model=path)
    _, operators = built(out, tmp_path)
    for number, case in enumerate([*cases(), *attention_cases()]):
        folder = tmp_path / str(number)
        write_case(case.model(), folder, backend="plain")
        words = [operators, folder, folder / "input.bin", folder / "made.bin"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (case.name, done.stderr)
        made, wanted = (np.fromfile(folder / f"{n}.bin", "<f4") for n in ("made", "expected"))
        assert_equal(made, wanted)
