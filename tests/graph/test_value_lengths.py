"""Results whose length depends on values are as long as the user says at most, or can be."""

import pytest

from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_checked
from parapipe.graph.operator_graph import ModelSource
from tests.cases.small_models import parsed

DETECTOR = """g (float[1,5000,4] boxes, float[1,2,5000] scores) =>
    (int64[n,3] kept, float[m,4] found) {
    most = Constant<value_ints = [200]>()
    kept = NonMaxSuppression(boxes, scores, most)
    two = Constant<value_ints = [2]>()
    places = Gather<axis = 1>(kept, two)
    flat = Constant<value_ints = [-1]>()
    rows = Reshape(places, flat)
    picture = Squeeze(boxes)
    found = Gather<axis = 0>(picture, rows)
}"""
NON_ZERO = "g (float[4,5] x) => (int64[2,n] y) { y = NonZero(x) }"
COMPRESS = """g (float[4,5] x, bool[5] c) => (float[4,n] y) { y = Compress<axis = 1>(x, c) }"""
UNIQUE = "g (float[4,5] x) => (float[n] y, int64[n] i, int64[20] w) { y, i, w = Unique(x) }"
TOP_K = "g (float[4,50] x, int64[1] k) => (float[4,n] y, int64[4,n] i) { y, i = TopK(x, k) }"


def imported(text, at_most=None):
    source = ModelSource("test.onnx", "")
    return import_checked(parsed(text), source=source, granularity="onnx", at_most=at_most)


def test_what_follows_a_suppression_has_as_many_rows_as_boxes_at_most():
    graph = imported(DETECTOR, 300)
    assert graph.tensors["kept"].shape == (300, 3)
    assert graph.tensors["found"].shape == (300, 4)
    assert any("taken with 300 entries" in note for note in graph.notes)


def test_no_more_boxes_are_kept_than_classes_and_their_limit_allow():
    assert imported(DETECTOR, 1000).tensors["kept"].shape == (400, 3)


@pytest.mark.parametrize(
    ("text", "most", "shapes"),
    [
        (NON_ZERO, 7, {"y": (2, 7)}),
        (NON_ZERO, 100, {"y": (2, 20)}),
        (COMPRESS, 3, {"y": (4, 3)}),
        (COMPRESS, 9, {"y": (4, 5)}),
        (UNIQUE, 6, {"y": (6,), "i": (6,), "w": (20,)}),
        (TOP_K, 10, {"y": (4, 10), "i": (4, 10)}),
    ],
)
def test_results_are_as_long_as_said_but_no_longer_than_they_can_be(text, most, shapes):
    graph = imported(text, most)
    assert {name: graph.tensors[name].shape for name in shapes} == shapes


def test_the_error_says_how_to_say_it():
    with pytest.raises(ModelError, match="say how many entries there are at most, as in `at_most`"):
        imported(NON_ZERO)
    without = "g (float[4,5] x) => (float[4,5] y) { y = Relu(x) }"
    with pytest.raises(ModelError, match="no result whose length depends on values"):
        imported(without, 300)
