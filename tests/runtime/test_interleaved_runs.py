"""ONNX Runtime on plans whose processors work on several frames: results are the model's."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.onnx_import import import_model
from parapipe.plan.verify import verify_plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from tests.cases.interleaved import interleaved, plan_of, random_document
from tests.cases.session_runs import assert_equal, frame, run_in_turn, session
from tests.cases.small_models import parsed
from tests.cases.split_models import MODELS, written

FRAMES = 25


def exported(document, path, place):
    plan = plan_of(document)
    verify_plan(plan)
    place.mkdir()
    return asdict(write_session_folder(plan, path, place))


def results_equal_the_models(document, path, place):
    told = exported(document, path, place)
    folder = open_folder(place)
    lent = sorted(os.sched_getaffinity(0))
    folder = folder.on_cores(
        {each.name: (lent[at % len(lent)],) for at, each in enumerate(folder.processors)}
    )
    frames = [frame(told, seed) for seed in range(FRAMES)]
    executor = Executor(folder)
    results = list(executor.run(frames))
    assert len(results) == FRAMES
    whole = session(path)
    names = [each["tensor"] for each in told["outputs"]]
    for feeds, found in zip(frames, results, strict=True):
        known = {each.name: feeds.get(each.name) for each in whole.get_inputs()}
        given = {
            name: np.zeros((3, 7), np.float32) if array is None else array
            for name, array in known.items()
        }
        assert_equal(found, dict(zip(names, whole.run(names, given), strict=True)))
    return told, executor


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_any_interleaving_of_any_model_gives_what_one_session_gives(name, seed, tmp_path):
    path = written(MODELS[name](), tmp_path)
    shapes = {"unused": (3, 7)} if name == "many_inputs" else None
    document = random_document(import_model(path, shapes=shapes), seed)
    if document is None:
        return  # one processor took all
    told, _ = results_equal_the_models(document, path, tmp_path / "out")
    in_turn = run_in_turn(tmp_path / "out", frame(told))
    whole = session(path)
    assert set(in_turn) <= {each.name for each in whole.get_outputs()}


def three(tmp_path):
    """Five operators; three frames are under way on big, and d runs over the end of the period."""
    model = parsed(
        """
        net (float[2, 3] x) => (float[2, 3] e) {
          a = Relu (x)
          b = Sigmoid (a)
          c = Tanh (b)
          d = Add (c, a)
          e = Mul (d, b)
        }
        """
    )
    path = written(model, tmp_path)
    orders = {
        "big": [("a", 0.0, 1.0, 0), ("c", 1.0, 2.0, 1), ("e", 2.0, 3.0, 2)],
        "little": [("b", 1.0, 2.0, 0), ("d", 2.5, 3.5, 1)],
    }
    return interleaved(import_model(path, granularity="onnx"), [orders], 3.0), path


def test_a_processor_takes_turns_on_three_frames(tmp_path):
    document, path = three(tmp_path)
    _, executor = results_equal_the_models(document, path, tmp_path / "out")
    big = [(each.name, each.frame) for each in executor.record.spans if each.resource == "big"]
    first = [segment.id for segment in executor.folder.segments if segment.processor == "big"]
    assert big[6:9] == [(first[0], 3), (first[1], 2), (first[2], 1)]


def test_the_exported_folder_runs_by_itself(tmp_path):
    document, path = three(tmp_path)
    exported(document, path, tmp_path / "out")
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, tmp_path / "out" / "run.py", "--frames", "10", "--json",
         "--saturate", f"--cores=big={core}", f"--cores=little={core}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["frames"] == 10
