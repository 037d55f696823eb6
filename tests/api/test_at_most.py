"""Every verb that reads a model takes `at_most`."""

import json
from inspect import isfunction, signature

import onnx
import pytest

import parapipe
from parapipe.errors import ModelError, SplitError
from tests.cases.small_models import parsed

BOARD = "amlogic-a311d"
MODEL = """g (float[1,64,64,64] x, int64[1] k, float[64,64,3,3] w)
    => (float[1,64,62,n] highest, int64[1,64,62,n] places) {
    y = Conv(x, w)
    z = Relu(y)
    highest, places = TopK(z, k)
}"""
WORDS = "at_most"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "places.onnx"
    onnx.save(parsed(MODEL), path)
    return path


def places(graph):
    return graph.tensors["places"].shape


def told(call):
    """Return what a verb makes with `at_most`, once it has refused to do without."""
    with pytest.raises(ModelError, match=WORDS):
        call()
    return call(at_most=9)


def test_evaluate(model, tmp_path):
    file = tmp_path / "assignment.json"
    graph = parapipe.load_model(model, at_most=9, note=lambda _: None)
    names = {each.name: "big" for each in graph.operators}
    file.write_text(json.dumps({"schema": "parapipe/assignment/1", "operators": names}))
    document = told(lambda **sizes: parapipe.evaluate(
        model, BOARD, assignment=file, note=lambda _: None, **sizes
    ))  # fmt: skip
    assert sum(each.operators for each in document.stages) == len(names)


def test_split_writes_a_model_that_needs_it_no_more(model, tmp_path):
    out = tmp_path / "split.onnx"
    told(lambda **sizes: parapipe.split(
        model, out, parts=["Conv:channels=2"], note=lambda _: None, **sizes
    ))  # fmt: skip
    assert places(parapipe.load_model(out, note=lambda _: None)) == (1, 64, 62, 9)


def test_map_splits_operators_of_such_a_model(model):
    front = told(lambda **sizes: parapipe.map(
        model, BOARD, split="auto", interleave="none", cache=False, note=lambda _: None, **sizes
    ))  # fmt: skip
    assert any(each.split for each in front)


def test_what_depends_on_values_is_not_cut_itself(model, tmp_path):
    with pytest.raises(SplitError, match="how long 'highest' is depends on values"):
        parapipe.split(
            model, tmp_path / "split.onnx", parts=["TopK:channels=2"], at_most=9,
            note=lambda _: None,
        )  # fmt: skip


def test_a_bundle_to_profile_on_a_board(model, tmp_path):
    told(lambda **sizes: parapipe.write_profile_bundle(
        model, BOARD, tmp_path / "bundle", parts=True, **sizes
    ))  # fmt: skip
    assert list((tmp_path / "bundle").iterdir())


def test_whoever_takes_dimensions_takes_it():
    verbs = [getattr(parapipe, name) for name in parapipe.__all__]
    taking = [each for each in verbs if isfunction(each) and "dims" in signature(each).parameters]
    assert len(taking) > 8
    assert all("at_most" in signature(each).parameters for each in taking)
