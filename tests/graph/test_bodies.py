"""Shapes of what If, Loop and Scan make."""

import numpy as np
import pytest

from parapipe.documents.inspection import inspect_graph
from parapipe.errors import ModelError
from tests.cases.small_models import floats, graph_of, types_of

LOOP = """g (float[2,3] x) => (s, all) {
    trips = Constant<value_int = 4>()
    s, all = Loop(trips, %s, x) <body = b (int64 i, bool c, float[2,3] a) => (bool k, d, e) {
        k = Identity(%s)
        d = Reshape(a, size)
        e = Neg(d)
    }>
}"""


def test_a_loop_of_known_length_stacks_what_it_makes():
    graph = graph_of(LOOP % ("yes", "yes"), size=np.array([2, 3]), yes=np.array(True))
    assert types_of(graph) == ["Loop"]
    assert graph.tensors["s"].shape == (2, 3)
    assert graph.tensors["all"].shape == (4, 2, 3)


def test_a_loop_that_its_body_may_stop_has_no_known_length():
    with pytest.raises(ModelError, match=r"'s' \(Loop: no shape follows"):
        graph_of(LOOP % ("yes", "c"), size=np.array([2, 3]), yes=np.array(True))


def test_a_loop_that_never_starts_stacks_nothing():
    graph = graph_of(
        LOOP % ("no", "yes"), size=np.array([2, 3]), yes=np.array(True), no=np.array(False)
    )
    assert graph.tensors["all"].shape == (0, 2, 3)


def test_a_state_that_changes_its_shape_has_none():
    with pytest.raises(ModelError, match=r"'s' \(Loop"):
        graph_of(LOOP % ("yes", "yes"), size=np.array([3, 2]), yes=np.array(True))


def test_a_scan_stacks_along_its_axes():
    graph = graph_of(
        """g (float[7] s, float[3,5,7] x) => (t, y) {
            t, y = Scan(s, x)
                <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1],
                 body = b (float[7] a, float[3,7] r) => (float[7] c, d) {
                    c = Neg(a)
                    d = Reshape(r, size)
                 }>
        }""",
        size=np.array([7, 3]),
    )
    assert graph.tensors["t"].shape == (7,)
    assert graph.tensors["y"].shape == (7, 3, 5)


@pytest.mark.parametrize(("other", "known"), [("size", True), ("flat", False)])
def test_an_if_has_the_shape_that_both_branches_make(other, known):
    text = f"""g (bool c, float[2,3] x) => (y) {{
        y = If(c) <
            then_branch = t () => (a) {{ a = Reshape(x, size) }},
            else_branch = e () => (b) {{ b = Reshape(x, {other}) }}
        >
    }}"""
    arrays = {"size": np.array([3, 2]), "flat": np.array([6])}
    if known:
        graph = graph_of(text, **arrays)
        assert graph.tensors["y"].shape == (3, 2)
        assert graph.operators[0].inputs[:2] == ("c", "x")
    else:
        with pytest.raises(ModelError, match=r"'y' \(If"):
            graph_of(text, **arrays)


def test_control_flow_is_one_operator_and_marked_as_opaque():
    graph = graph_of(LOOP % ("yes", "yes"), size=np.array([2, 3]), yes=np.array(True))
    (loop,) = graph.operators
    assert loop.opaque
    assert loop.work.modelled  # see test_body_work
    found = inspect_graph(graph, None)
    assert (found.opaque, found.unmodelled) == ({"Loop": 1}, {})


RATE = """g (int64 rate, float[1,n] x) => (y) {
    wide = Equal(rate, sixteen)
    y = If(wide) <
        then_branch = t () => (a) { a = MatMul(x, long)  },
        else_branch = e () => (b) { b = MatMul(x, short) }
    >
}"""
RATES = {"sixteen": np.array(16), "long": floats(16, 2), "short": floats(8, 3)}


@pytest.mark.parametrize(
    ("length", "shape", "taken"), [(16, (1, 2), "then_branch"), (8, (1, 3), "else_branch")]
)
def test_a_branch_that_cannot_run_on_these_shapes_is_never_taken(length, shape, taken):
    graph = graph_of(RATE, dims={"n": length}, **RATES)
    assert types_of(graph) == ["MatMul"]
    assert graph.inputs == ("x",)
    assert graph.tensors["y"].shape == shape
    (note,) = graph.notes
    assert note.startswith(f"'y' always takes its {taken}: the other one cannot run on inputs of")


def test_an_if_of_which_neither_branch_can_run_is_refused():
    with pytest.raises(ModelError, match=r"'y' \(If"):
        graph_of(RATE, dims={"n": 7}, **RATES)
