"""Networks of the zoo, by each kind of plan and each strategy: results of ONNX Runtime.

Each case runs 50 frames. Networks of more than 10 G multiply-accumulates or 10 MB of outputs a
frame run 6, which are more than any of these plans has on its way: 50 would take hours and many GB.
`gpt`, `llama` and `llama-step` have one layer. MoE operators have no form in the runner.

One case is `-k "squeezenet-hybrid-steal"`; all of a network `-k squeezenet`.
"""

import os
from functools import cache, lru_cache
from itertools import product

import numpy as np
import onnx
import pytest

from parapipe import build_zoo, run_plan
from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from parapipe.zoo.registry import examples
from tests.cases.armcl_plans import BIG, LITTLE, parts_apart, plan_for, taking_turns
from tests.cases.replicated_plans import replicated

CORES = sorted(os.sched_getaffinity(0))
LARGE = (
    "bert-base",
    "bevformer",
    "gpt:1",
    "inception-resnet-v2",
    "inception-v4",
    "llama:1",
    "petr",
    "pnasnet-5-large",
    "unet",
    "vit-b16",
    "whisper-encoder",
    "yolo-pan",
)
NETWORKS = tuple(name.replace(":12", ":1") for name in examples() if not name.startswith("moe"))
KINDS = ("sequential", "pipe-only", "para-only", "hybrid", "interleaved", "replicated", "split")
STRATEGIES = ("plan", "ready-pool", "steal", "streams")
FRAMES = 50
FRAMES_OF_LARGE = 6
TOLERANCE = 1e-4  # of the largest number of the output


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Files of networks by name, each made once; if split, operators are in two parts."""

    @cache
    def made(name, split=False):
        path = tmp_path_factory.mktemp("zoo") / "model.onnx"
        if split:
            parts, _ = split_proto(onnx.load(made(name)), name, [read_rule("*:rows=2")])
            onnx.save(parts, path)
        else:
            build_zoo(name, path)
        return path

    return made


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    """What ONNX Runtime makes of the frames, once for each network, one network at a time."""

    @lru_cache(maxsize=1)
    def made(name):
        plan = plan_for(model(name))
        return kept(plan, name, tmp_path_factory.mktemp("kept"), runtime="onnxruntime")

    return made


def frames_of(name):
    return FRAMES_OF_LARGE if name in LARGE else FRAMES


def kept(plan, network, folder, **options):
    names = [each.name for each in plan.processors]
    cores = {name: [CORES[number % len(CORES)]] for number, name in enumerate(names)}
    path, frames = folder / "kept.npz", frames_of(network)
    run_plan(plan, frames=frames, warmup=1, saturate=True, cores=cores, keep=path, **options)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    path.unlink()
    return arrays


def assert_near(made, wanted, frames):
    assert made.keys() == wanted.keys()
    for name, array in wanted.items():
        assert (made[name].shape, made[name].dtype) == (array.shape, array.dtype)
        assert len(array) == frames
        assert np.abs(made[name] - array).max() <= TOLERANCE * np.abs(array).max()


def plan_of_kind(model, name, kind):
    if kind == "interleaved":
        return taking_turns(model(name), seed=1)
    if kind == "replicated":
        return replicated(model(name), (1, 2))
    if kind == "split":
        return parts_apart(model(name, split=True), (BIG, LITTLE))
    return plan_for(model(name), kind)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [*product(NETWORKS, KINDS, STRATEGIES)], ids="-".join)
def test_each_network_kind_and_strategy_gives_the_results_of_onnx_runtime(
    model, expected, tmp_path, case
):
    name, kind, strategy = case
    plan = plan_of_kind(model, name, kind)
    made = kept(plan, name, tmp_path, runtime="native", strategy=strategy)
    assert_near(made, expected(name), frames_of(name))


def test_squeezenet_taking_turns_is_stolen_and_gives_the_results_of_onnx_runtime(
    model, expected, tmp_path
):
    plan = plan_of_kind(model, "squeezenet", "interleaved")
    made = kept(plan, "squeezenet", tmp_path, runtime="native", strategy="steal")
    assert_near(made, expected("squeezenet"), FRAMES)
