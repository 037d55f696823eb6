"""Plans of quantised models hand over integers, and give what one session gives."""

import json
import os
from dataclasses import asdict

import numpy as np
import onnx
import onnxruntime
import pytest

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.plan.schema import Plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.zoo.registry import build
from tests.cases.quantised_models import quantise, small_qdq
from tests.cases.session_runs import frame, run_in_turn, run_whole
from tests.cases.split_models import placed_plan, random_plan, written


def exported(plan, path, folder):
    folder.mkdir()
    write_session_folder(plan, path, folder)
    return json.loads((folder / "plan.json").read_text())


def optimised_types(path, folder):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node]


@pytest.mark.parametrize("seed", range(6))
def test_any_split_of_a_quantised_model_gives_the_same_numbers(seed, tmp_path):
    path = written(small_qdq(), tmp_path)
    plan = random_plan(path, seed)
    assert Plan.model_validate_json(plan.to_bytes()) == plan
    document = exported(plan, path, tmp_path / "out")
    feeds = frame(document, seed)
    found = run_in_turn(tmp_path / "out", feeds)
    for name, wanted in run_whole(path, feeds, list(found)).items():
        np.testing.assert_array_equal(found[name], wanted)


def test_segments_hand_over_integers_and_compute_with_them(tmp_path):
    path = written(small_qdq(), tmp_path)
    plan = placed_plan(path, lambda v, _count: (v // 3, v // 3))
    document = exported(plan, path, tmp_path / "out")
    between = [channel["tensor"] for channel in document["channels"] if channel["producer"]]
    assert between
    assert {document["tensors"][name]["dtype"] for name in between} == {"uint8"}
    kinds = [
        kind
        for segment in document["segments"]
        for kind in optimised_types(tmp_path / "out" / segment["file"], tmp_path)
    ]
    assert kinds.count("QLinearConv") == 2
    assert kinds.count("QLinearAdd") == 1
    assert "Conv" not in kinds


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_three_processors_run_a_quantised_mobilenet_as_one_session_does(form, tmp_path):
    path = quantise(build("mobilenet-v2"), tmp_path, form)
    plan = placed_plan(path, lambda v, count: (3 * v // count, 3 * v // count))
    folder = tmp_path / "out"
    folder.mkdir()
    document = asdict(write_session_folder(plan, path, folder))
    between = [channel["tensor"] for channel in document["channels"] if channel["producer"]]
    assert {document["tensors"][name]["dtype"] for name in between} == {"uint8"}
    feeds = [frame(document, number) for number in range(3)]
    lent = sorted(os.sched_getaffinity(0))
    opened = open_folder(folder)
    opened = opened.on_cores(
        {each.name: (lent[at % len(lent)],) for at, each in enumerate(opened.processors)}
    )
    for one, given in zip(Executor(opened).run(feeds), feeds, strict=True):
        for name, wanted in run_whole(path, given, list(one)).items():
            np.testing.assert_array_equal(one[name], wanted)
