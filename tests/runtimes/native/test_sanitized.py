"""SqueezeNet by each kind of plan and strategy, and generated programs, under sanitizers.

All compute in plain loops: no sanitizer sees races inside of a library that it did not compile.
"""

import os
import re
import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest

from parapipe import build_zoo, export_plan
from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from tests.cases.armcl_cases import inception, write_case
from tests.cases.armcl_plans import BIG, LITTLE, parts_apart, plan_for, taking_turns
from tests.cases.replicated_plans import replicated
from tests.cases.runner import Runner, assert_near, on_one_core_each
from tests.runtimes.native.conftest import BUILD

KINDS = {
    "sequential": (plan_for, {}),
    "pipe-only": (plan_for, {"arrangement": "pipe-only"}),
    "para-only": (plan_for, {"arrangement": "para-only"}),
    "hybrid": (plan_for, {"arrangement": "hybrid"}),
    "interleaved": (taking_turns, {"seed": 1}),
    "replicated": (replicated, {"counts": (1, 2)}),
    "split": (parts_apart, {"processors": (BIG, LITTLE)}),
}
STRATEGIES = ("plan", "ready-pool", "steal", "streams")
SANITIZERS = ("thread", "address,undefined")
FRAMES = 6
pytestmark = pytest.mark.nightly


def copied(source, target):
    """Copy a file if it is not there as it is: what was compiled from it is kept."""
    if not target.exists() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


@pytest.fixture(scope="session")
def built():
    """Builds a folder with CMake, under a sanitizer, in a place that is kept."""

    @cache
    def build(source, name, sanitizer):
        folder = Path(os.environ[BUILD]).absolute() / f"{name}-{sanitizer.partition(',')[0]}"
        libraries = [f"-DPARAPIPE_{each}=OFF" for each in ("NEON", "ONEDNN", "XNNPACK")]
        for words in (
            ["-S", str(source), "-B", str(folder), f"-DPARAPIPE_SANITIZE={sanitizer}", *libraries],
            ["--build", str(folder), "--parallel", "2"],
        ):
            done = subprocess.run(["cmake", *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return folder

    return build


@pytest.fixture(scope="session")
def squeezenet(tmp_path_factory):
    """A folder for each kind of plan, with two frames and their results."""

    @cache
    def made(kind):
        folder = tmp_path_factory.mktemp("squeezenet")
        build_zoo("squeezenet", folder / "model.onnx")
        model = onnx.load(folder / "model.onnx")
        if kind == "split":
            model, _ = split_proto(model, "squeezenet", [read_rule("*:rows=2")])
        plan_of, options = KINDS[kind]
        write_case(model, folder / kind, frames=2, plan_of=plan_of, backend="plain", **options)
        on_one_core_each(folder / kind)
        return folder / kind

    return made


@pytest.mark.parametrize("case", [*product(KINDS, STRATEGIES, SANITIZERS)], ids="-".join)
def test_squeezenet_gives_what_it_should_under_sanitizers(built, squeezenet, case):
    kind, strategy, sanitizer = case
    program = built("runtimes/native", "runner", sanitizer) / "parapipe-native"
    runner = Runner((str(program),), (), seconds=1800)
    _, made, wanted = runner.outputs(
        *(squeezenet(kind), "--frames", FRAMES, "--warmup", 0, "--strategy", strategy)
    )
    assert_near(made, wanted)


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("kind", ["hybrid", "interleaved", "split"])
def test_programs_give_the_same_frame_by_frame_under_sanitizers(built, tmp_path, kind, sanitizer):
    path = tmp_path / "model.onnx"
    model = inception()
    if kind == "split":
        model, _ = split_proto(model, "inception", [read_rule("*:rows=2")])
    path.write_bytes(model.SerializeToString())
    plan_of, options = KINDS[kind]
    plan = plan_of(path, **options)
    processors = tuple(
        each.model_copy(update={"kind": "cpu", "backend": "plain", "cores": ()})
        for each in plan.processors
    )
    out = tmp_path / "out"
    export_plan(plan.model_copy(update={"processors": processors}), "cpp", out, model=path)
    bare = Path(os.environ[BUILD]).absolute() / "program"
    for each in out.rglob("*"):
        if each.is_file() and each.name != "weights.bin":
            copied(each, bare / each.relative_to(out))
    built.cache_clear()  # the sources have changed
    folder = built(bare, "program", sanitizer)
    program = folder / re.search(r"^project\((\w+) ", (out / "CMakeLists.txt").read_text(), re.M)[1]
    made = []
    for batch in (7, 1):
        words = [program, "--frames", "7", "--batch", str(batch), "--output", "made.bin"]
        done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made.append(np.fromfile(out / "made.bin", "<f4"))
    assert made[0].size > 0
    assert np.array_equal(*made)
