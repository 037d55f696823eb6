"""The partition of a network does not depend on the order of nodes in its file."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.graph.operator_graph import (
    ModelSource,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
    canonical_order,
)
from parapipe.graph.partition import partition
from parapipe.zoo.registry import build
from tests.cases.shuffled import scattered, shuffled
from tests.cases.small_models import imported


def described(graph):
    """Return subgraphs, units, merged units and boundaries by names."""
    found = partition(graph)

    def names(operators):
        return {graph.operators[v].id for v in operators}

    return (
        [names(each.operators) for each in found.subgraphs],
        [names(each.operators) for each in found.units],
        [(each.begin, each.end) for each in found.merged_units],
        found.boundaries,
    )


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(2, 60))
def test_a_partition_is_the_same_for_every_order_of_nodes(seed, operators):
    rng = random.Random(seed)
    graph = scattered(rng, operators)
    assert described(shuffled(graph, rng)) == described(graph)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(2, 30))
def test_the_canonical_order_is_topological_and_the_same_for_every_order_of_nodes(seed, operators):
    rng = random.Random(seed)
    graph = scattered(rng, operators)
    order = canonical_order(graph)
    assert sorted(order) == list(range(operators))
    place = {v: i for i, v in enumerate(order)}
    assert all(place[u] < place[v] for v in order for u in graph.predecessors(v))
    other = shuffled(graph, rng)
    again = [other.operators[v].id for v in canonical_order(other)]
    assert again == [graph.operators[v].id for v in order]


@pytest.mark.parametrize("name", ["unet", "yolo-pan"])
def test_oversize_units_of_the_zoo_are_cut_alike_for_every_order_of_nodes(name):
    graph = imported(build(name, weightless=True), granularity="fused")
    assert described(shuffled(graph, random.Random(0))) == described(graph)


def test_a_long_branch_comes_before_a_short_one_and_before_what_no_output_needs():
    def op(name, *reads):
        return Operator(name, name, "", "Conv", {}, reads, (name,), Work(1, 4, 4), ())

    operators = (op("unused", "x"), op("short", "x"), op("a", "x"), op("b", "a"))
    made = (*operators, op("join", "short", "b"))
    tensors = {name: Tensor(name, (1,), "float32") for name in ("x", *(each.id for each in made))}
    graph = OperatorGraph(ModelSource("", ""), "onnx", made, tensors, {}, ("x",), ("join",))
    names = [graph.operators[v].id for v in canonical_order(graph)]
    assert names == ["a", "b", "short", "join", "unused"]
