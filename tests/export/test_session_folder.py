"""A folder for ONNX Runtime gives what the whole model gives."""

from dataclasses import asdict

import pytest

from parapipe import build_zoo
from parapipe.errors import ExportError
from parapipe.export.onnxruntime.folder import write_session_folder
from tests.cases.session_runs import assert_equal, frame, run_in_turn, run_whole
from tests.cases.small_models import parsed
from tests.cases.split_models import MODELS, placed_plan, random_plan, written


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_any_split_of_any_model_gives_what_the_whole_gives(name, external, seed, tmp_path) -> None:
    path = written(MODELS[name](), tmp_path, external=external)
    shapes = {"unused": (3, 7)} if name == "many_inputs" else None
    plan = random_plan(path, seed, granularity=("fused", "onnx")[seed % 2], shapes=shapes)
    folder = tmp_path / "out"
    folder.mkdir()
    document = asdict(write_session_folder(plan, path, folder))
    feeds = frame(document)
    found = run_in_turn(folder, feeds)
    assert_equal(found, run_whole(path, feeds, list(found)))
    assert_equal(found, run_whole(folder / "network.onnx", feeds, list(found)))


KINDS = {
    "sequential": lambda v, count: (0, 0),
    "pipe-only": lambda v, count: (3 * v // count,) * 2,
    "para-only": lambda v, count: (0, v % 3),
    "hybrid": lambda v, count: (2 * v // count, (0, 1 + v % 2)[2 * v // count]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", ["squeezenet", "mobilenet-v2"])
def test_a_network_of_each_kind_of_configuration_gives_the_same_results(
    network, kind, tmp_path
) -> None:
    path = tmp_path / "model.onnx"
    build_zoo(network, path)
    plan = placed_plan(path, KINDS[kind])
    assert len(plan.processors) == {"sequential": 1}.get(kind, 3)
    folder = tmp_path / "out"
    folder.mkdir()
    document = asdict(write_session_folder(plan, path, folder))
    for seed in (0, 1):
        feeds = frame(document, seed)
        found = run_in_turn(folder, feeds)
        assert_equal(found, run_whole(path, feeds, list(found)))


def test_a_type_without_arrays_stays_within_a_segment(tmp_path) -> None:
    text = """
      net (float[2, 4] x) => (float[2, 4] y) {
        a = Cast <to = 16> (x)
        y = Cast <to = 1> (a)
      }
    """
    path = written(parsed(text), tmp_path)
    folder = tmp_path / "out"
    folder.mkdir()
    apart = placed_plan(path, lambda v, _: (0, v % 2))
    with pytest.raises(ExportError, match=r"\('a' \(bfloat16\)\)") as raised:
        write_session_folder(apart, path, folder)
    assert raised.value.operators == ("a", "y")
    assert list(folder.iterdir()) == []
    together = placed_plan(path, lambda _v, _count: (0, 0))
    document = asdict(write_session_folder(together, path, folder))
    feeds = frame(document)
    found = run_in_turn(folder, feeds)
    assert_equal(found, run_whole(path, feeds, ["y"]))
