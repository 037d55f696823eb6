"""The target `cuda`: what it refuses, and a program of streams, compiled where it can be."""

import os
import shutil
import subprocess

import pytest

from parapipe import export_plan
from parapipe.errors import ExportError
from parapipe.plan.schema import Stream
from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import plan_for


def on_streams(plan):
    """The same plan on the streams of one GPU."""
    count = len(plan.processors)
    processors = tuple(
        each.model_copy(
            update={
                "kind": "gpu",
                "backend": "onnxruntime-cuda",
                "cores": (),
                "stream": Stream(of="gpu", count=count) if count > 1 else None,
            }
        )
        for each in plan.processors
    )
    return plan.model_copy(update={"processors": processors})


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    return path


def test_each_stream_of_the_plan_is_one_of_the_gpu(small, tmp_path):
    plan = on_streams(plan_for(small, "para-only"))
    export_plan(plan, "cuda", tmp_path / "out", model=small)
    text = (tmp_path / "out" / "network.cpp").read_text()
    assert text.count("    network.stream(") == text.count("BackendKind::cuda, {}, 1, 0,") == 2
    build = (tmp_path / "out" / "CMakeLists.txt").read_text()
    assert "LANGUAGES CXX CUDA)" in build
    assert "set(PARAPIPE_CUDA ON " in build
    assert "parapipe_gpu_program" in build


def test_all_that_keeps_a_plan_from_a_gpu_is_said_at_once(small, tmp_path):
    wanted = r"uses 'big' \(cpu\), 'little' \(cpu\); it has several"
    with pytest.raises(ExportError, match=wanted):
        export_plan(plan_for(small, "pipe-only"), "cuda", tmp_path / "out", model=small)
    plan = on_streams(plan_for(small, "para-only"))
    apart = [each.model_copy(update={"stream": None}) for each in plan.processors]
    plan = plan.model_copy(update={"processors": tuple(apart)})
    with pytest.raises(ExportError, match="it uses the GPUs 'big', 'little'"):
        export_plan(plan, "cuda", tmp_path / "out", model=small)
    assert not (tmp_path / "out").exists()


def test_the_program_is_compiled_where_nvcc_cudnn_and_cublas_are(small, tmp_path):
    if os.environ.get("PARAPIPE_CUDA") != "required":
        pytest.skip("needs nvcc, cuDNN and cuBLAS: make test-cuda")
    assert shutil.which("nvcc"), "nvcc is not in PATH"
    out = tmp_path / "out"
    export_plan(on_streams(plan_for(small, "para-only")), "cuda", out, model=small)
    for words in (["-S", ".", "-B", "build"], ["--build", "build", "--parallel", "2"]):
        done = subprocess.run(
            ["cmake", *words], cwd=out, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (out / "build" / "model").exists()
