"""Partition: the paper's subgraphs, units between cuts, and branches."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.partition_rules import breaches
from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph, Tensor, Work
from parapipe.graph.partition import partition
from parapipe.graph.subgraphs import articulations, parallelism, structure
from parapipe.zoo.registry import build
from tests.cases.algorithm_one import algorithm_one
from tests.cases.small_models import imported


def graph_of(edges, operators, macs=None, outputs=None, inputs=None):
    """Build a graph whose operator v makes tensor `t{v}`; operators without producers read `x`."""
    inputs = inputs or {}
    made = []
    for v in range(operators):
        reads = [f"t{u}" for u, w in edges if w == v] + list(inputs.get(v, ()))
        work = Work(1 if macs is None else macs[v], 4, 4)
        made.append(
            Operator(f"t{v}", f"op{v}", "", "Conv", {}, tuple(reads or ["x"]), (f"t{v}",), work, ())
        )
    sources = sorted({"x", *(name for names in inputs.values() for name in names)})
    read = {u for u, _ in edges}
    names = tuple(f"t{v}" for v in (outputs or [v for v in range(operators) if v not in read]))
    tensors = {name: Tensor(name, (1,), "float32") for name in sources}
    tensors |= {f"t{v}": Tensor(f"t{v}", (1,), "float32") for v in range(operators)}
    used = {name for op in made for name in op.inputs}
    return OperatorGraph(
        ModelSource("test", ""), "onnx", tuple(made), tensors, {},
        tuple(name for name in sources if name in used), names,
    )  # fmt: skip


def subgraphs_of(graph):
    return [subgraph.operators for subgraph in partition(graph).subgraphs]


DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]


def test_a_chain_is_one_linear_subgraph_with_a_unit_per_operator():
    found = partition(graph_of([(0, 1), (1, 2)], 3))
    assert [subgraph.operators for subgraph in found.subgraphs] == [(0, 1, 2)]
    assert [unit.operators for unit in found.units] == [(0,), (1,), (2,)]
    assert found.boundaries == ((), ("t0",), ("t1",), ())


def test_a_diamond_is_a_subgraph_between_two_linear_ones():
    found = partition(graph_of(DIAMOND, 5))
    assert [subgraph.operators for subgraph in found.subgraphs] == [(0,), (1, 2, 3), (4,)]
    assert [subgraph.parallelism for subgraph in found.subgraphs] == [1, 2, 1]
    assert found.units[1].structure == (((1,), (2,)), 3)


def test_an_operator_without_macs_joins_its_only_producer():
    graph = graph_of(DIAMOND, 5, macs=[1, 1, 1, 0, 0])
    assert subgraphs_of(graph) == [(0,), (1, 2, 3, 4)]
    assert [unit.operators for unit in partition(graph).units] == [(0,), (1, 2, 3), (4,)]


def test_nested_branches_are_found_inside_a_branch():
    # 0 forks to 1 and to 2; 2 forks to 3 and 4; all meet in 5 (as in Inception-v3's last blocks).
    edges = [(0, 1), (0, 2), (2, 3), (2, 4), (1, 5), (3, 5), (4, 5)]
    found = partition(graph_of(edges, 6))
    assert found.units[1].structure == (((1,), (2, ((3,), (4,)))), 5)
    assert found.subgraphs[1].parallelism == 3
    assert found.subgraphs[1].branches == 2


def test_a_side_input_tower_joins_the_earliest_subgraph_that_needs_it():
    # 0-2-3-4 starts at x; 1 reads y and feeds 3.
    edges = [(0, 2), (2, 3), (3, 4), (1, 3)]
    graph = graph_of(edges, 5, inputs={1: ["y"]})
    assert subgraphs_of(graph) == [(0, 2), (1, 3), (4,)]


def test_two_heads_are_cut_along_their_own_dominator_chains():
    edges = [(0, 1), (1, 2), (0, 3), (3, 4)]
    graph = graph_of(edges, 5)
    assert subgraphs_of(graph) == [(0, 1, 2), (3, 4)]


def test_a_branch_that_feeds_two_heads_unites_their_subgraphs():
    # 1 feeds both heads 2 and 3, and so does 0: neither head is cut off without the other.
    edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    assert subgraphs_of(graph_of(edges, 4)) == [(0,), (1, 2, 3)]


def test_an_entangled_part_is_listed_in_order():
    edges = [(0, 2), (0, 3), (1, 3), (2, 4), (3, 4)]
    successors = {v: [w for u, w in edges if u == v] for v in range(5)}
    assert structure(range(5), successors) == (0, 1, 2, 3, 4)


@st.composite
def dags(draw, single=True):
    n = draw(st.integers(2, 9))
    edges = draw(st.sets(st.sampled_from(list(combinations(range(n), 2))), max_size=16))
    if single:  # one source and one sink
        edges |= {(0, v) for v in range(1, n) if not any(w == v for _, w in edges)}
        edges |= {(v, n - 1) for v in range(n - 1) if not any(u == v for u, _ in edges)}
    return n, sorted(edges)


@given(dags())
def test_cuts_are_the_operators_that_every_path_crosses(case):
    n, edges = case
    dag = nx.DiGraph(edges)
    cuts = set()
    for v in range(n):
        rest = dag.copy()
        rest.remove_node(v)
        if v in (0, n - 1) or not nx.has_path(rest, 0, n - 1):
            cuts.add(v)
    found = partition(graph_of(edges, n))
    ends = {unit.operators[-1] for unit in found.units}
    assert ends == cuts


@given(dags(single=False), st.data())
def test_subgraphs_and_units_keep_every_rule_whatever_the_graph(case, data):
    n, edges = case
    macs = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    read = {u for u, _ in edges}
    extra = data.draw(st.sets(st.integers(0, n - 1), max_size=2))
    outputs = sorted({v for v in range(n) if v not in read} | extra)
    sides = data.draw(st.dictionaries(st.integers(0, n - 1), st.just(["y"]), max_size=2))
    graph = graph_of(edges, n, macs, outputs, sides)
    assert [*breaches(graph, partition(graph))] == []


@settings(max_examples=40)
@given(st.integers(34, 90), st.integers(1, 20), st.booleans(), st.randoms(use_true_random=False))
def test_oversize_and_merged_units_keep_every_rule_whatever_the_graph(n, reach, single, rng):
    edges = {(max(0, v - rng.randint(1, reach)), v) for v in range(1, n) for _ in range(2)}
    if single:
        edges |= {(v, n - 1) for v in range(n - 1) if not any(u == v for u, _ in edges)}
    graph = graph_of(sorted(edges), n, macs=[rng.randint(0, 3) for _ in range(n)])
    found = partition(graph)
    assert [*breaches(graph, found)] == []


@given(dags(), st.data())
def test_subgraphs_are_those_of_the_literal_algorithm_where_that_is_defined(case, data):
    n, edges = case
    macs = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    graph = graph_of(edges, n, macs)
    assert [set(operators) for operators in subgraphs_of(graph)] == algorithm_one(graph)


@pytest.mark.parametrize("name", ["googlenet", "inception-v3", "resnet-50", "squeezenet"])
def test_subgraphs_of_the_zoo_are_those_of_the_literal_algorithm(name):
    graph = imported(build(name, weightless=True))
    assert [set(operators) for operators in subgraphs_of(graph)] == algorithm_one(graph)


@settings(max_examples=50)
@given(dags(single=False))
def test_parallelism_is_the_largest_antichain_by_brute_force(case):
    n, edges = case
    closure = nx.transitive_closure_dag(nx.DiGraph(edges))
    closure.add_nodes_from(range(n))
    largest = max(
        size
        for size in range(1, n + 1)
        for chosen in combinations(range(n), size)
        if not any(closure.has_edge(u, v) for u, v in combinations(chosen, 2))
    )
    successors = {v: [w for u, w in edges if u == v] for v in range(n)}
    assert parallelism(range(n), successors) == largest


@given(dags(single=False))
def test_structure_holds_every_operator_once_in_an_order_that_edges_allow(case):
    n, edges = case
    successors = {v: [w for u, w in edges if u == v] for v in range(n)}

    def flat(series):
        for step in series:
            if isinstance(step, int):
                yield step
            else:
                for branch in step:
                    yield from flat(branch)

    order = list(flat(structure(range(n), successors)))
    assert sorted(order) == list(range(n))
    assert all(order.index(u) < order.index(v) for u, v in edges)
    assert articulations(range(n), successors)[-1] == n - 1


def test_operators_behind_a_hundred_inputs_are_all_in_one_subgraph_each():
    chain = [(v, v + 1) for v in range(200)]
    side = {v: (f"y{v}",) for v in range(1, 201, 2)}
    found = subgraphs_of(graph_of(chain, 201, inputs=side))
    assert [v for subgraph in found for v in subgraph] == list(range(201))
