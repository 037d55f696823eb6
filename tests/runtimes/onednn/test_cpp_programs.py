"""`export --to cpp`: two commands build and run the folder; results are those of ONNX Runtime.

All programs are built in one place, one after the other, so that their library is compiled once.
"""

import os
import re
import shutil
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from parapipe import build_zoo, export_plan
from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import plan_for, taking_turns
from tests.runtimes.onednn.conftest import BUILD

CORES = sorted(os.sched_getaffinity(0))
TOLERANCE = 1e-4  # of the largest number of the output
LARGE = ("googlenet", "resnet-50", "unet", "vit-b16", "bert-base")
NETWORKS = (
    "squeezenet",
    "mobilenet-v2",
    *(pytest.param(n, marks=pytest.mark.nightly) for n in LARGE),
)
ALLOCATIONS = Path("runtimes/native/tests/allocations.cpp")


def on_this_machine(plan, backends=("onednn-cpu",)):
    """The same plan with a core of this machine for each processor, if it has so many."""
    alone = len(plan.processors) <= len(CORES)
    processors = tuple(
        each.model_copy(
            update={
                "kind": "cpu",
                "backend": backends[number % len(backends)],
                "cores": (CORES[number],) if alone else (),
            }
        )
        for number, each in enumerate(plan.processors)
    )
    return plan.model_copy(update={"processors": processors})


def frames_of(session, count):
    """Random frames, those of whole numbers small."""
    generator = np.random.default_rng(1)
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    for _ in range(count):
        yield {
            each.name: (
                generator.standard_normal(each.shape)
                if each.type == "tensor(float)"
                else generator.integers(0, 2, each.shape)
            ).astype(kinds[each.type])
            for each in session.get_inputs()
        }


def copied(source, target):
    """Copy a file if it is not there as it is."""
    if not target.exists() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def built(folder, place, extra=""):
    """Build a folder by the first of the two commands, in a place of its own; return programs."""
    name = re.search(r"^project\((\w+) ", (folder / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    with Path(os.environ[BUILD], "program.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        bare = Path(os.environ[BUILD]) / "program"
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "weights.bin":
                copied(path, bare / path.relative_to(folder))
        with (bare / "CMakeLists.txt").open("a") as file:
            file.write(extra.replace("@NAME@", name))
        text = ALLOCATIONS.read_text().replace("NAMESPACE", name)
        (bare / "allocations.cpp").write_text(text)
        done = subprocess.run(
            "cmake -S . -B build && cmake --build build --parallel 2",
            cwd=bare, shell=True, capture_output=True, text=True, check=False,
            env=os.environ | {"CMAKE_PREFIX_PATH": sys.prefix},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        names = [name, "allocations"] if extra else [name]
        for each in names:
            shutil.copy(bare / "build" / each, place / each)
    return [place / each for each in names]


def run(program, folder, *options):
    words = [program.absolute(), *map(str, options)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def figures_of(done):
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def assert_equal_to_onnx_runtime(plan, path, place, frames=2):
    """Export, build and run a plan on random frames, in one call and frame by frame."""
    out = place / "out"
    export_plan(plan, "cpp", out, model=path)
    (program,) = built(out, place)
    session = onnxruntime.InferenceSession(path)
    given = list(frames_of(session, frames))
    (out / "input.bin").write_bytes(
        b"".join(frame[n].astype("<f4").tobytes() for frame in given for n in plan.inputs)
    )
    wanted = [
        dict(zip(plan.outputs, session.run(list(plan.outputs), f), strict=True)) for f in given
    ]
    for batch in (frames, 1):
        figures = figures_of(
            run(program, out, "--frames", frames, "--batch", batch, "--input", "input.bin",
                "--output", "made.bin")
        )  # fmt: skip
        assert figures["frames"] == frames
        arenas = plan.memory.arenas if plan.memory else ()
        assert figures["pool_bytes"] == sum(each.size_bytes for each in arenas)
        made = np.fromfile(out / "made.bin", "<f4")
        at = 0
        for frame in wanted:
            for name in plan.outputs:
                size = frame[name].size
                off = np.abs(made[at : at + size] - frame[name].ravel()).max()
                assert off <= TOLERANCE * np.abs(frame[name]).max()
                at += size
        assert at == made.size
    return program, out


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    return path


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_zoo_give_the_results_of_onnx_runtime(name, tmp_path):
    path = tmp_path / "model.onnx"
    build_zoo(name, path)
    assert_equal_to_onnx_runtime(on_this_machine(plan_for(path, "para-only")), path, tmp_path)


@pytest.mark.parametrize("arrangement", ["sequential", "pipe-only", "hybrid"])
def test_plans_of_stages_run_several_frames_at_a_time(small, tmp_path, arrangement):
    plan = on_this_machine(plan_for(small, arrangement), ("onednn-cpu", "plain"))
    assert_equal_to_onnx_runtime(plan, small, tmp_path, frames=7)


@pytest.mark.parametrize("seed", range(2))
def test_interleaved_plans_run_again_after_their_last_frame(small, tmp_path, seed):
    plan = on_this_machine(taking_turns(small, seed))
    lags = {at.lag for stage in plan.stages for p in stage.processors for at in p.operators}
    assert len(lags) > 1
    assert_equal_to_onnx_runtime(plan, small, tmp_path, frames=7)


def test_nothing_is_allocated_after_loading(small, tmp_path):
    plan = on_this_machine(plan_for(small, "hybrid"), ("onednn-cpu", "plain"))
    out = tmp_path / "out"
    export_plan(plan, "cpp", out, model=small)
    extra = (
        "add_executable(allocations allocations.cpp)\n"
        "target_link_libraries(allocations PRIVATE @NAME@_network ${CMAKE_DL_LIBS})\n"
    )
    _, program = built(out, tmp_path, extra)
    done = run(program, out, "weights.bin")
    assert done.returncode == 0, done.stderr
    counted, own, _of_libraries = map(int, done.stdout.split())
    assert counted == 1  # it counts what is allocated
    assert own == 0


def test_mistakes_get_one_line(small, tmp_path):
    plan = on_this_machine(plan_for(small))
    out = tmp_path / "out"
    export_plan(plan, "cpp", out, model=small)
    (program,) = built(out, tmp_path)
    name = program.name
    weights = (out / "weights.bin").read_bytes()
    (out / "weights.bin").write_bytes(weights[:-4])
    done = run(program, out)
    assert done.returncode == 1
    assert done.stderr == (
        f"{name}: weights.bin: has {len(weights) - 4} bytes, and {len(weights)} by the plan; copy "
        "the whole folder again\n"
    )
    done = run(program, out, "--fram", "3")
    assert done.returncode == 2
    assert done.stderr == f"{name}: unknown option --fram; see --help\n"
    done = run(program, out, "--cores", "big=100000")
    assert done.returncode == 1
    assert "needs core 100000, which is not there" in done.stderr
