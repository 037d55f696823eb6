"""Rows of a compiler and the nodes that they stand for."""

from __future__ import annotations

import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from parapipe.compilers.nodes import assign_nodes, node_types
from parapipe.compilers.prepare import prepare
from tests.cases.compiler_models import gelu, left_to_the_cpu, two_inputs

SUFFIXES = ("", "_ConvAdd", "#2", "_2conv0", "-rs", "/fused", ":0", ".1")


def row(names, model):
    return [(each.nodes, each.matched) for each in assign_nodes(names, model)]


def test_a_row_with_a_nodes_name_is_that_node() -> None:
    assert row(["conv", "lrn", "erf"], left_to_the_cpu()) == [
        (("conv",), "name"), (("lrn",), "name"), (("erf",), "name"),
    ]  # fmt: skip


def test_what_no_row_names_joins_the_row_before() -> None:
    assert row(["conv"], left_to_the_cpu()) == [(("conv", "lrn", "erf"), "group")]


def test_what_stands_before_all_rows_joins_the_row_that_reads_it() -> None:
    assert row(["erf"], left_to_the_cpu()) == [(("conv", "lrn", "erf"), "group")]


def test_a_suffix_of_the_tool_is_left_out() -> None:
    names = ["conv_ConvAdd", "lrn#2", "erf"]
    assert [each for _, each in row(names, left_to_the_cpu())] == ["suffix", "suffix", "name"]


def test_the_longest_name_wins() -> None:
    model = left_to_the_cpu()
    model.graph.node[1].name = "conv_lrn"
    assert row(["conv_x", "conv_lrn_x"], model) == [
        (("conv",), "suffix"), (("conv_lrn", "erf"), "group"),
    ]  # fmt: skip


def test_a_second_row_of_a_node_is_part_of_it() -> None:
    rows = assign_nodes(["conv", "pool_2conv0", "pool_2conv1", "flatten_2rs"], two_inputs())
    assert [(each.nodes, each.part_of) for each in rows] == [
        (("sub", "conv"), ""), (("pool",), ""), ((), "pool"), (("flatten",), ""),
    ]  # fmt: skip


def test_a_row_that_names_a_tensor_is_part_of_what_makes_it_or_reads_it() -> None:
    rows = assign_nodes(["x_rs", "conv", "a_tp", "lrn", "other"], left_to_the_cpu())
    assert [each.part_of for each in rows] == ["conv", "", "conv", "", ""]
    assert [each.matched for each in rows] == ["unmatched", "name", "unmatched", "group",
                                               "unmatched"]  # fmt: skip


def test_nodes_that_were_written_for_an_older_opset_go_by_the_name_of_their_own() -> None:
    model = prepare(gelu(), "gelu.onnx")
    assert len(model.graph.node) == 6
    assert row(["matmul#2", "gelu/1"], model) == [(("matmul",), "suffix"), (("gelu",), "suffix")]
    assert row(["matmul#2"], model) == [(("matmul", "gelu"), "group")]
    assert node_types(model) == {"matmul": "MatMul", "gelu": "Gelu"}


@st.composite
def graphs(draw):
    """A graph with an input, and rows that name some of its nodes, with suffixes, and others."""
    count = draw(st.integers(1, 12))
    nodes = []
    for number in range(count):
        read = draw(st.lists(st.integers(-1, number - 1), min_size=1, max_size=3))
        inputs = [f"t{each}" if each >= 0 else "x" for each in read]
        nodes.append(helper.make_node("Sum", inputs, [f"t{number}"], f"n{number}"))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1,))
    graph = helper.make_graph(nodes, "random", [value], [])
    named = draw(st.lists(st.integers(0, count - 1), max_size=count + 2))
    names = [f"n{each}{draw(st.sampled_from(SUFFIXES))}" for each in named]
    others = draw(st.lists(st.sampled_from(("x_rs", "t0_tp", "new", "")), max_size=3))
    return helper.make_model(graph), draw(st.permutations([*names, *others]))


def connected(model: onnx.ModelProto, names: set[str]) -> set[str]:
    """Nodes before or behind which a named one lies, and these: by closure, in both directions."""
    makers = {output: node.name for node in model.graph.node for output in node.output}
    edges = {
        (makers[each], node.name)
        for node in model.graph.node
        for each in node.input
        if each in makers
    }
    behind = set(names)
    while more := {b for a, b in edges if a in behind} - behind:
        behind |= more
    while more := {a for a, b in edges if b in behind} - behind:
        behind |= more
    return behind


@given(graphs())
def test_each_node_is_in_exactly_one_row_if_a_row_lies_before_or_behind_it(case) -> None:
    model, names = case
    rows = assign_nodes(names, model)
    members = [node for each in rows for node in each.nodes]
    assert len(members) == len({*members})
    order = [node.name for node in model.graph.node]
    named = {name for name in order for each in names if _named(each, order) == name}
    assert {*members} == connected(model, named)
    for each in rows:
        assert [*each.nodes] == sorted(each.nodes, key=order.index)
        assert (each.matched == "unmatched") == (not each.nodes)
        assert not (each.nodes and each.part_of)
        assert not each.part_of or each.part_of in order


def _named(name: str, nodes: list[str]) -> str:
    """The node that a name begins with, by trying all."""
    fits = [
        node for node in nodes
        if name == node or (name.startswith(node) and name[len(node)] in "-_#./:")
    ]  # fmt: skip
    return max(fits, key=len, default="")


@given(graphs())
def test_a_named_node_is_in_the_first_row_that_names_it(case) -> None:
    model, names = case
    order = [node.name for node in model.graph.node]
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if node := _named(name, order):
            first.setdefault(node, number)
    rows = assign_nodes(names, model)
    assert all(node in rows[number].nodes for node, number in first.items())
