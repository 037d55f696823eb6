"""Operators and small networks on oneDNN, XNNPACK and the runner's loops: as ONNX Runtime."""

import json

import numpy as np
import pytest

from tests.cases.armcl_case import Case, one
from tests.cases.armcl_cases import cases, inception, separable, write_case
from tests.cases.armcl_plans import ARRANGEMENTS, taking_turns
from tests.cases.attention_cases import attention_cases
from tests.cases.runner import assert_near, on_one_core_each

LIBRARIES = ("onednn", "xnnpack")
BACKENDS = (*LIBRARIES, "plain")
ON_CPUS = ("sequential", "pipe-only", "para-only", "hybrid")


CASES = [*cases(), *attention_cases()]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_computes_what_onnx_runtime_does(runner, tmp_path, case, backend):
    folder = tmp_path / "case"
    write_case(case.model(), folder, backend=backend)
    on_one_core_each(folder)
    report, made, wanted = runner.outputs(folder, "--frames", 1, "--warmup", 0)
    assert_near(made, wanted)
    moved = {"Concat", "Slice", "Reshape", "Transpose", "Pad", "Gather"}
    assert not {each["type"] for each in report["plain"]} & moved


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("network", [inception, separable])
def test_every_kind_of_configuration_runs(runner, tmp_path, network, arrangement, backend):
    folder = tmp_path / "network"
    write_case(network(), folder, frames=3, arrangement=arrangement, backend=backend)
    on_one_core_each(folder)
    report, made, wanted = runner.outputs(folder, "--frames", 50)
    assert_near(made, wanted)
    assert report["in_order"]


@pytest.mark.parametrize("first", BACKENDS)
@pytest.mark.parametrize("seed", [0, 1, 3, 9])
def test_processors_take_turns_on_several_frames(runner, tmp_path, seed, first):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, plan_of=taking_turns, seed=seed, backend="onednn")
    document = on_one_core_each(folder)
    document["processors"][0]["backend"] = first  # of another order, so that tensors are copied
    (folder / "plan.json").write_text(json.dumps(document))
    expected = folder / "expected.bin"
    report, made, wanted = runner.outputs(folder, "--frames", 50, "--check", expected)
    assert_near(made, wanted)
    assert report["agrees"]
    assert report["in_order"]


@pytest.mark.parametrize("first", ["plain", "xnnpack"])
def test_processors_of_one_plan_compute_with_different_back_ends(runner, tmp_path, first):
    folder = tmp_path / "both"
    write_case(inception(), folder, frames=3, arrangement="para-only", backend="onednn")
    document = on_one_core_each(folder)
    document["processors"][0]["backend"] = first
    (folder / "plan.json").write_text(json.dumps(document))
    _, made, wanted = runner.outputs(folder, "--frames", 9)
    assert_near(made, wanted)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_no_convolution_of_a_network_falls_back_to_a_loop(runner, tmp_path, backend):
    folder = tmp_path / "separable"
    write_case(separable(), folder, backend=backend)
    on_one_core_each(folder)
    report = runner.measured(folder, "--frames", 1)
    assert report["plain"] == []


@pytest.mark.parametrize("channels", [4, 32, 33])
@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu"])
def test_a_normalisation_before_a_convolution_applies_its_activation(
    runner, tmp_path, activation, channels
):
    draw = np.random.default_rng(5)
    norm = {name: draw.uniform(-1, 1, channels).astype(np.float32) for name in "gom"}
    norm["v"] = draw.uniform(0.2, 1, channels).astype(np.float32)
    nodes = [
        ("BatchNormalization", ("x", *norm), ("n",), {}),
        (activation, ("n",), ("y",), {}),
    ]
    case = Case("norm", nodes, (1, channels, 9, 11), norm)
    write_case(case.model(), tmp_path / "case", backend="onednn")
    on_one_core_each(tmp_path / "case")
    report, made, wanted = runner.outputs(tmp_path / "case", "--frames", 2)
    assert wanted.min() >= 0 or activation == "LeakyRelu"
    assert_near(made, wanted)
    if (activation, channels) == ("Relu", 32):
        assert report["plain"] == []


@pytest.mark.parametrize(
    ("kernel", "made", "slow"), [(3, 12, False), (5, 12, False), (7, 12, True), (3, 24, True)]
)
def test_xnnpack_says_which_convolutions_it_computes_group_by_group(
    runner, tmp_path, kernel, made, slow
):
    weights = np.random.default_rng(3).normal(size=(made, 1, kernel, kernel)).astype(np.float32)
    pads = [kernel // 2] * 4
    case = one("groups", "Conv", (1, 12, 9, 8), constants={"w": weights}, group=12, pads=pads)
    write_case(case.model(), tmp_path / "case", backend="xnnpack")
    on_one_core_each(tmp_path / "case")
    report, computed, wanted = runner.outputs(tmp_path / "case", "--frames", 1)
    assert_near(computed, wanted)
    assert bool(report["plain"]) == slow


@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_compute_an_operator_with_xnnpack(runner, tmp_path, threads):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, arrangement="pipe-only", backend="xnnpack")
    document = on_one_core_each(folder)
    for each in document["processors"]:
        each["threads"] = threads
    (folder / "plan.json").write_text(json.dumps(document))
    _, made, wanted = runner.outputs(folder, "--frames", 9)
    assert_near(made, wanted)


def test_arm_compute_library_refuses_what_it_lacks_and_names_every_operator(runner, tmp_path):
    folder = tmp_path / "gelu"
    (gelu,) = (case for case in attention_cases() if case.name == "gelu")
    write_case(gelu.model(), folder, backend="plain")
    document = on_one_core_each(folder)
    document["processors"][0]["backend"] = "neon"
    (folder / "plan.json").write_text(json.dumps(document))
    done = runner.run(folder)
    assert done.returncode == 1
    assert "operator 'b' (Erf) has no function in ARM Compute Library" in done.stderr
