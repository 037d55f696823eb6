"""Networks of the zoo, by each kind of plan and each strategy: results of ONNX Runtime."""

import os
from functools import cache
from itertools import product

import numpy as np
import onnx
import pytest

from parapipe import build_zoo, run_plan
from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from tests.cases.armcl_plans import BIG, LITTLE, parts_apart, plan_for, taking_turns

CORES = sorted(os.sched_getaffinity(0))
NETWORKS = (
    "squeezenet",
    "googlenet",
    "mobilenet-v1",
    "mobilenet-v2",
    "resnet-50",
    "densenet-121",
    "unet",
    "gpt:1",
)
SPLIT = ("squeezenet", "mobilenet-v1", "mobilenet-v2", "resnet-50")
"""Networks whose convolutions are split by rows."""
KINDS = ("sequential", "pipe-only", "para-only", "hybrid", "interleaved")
STRATEGIES = ("plan", "ready-pool", "steal", "streams")
FRAMES = 50
TOLERANCE = 1e-4  # of the largest number of the output


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Files of networks by name, each made once."""

    @cache
    def made(name):
        path = tmp_path_factory.mktemp("zoo") / "model.onnx"
        build_zoo(name, path)
        return path

    return made


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    """What ONNX Runtime makes of the frames, once for each network."""

    @cache
    def made(name):
        return kept(plan_for(model(name)), tmp_path_factory.mktemp("kept"), runtime="onnxruntime")

    return made


def kept(plan, folder, **options):
    names = [each.name for each in plan.processors]
    cores = {name: [CORES[number % len(CORES)]] for number, name in enumerate(names)}
    path = folder / "kept.npz"
    run_plan(plan, frames=FRAMES, warmup=1, saturate=True, cores=cores, keep=path, **options)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def assert_near(made, wanted):
    assert made.keys() == wanted.keys()
    for name, array in wanted.items():
        assert (made[name].shape, made[name].dtype) == (array.shape, array.dtype)
        assert len(array) == FRAMES
        assert np.abs(made[name] - array).max() <= TOLERANCE * np.abs(array).max()


def plan_of_kind(path, kind):
    return taking_turns(path, seed=1) if kind == "interleaved" else plan_for(path, kind)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", product(NETWORKS, KINDS), ids="-".join)
def test_each_network_kind_and_strategy_gives_the_results_of_onnx_runtime(
    model, expected, tmp_path, case, strategy
):
    name, kind = case
    plan = plan_of_kind(model(name), kind)
    assert_near(kept(plan, tmp_path, runtime="native", strategy=strategy), expected(name))


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", SPLIT)
def test_split_networks_give_the_results_of_the_whole_ones(
    model, expected, tmp_path, name, strategy
):
    whole = onnx.load(model(name))
    parts, _ = split_proto(whole, name, [read_rule("*:rows=2")])
    path = tmp_path / "split.onnx"
    onnx.save(parts, path)
    plan = parts_apart(path, (BIG, LITTLE))
    assert_near(kept(plan, tmp_path, runtime="native", strategy=strategy), expected(name))


def test_squeezenet_taking_turns_is_stolen_and_gives_the_results_of_onnx_runtime(
    model, expected, tmp_path
):
    plan = plan_of_kind(model("squeezenet"), "interleaved")
    made = kept(plan, tmp_path, runtime="native", strategy="steal")
    assert_near(made, expected("squeezenet"))
