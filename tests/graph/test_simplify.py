"""Operators that hand on their input unchanged."""

import numpy as np
import pytest

from tests.cases.small_models import floats, graph_of, imported, parsed, types_of

IMAGE = "float[1,2,4,4]"


def around(operator, **arrays):
    """Types that are left of an operator between an Exp and an Abs."""
    text = f"g ({IMAGE} x) => ({IMAGE} y) {{ a = Exp(x) b = {operator} y = Abs(b) }}"
    return types_of(graph_of(text, **arrays))


WITHOUT_EFFECT = [
    ("Identity(a)", {}),
    ("Dropout(a)", {}),
    ("Dropout(a, , off)", {"off": np.array(False)}),
    ("Cast<to = 1>(a)", {}),
    ("Reshape(a, same)", {"same": np.array([1, 2, 4, 4])}),
    ("Reshape(a, same)", {"same": np.array([0, 2, -1, 4])}),
    ("Expand(a, same)", {"same": np.array([1, 1, 4, 4])}),
    ("Tile(a, once)", {"once": np.array([1, 1, 1, 1])}),
    ("Pad(a, none)", {"none": np.zeros(8, np.int64)}),
    ("Slice(a, from, to)", {"from": np.array([0]), "to": np.array([9])}),
    ("Transpose<perm = [0, 1, 2, 3]>(a)", {}),
    ("Concat<axis = 1>(a)", {}),
    ("Sum(a)", {}),
    ("Resize(a, , ones)", {"ones": np.ones(4, np.float32)}),
]


@pytest.mark.parametrize(("operator", "arrays"), WITHOUT_EFFECT)
def test_an_operator_without_effect_is_removed(operator, arrays):
    assert around(operator, **arrays) == ["Exp", "Abs"]


WITH_EFFECT = [
    ("Dropout(a, , on)", {"on": np.array(True)}),
    ("Pad(a, shift)", {"shift": np.array([0, 0, 0, 1, 0, 0, 0, -1])}),
    (
        "Slice(a, from, to, axis, back)",
        {
            "from": np.array([3]),
            "to": np.array([-9]),
            "axis": np.array([2]),
            "back": np.array([-1]),
        },
    ),
    ("Transpose<perm = [0, 1, 3, 2]>(a)", {}),
    ("Sum(a, a)", {}),
]


@pytest.mark.parametrize(("operator", "arrays"), WITH_EFFECT)
def test_an_operator_that_keeps_the_shape_but_not_the_elements_stays(operator, arrays):
    assert len(around(operator, **arrays)) == 3


def test_a_dropout_whose_mask_is_read_stays():
    text = f"g ({IMAGE} x) => ({IMAGE} y, bool[1,2,4,4] mask) {{ y, mask = Dropout(x) }}"
    assert types_of(graph_of(text)) == ["Dropout"]


def test_the_name_of_a_graph_output_survives():
    graph = graph_of("g (float[2] x) => (float[2] y) { a = Exp(x) y = Identity(a) b = Abs(a) }")
    assert graph.outputs == ("y",)
    assert [(op.type, op.id, op.inputs, op.outputs) for op in graph.operators] == [
        ("Exp", "y", ("x",), ("y",))
    ]
    assert graph.tensors["y"].name == "y"
    assert set(graph.tensors) == {"x", "y"}


def test_other_readers_follow_a_renamed_output():
    text = """g (float[2] x) => (float[2] y, float[2] z) {
        a = Exp(x) b = Abs(a) i = Identity(a) y = Identity(i) c = Neg(i) z = Add(b, c)
    }"""
    graph = graph_of(text)
    assert [(op.type, op.inputs) for op in graph.operators] == [
        ("Exp", ("x",)), ("Abs", ("y",)), ("Neg", ("y",)), ("Add", ("b", "c"))
    ]  # fmt: skip


def test_an_identity_between_an_input_and_an_output_stays():
    assert types_of(graph_of("g (float[2] x) => (float[2] y) { y = Identity(x) }")) == ["Identity"]


def test_an_identity_between_two_outputs_stays():
    text = "g (float[2] x) => (float[2] a, float[2] y) { a = Exp(x) y = Identity(a) }"
    graph = graph_of(text)
    assert types_of(graph) == ["Exp", "Identity"]
    assert graph.outputs == ("a", "y")


def test_a_chain_of_identities_vanishes_altogether():
    text = """g (float[2] x) => (float[2] y) {
        a = Identity(x) b = Dropout(a) c = Identity(b) y = Exp(c)
    }"""
    (operator,) = graph_of(text).operators
    assert operator.inputs == ("x",)


def test_an_upsample_of_an_old_opset_by_one_is_removed():
    text = f"g ({IMAGE} x) => ({IMAGE} y) {{ a = Upsample(x, s) y = Exp(a) }}"
    model = parsed(text, opset=9, s=np.ones(4, np.float32))
    assert types_of(imported(model)) == ["Exp"]
    model = parsed(text, opset=9, s=np.array([1, 1, 2, 2], np.float32))
    assert types_of(imported(model)) == ["Upsample", "Exp"]


def test_an_identity_of_a_constant_is_a_constant():
    graph = graph_of(
        "g (float[2] x) => (float[2] y) { v = Identity(w) y = Add(x, v) }", w=floats(2)
    )
    assert graph.constants["v"].nodes == ("v",)
    assert types_of(graph) == ["Add"]


def test_of_two_outputs_that_hand_on_the_same_tensor_one_stays_an_operator():
    graph = graph_of(
        """g (float[4] x) => (float[4] y, float[4] z, float[4] n) {
            a = Exp(x) y = Identity(a) z = Identity(a) n = Neg(a)
        }"""
    )
    assert types_of(graph) == ["Exp", "Identity", "Neg"]
    assert [operator.inputs for operator in graph.operators] == [("x",), ("y",), ("y",)]
    assert graph.outputs == ("y", "z", "n")
