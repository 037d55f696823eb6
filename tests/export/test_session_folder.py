"""A folder for ONNX Runtime gives what the whole model gives."""

import pytest
from session_runs import assert_equal, frame, run_in_turn, run_whole
from split_models import MODELS, random_plan, written

from parapipe.export.onnxruntime.folder import write_session_folder


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_any_split_of_any_model_gives_what_the_whole_gives(name, external, seed, tmp_path) -> None:
    path = written(MODELS[name](), tmp_path, external=external)
    shapes = {"unused": (3, 7)} if name == "many_inputs" else None
    plan = random_plan(path, seed, granularity=("fused", "onnx")[seed % 2], shapes=shapes)
    folder = tmp_path / "out"
    folder.mkdir()
    document = write_session_folder(plan, path, folder).model_dump(by_alias=True)
    feeds = frame(document)
    found = run_in_turn(folder, feeds)
    assert_equal(found, run_whole(path, feeds, list(found)))
    assert_equal(found, run_whole(folder / "network.onnx", feeds, list(found)))
