"""Peak activation memory: counted by hand, and by the definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parapipe.graph.lifetimes import Peak, peak_activations
from tests.cases.small_models import graph_of

FLOAT = 4


def test_a_chain_holds_what_an_operator_reads_and_makes():
    graph = graph_of(
        "g (float[1, 10] x) => (float[1, 10] y) { a = Relu(x)  b = Neg(a)  y = Abs(b) }"
    )
    assert peak_activations(graph, range(3)) == Peak(2 * 10 * FLOAT, 0)


def test_a_tensor_that_is_read_later_stays():
    graph = graph_of(
        "g (float[1, 10] x) => (float[1, 10] y)"
        " { a = Relu(x)  b = Neg(a)  c = Abs(b)  y = Add(a, c) }"
    )
    # a, b and c while Abs runs, and a, c and y while Add does: the first is told.
    assert peak_activations(graph, range(4)) == Peak(3 * 10 * FLOAT, 2)


def test_a_graph_output_stays_to_the_end():
    graph = graph_of(
        "g (float[1, 10] x) => (float[1, 10] a, float[1, 10] c)"
        " { a = Relu(x)  b = Neg(a)  c = Abs(b) }"
    )
    assert peak_activations(graph, range(3)) == Peak(3 * 10 * FLOAT, 2)


def test_the_order_counts():
    # Two branches, each of a tensor of 10 numbers that shrinks to one: side by side, both wait.
    graph = graph_of(
        "g (float[1, 10] x) => (float[1, 1] y) { a = Relu(x)"
        " b = Neg(a)  c = ReduceMax<axes = [1]>(b)"
        " d = Abs(a)  e = ReduceMax<axes = [1]>(d)  y = Add(c, e) }"
    )
    assert peak_activations(graph, (0, 1, 2, 3, 4, 5)) == Peak((10 + 10 + 1) * FLOAT, 2)
    assert peak_activations(graph, (0, 1, 3, 2, 4, 5)) == Peak(3 * 10 * FLOAT, 3)


@given(st.randoms(use_true_random=False), st.integers(2, 8))
def test_the_peak_is_the_most_that_the_definition_gives_at_any_step(rng, operators):
    lines, names = [], ["x"]
    for v in range(operators):
        lines.append(f"t{v} = Add({rng.choice(names)}, {rng.choice(names)})")
        names.append(f"t{v}")
    graph = graph_of(f"g (float[1, 5] x) => (float[1, 5] t{operators - 1}) {{ {' '.join(lines)} }}")
    count = len(graph.operators)
    sizes = []
    for step in range(count):
        there = 0
        for name in graph.tensors:
            made = graph.producer.get(name, 0)
            read = max(graph.consumers.get(name, ()), default=made)
            there += made <= step <= (count if name in graph.outputs else read)
        sizes.append(there * 5 * FLOAT)
    assert peak_activations(graph, range(count)) == Peak(max(sizes), sizes.index(max(sizes)))
