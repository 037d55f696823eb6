"""Order of nodes, and which of them an output needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from parapipe.errors import ModelError
from parapipe.graph.order import needed_nodes, reads_of, sort_nodes
from tests.cases.small_models import floats, graph_of, imported, parsed, types_of, value


def test_a_sorted_file_keeps_its_order():
    text = """g (float[2] x) => (float[2] y) {
        b = Exp(x) a = Relu(x) d = Abs(a) c = Neg(b) y = Add(c, d)
    }"""
    assert types_of(graph_of(text)) == ["Exp", "Relu", "Abs", "Neg", "Add"]


@st.composite
def shuffled(draw):
    """A random DAG as nodes, and the same nodes in another order."""
    count = draw(st.integers(1, 12))
    nodes = []
    for index in range(count):
        names = ["x", *(f"t{before}" for before in range(index))]
        reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        nodes.append(helper.make_node("Sum", reads, [f"t{index}"]))
    return nodes, draw(st.permutations(nodes))


@given(shuffled())
def test_any_order_of_a_file_becomes_topological(case):
    nodes, permuted = case
    made = {"x"}
    found = sort_nodes("m", permuted, {"x"})
    assert sorted(node.output[0] for node in found) == sorted(node.output[0] for node in nodes)
    for node in found:
        assert made.issuperset(node.input)
        made.add(node.output[0])


@given(shuffled())
def test_a_topological_file_is_left_alone(case):
    nodes, _ = case
    assert sort_nodes("m", nodes, {"x"}) == nodes


def test_operators_that_wait_for_each_other_are_named():
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", [2])], [value("b", [2])])
    with pytest.raises(ModelError, match=r"wait for each other \(first, second\)"):
        imported(helper.make_model(graph))


def test_all_reads_of_nothing_are_named():
    text = "g (float[2] x) => (float[2] y) { a = Add(x, ghost) y = Mul(a, spirit) }"
    with pytest.raises(ModelError, match=r"'a' reads 'ghost', 'y' reads 'spirit'"):
        graph_of(text)


def test_a_tensor_that_is_made_twice_is_an_error():
    model = parsed("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node.append(helper.make_node("Abs", ["x"], ["y"]))
    with pytest.raises(ModelError, match=r"makes tensors twice \(y\)"):
        imported(model)


def test_an_output_that_nothing_makes_is_an_error():
    model = parsed("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.output.append(value("lost", [2]))
    with pytest.raises(ModelError, match=r"outputs that nothing makes \('lost'\)"):
        imported(model)


def test_operators_that_no_output_needs_are_dropped():
    text = """g (float[2] x) => (float[2] y) {
        a = Relu(x) y = Abs(a) b = Exp(a) c = Neg(b)
    }"""
    assert types_of(graph_of(text)) == ["Relu", "Abs"]


def test_a_subgraph_reads_what_it_takes_from_outside():
    model = parsed("""g (float[2] x, bool flag) => (float[2] y) {
        a = Relu(x)
        y = If (flag) <
            then_branch = t () => (float[2] p) { q = Abs(a) p = Add(q, w) },
            else_branch = e () => (float[2] r) { r = Identity(x) }
        >
    }""", w=floats(2))  # fmt: skip
    choice = model.graph.node[1]
    assert reads_of(choice) == ("flag", "a", "w", "x")
    assert needed_nodes(model.graph.node, ["y"]) == list(model.graph.node)
    graph = imported(model)
    assert graph.operators[1].inputs == ("flag", "a", "w", "x")
    assert graph.predecessors(1) == (0,)
    assert graph.operators[1].work.modelled
    # of the branch with more work: a read, q made and read, w read, p made; 2 numbers each
    assert graph.operators[1].work.read_bytes == 3 * 8
    assert graph.operators[1].work.written_bytes == 2 * 8
