"""The executor gives what one session on the whole model gives, frame by frame, in order."""

import os
from dataclasses import asdict

import numpy as np
import onnxruntime
import pytest

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from tests.cases.session_runs import assert_equal, frame, session
from tests.cases.split_models import MODELS, random_plan, written

FRAMES = 50
onnxruntime.set_default_logger_severity(4)


def whole_results(path, frames, names):
    opened = session(path)
    unused = {
        value.name: np.zeros([n if isinstance(n, int) else 1 for n in value.shape], np.float32)
        for value in opened.get_inputs()
        if value.name not in frames[0]
    }
    return [dict(zip(names, opened.run(names, each | unused), strict=True)) for each in frames]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("queue", [None, 2])
def test_50_frames_through_any_split_of_any_model(name, seed, queue, tmp_path):
    path = written(MODELS[name](), tmp_path)
    shapes = {"unused": (3, 7)} if name == "many_inputs" else None
    plan = random_plan(path, seed, shapes=shapes)
    place = tmp_path / "out"
    place.mkdir()
    document = asdict(write_session_folder(plan, path, place))
    frames = [frame(document, number) for number in range(FRAMES)]
    folder = open_folder(place)
    lent = sorted(os.sched_getaffinity(0))
    folder = folder.on_cores(
        {each.name: (lent[at % len(lent)],) for at, each in enumerate(folder.processors)}
    )
    found = list(Executor(folder, queue=queue).run(frames))
    assert len(found) == FRAMES
    for one, other in zip(found, whole_results(path, frames, list(found[0])), strict=True):
        assert_equal(one, other)
