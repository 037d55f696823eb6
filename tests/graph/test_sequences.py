"""Lists of tensors: lengths that follow from the graph, and what is taken out."""

import pytest

from parapipe.errors import ModelError
from parapipe.graph.operator_graph import size_in_bytes
from tests.cases.small_models import graph_of


def at(model):
    return graph_of(model).tensors


@pytest.mark.parametrize(
    ("split", "shape"),
    [
        ("SplitToSequence(x)", (1, 4)),
        ("SplitToSequence<keepdims = 0>(x)", (4,)),
        ("SplitToSequence<axis = 1>(x)", (6, 1)),
        ("SplitToSequence<axis = -1>(x, two)", (6, 2)),
        ("SplitToSequence(x, parts)", (5, 4)),
    ],
)
def test_an_element_of_a_split_has_the_shape_of_its_part(split, shape):
    tensors = at(
        "g (float[6,4] x) => (y) {"
        "two = Constant<value_int = 2>() parts = Constant<value_ints = [1, 5]>()"
        f"one = Constant<value_int = 1>() s = {split} y = SequenceAt(s, one) }}"
    )
    assert tensors["y"].shape == shape
    assert tensors["s"].size_bytes == 6 * 4 * 4
    assert tensors["s"].dtype == "sequence(float32)"


def test_a_sequence_has_the_bytes_of_its_elements():
    tensors = at(
        "g (float[2,3] a, float[5] b) => (z) { s = SequenceConstruct(a, b)"
        "zero = Constant<value_int = 0>() e = SequenceErase(s, zero)"
        "i = SequenceInsert(e, a) z = SequenceAt(i, zero) }"
    )
    assert tensors["s"].shape == (11,)
    assert tensors["e"].shape == (5,)
    assert tensors["i"].size_bytes == 44
    assert tensors["z"].shape == (5,)


@pytest.mark.parametrize(
    ("axis", "sizes", "shape"),
    [(0, "2,3 5,3", (7, 3)), (-2, "2,3 5,3", (7, 3)), (1, "2,3 2,4", (2, 7))],
)
def test_a_sequence_is_joined_to_a_tensor(axis, sizes, shape):
    a, b = sizes.split()
    text = (
        f"g (float[{a}] a, float[{b}] b) => (y) {{ s = SequenceConstruct(a, b)"
        f" y = ConcatFromSequence<axis = {axis}>(s) }}"
    )
    assert at(text)["y"].shape == shape


def test_equal_elements_are_stacked_along_a_new_axis():
    text = (
        "g (float[2,3] a, float[2,3] b) => (y) { s = SequenceConstruct(a, b)"
        " y = ConcatFromSequence<axis = 1, new_axis = 1>(s) }"
    )
    assert at(text)["y"].shape == (2, 2, 3)


def test_a_sequence_of_unknown_length_says_so():
    text = (
        "g (float[6,4] x, int64 n) => (y) { s = SplitToSequence(x, n)"
        " zero = Constant<value_int = 0>() y = SequenceAt(s, zero) }"
    )
    with pytest.raises(ModelError, match="makes a sequence whose length follows from no shape"):
        graph_of(text)


def test_bytes_are_whole_and_of_known_types_only():
    assert size_in_bytes((3,), "int2") == 0
    assert size_in_bytes((5,), "float4") == 2
    assert size_in_bytes((5,), "optional(float16)") == 10
    assert size_in_bytes((10**400,), "float32") == 4 * 10**400
    assert size_in_bytes((5,), "float33") is None
