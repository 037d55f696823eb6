"""Several plans in one pool: results of each, in order, and who is asked for what."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import parapipe
from parapipe.errors import ExecutionError, StrategyError
from parapipe.simulate.strategies import Arrivals, strategy_replay
from parapipe.strategies.joined import joined_work, part_of_plan
from parapipe.strategies.order_of_plan import ReadyPool
from parapipe.zoo.registry import write
from tests.cases.branchy import branchy
from tests.cases.decided import work

FRAMES = 7


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    write("squeezenet", place / "squeezenet.onnx")
    return place / "squeezenet.onnx", branchy(place / "branchy.onnx")


@pytest.fixture(scope="module")
def plans(models):
    fronts = (
        parapipe.map(
            model, "amlogic-a311d", mapper="heft_cpop", interleave="none", cache=False,
            objectives="latency-throughput",
        )
        for model in models
    )  # fmt: skip
    return [front.best("period").plan() for front in fronts]


@pytest.mark.parametrize("unit", ["segment", "operator"])
@pytest.mark.parametrize("strategy", ["ready-pool", "barriers", "micro-batches"])
def test_each_gives_what_its_session_gives(models, plans, strategy, unit, tmp_path):
    draw = np.random.default_rng(0)
    given = {
        f"{n}/data": draw.random((FRAMES, *plan.tensors["data"].shape), np.float32)
        for n, plan in enumerate(plans, start=1)
    }
    np.savez(tmp_path / "in.npz", **given)
    cores = {each.name: (0,) for plan in plans for each in plan.processors}
    runs = parapipe.run_plans(
        plans, strategy=strategy, unit=unit, input=tmp_path / "in.npz", cores=cores,
        keep=tmp_path / "out.npz", saturate=True,
    )  # fmt: skip
    kept = np.load(tmp_path / "out.npz")
    for n, (model, run) in enumerate(zip(models, runs, strict=True), start=1):
        session = ort.InferenceSession(str(model))
        name = session.get_outputs()[0].name
        for frame in range(FRAMES):
            (wanted,) = session.run(None, {"data": given[f"{n}/data"][frame]})
            np.testing.assert_array_equal(kept[f"{n}/{name}"][frame], wanted)
        assert run.document.frames == FRAMES
        assert len(run.record.spans) == FRAMES * len(run.document.tasks)


def test_plans_need_not_have_the_same_processors(models):
    """Each of the plans leaves out one that another has."""
    front = parapipe.map(
        models[1], "amlogic-a311d", mapper="heft_cpop", interleave="none", cache=False
    )
    plans = [front[name].plan() for name in ("big-alone", "gpu-alone")]
    cores = {each.name: (0,) for plan in plans for each in plan.processors}
    assert len(cores) == 2
    runs = parapipe.run_plans(plans, strategy="ready-pool", cores=cores, frames=4)
    assert [run.document.frames for run in runs] == [4, 4]


def test_a_strategy_that_follows_a_plan_takes_no_other(plans):
    for verb in (parapipe.run_plans, parapipe.simulate_plans):
        with pytest.raises(StrategyError, match="'steal' follows one plan, and 2 are given"):
            verb(plans, strategy="steal")
        with pytest.raises(StrategyError, match="there is no plan to run"):
            verb([])


def test_cores_of_unknown_processors_are_refused(plans):
    with pytest.raises(ExecutionError, match="cores are given for npu"):
        parapipe.run_plans(plans, cores={"npu": (0,)})


def test_in_simulation_each_does_all_of_its_work(plans):
    runs = parapipe.simulate_plans(plans, saturate=True, frames=20)
    for plan, run in zip(plans, runs, strict=True):
        assert run.document.model == plan.model.name
        jobs = {(span.name, span.frame) for span in run.record.spans}
        assert len(jobs) == len(run.record.spans) == 20 * len(plan.operators)


def test_two_chains_in_one_pool_take_two_cores_as_one_chain_takes_one():
    # Two chains of three seconds on two equal cores: one frame of both takes 3 s, ten take 30 s.
    chain = work([[1, 1], [2, 2]], [(0, 1)], [[0, 1], []])
    both = joined_work([chain, chain])
    assert both.tasks == ("1/a", "1/b", "2/a", "2/b")
    spans, frames = strategy_replay(both, ReadyPool, "ready-pool", 10, Arrivals(None, 2))
    assert max(span.end_s for span in spans) == 30
    for number in range(2):
        own, passed = part_of_plan(spans, frames, number)
        made = sorted((s.name, s.frame) for s in own)
        assert made == [(name, n) for name in "ab" for n in range(10)]
        assert [frame.index for frame in passed] == list(range(10))
