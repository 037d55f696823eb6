"""Second-level cuts: where they fall, and what they leave to run side by side."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.graph.cuts import MOST_LIVE, OVERSIZE, lossless_cuts
from parapipe.graph.partition import partition
from parapipe.zoo.registry import build
from tests.cases import wide_networks as networks
from tests.cases.small_models import imported


def singles(graph, operators):
    return sum(len(graph.operators[v].singles) for v in operators)


def cut_behind(graph, found):
    """Return the last operator of each unit, by name."""
    return [graph.operators[unit.operators[-1]].name for unit in found.units]


@pytest.fixture(scope="module")
def unet():
    graph = imported(networks.unet(), granularity="fused")
    return graph, partition(graph)


def test_a_u_net_is_three_subgraphs_and_is_cut_beside_its_skips(unet):
    graph, found = unet
    assert [len(subgraph.operators) for subgraph in found.subgraphs] == [2, 30, 3]
    assert max(map(len, found.boundaries)) == MOST_LIVE
    # Below the second pooling a third skip is live beside what is passed on: four tensors.
    assert "down2/pool" not in cut_behind(graph, found)
    assert "down1/pool" in cut_behind(graph, found)


def test_a_boundary_of_a_u_net_names_all_its_live_tensors(unet):
    graph, found = unet
    before = dict(zip(cut_behind(graph, found), found.boundaries[1:], strict=True))
    assert before["down1/pool"] == ("down0/b/relu", "down1/b/relu", "down1/pool")


def test_a_chain_with_skips_loses_nothing_by_cuts_and_has_no_alternative(unet):
    assert unet[1].merged_units == ()


@pytest.mark.parametrize("granularity", ["onnx", "fused"])
def test_the_neck_of_a_pan_is_cut_until_no_unit_is_oversize(granularity):
    graph = imported(networks.pan(joined=True), granularity=granularity)
    found = partition(graph)
    assert max(singles(graph, unit.operators) for unit in found.units) <= OVERSIZE
    assert max(map(len, found.boundaries)) <= MOST_LIVE
    assert len(found.subgraphs) == 6


def test_parts_that_could_run_side_by_side_stay_whole_as_an_alternative():
    graph = imported(networks.pan(joined=True), granularity="fused")
    found = partition(graph)
    (merged,) = found.merged_units
    inside = {graph.operators[v].name for v in merged.unit.operators}
    assert {"head0/conv", "down4", "head1/conv", "down5"} <= inside
    parts = found.units[merged.begin : merged.end]
    assert merged.unit.operators == tuple(v for unit in parts for v in unit.operators)


def test_two_towers_that_follow_each_other_in_the_file_may_run_side_by_side():
    graph = imported(networks.towers(), granularity="fused")
    found = partition(graph)
    (merged,) = found.merged_units
    towers, join = merged.unit.structure
    assert [len(branch) for branch in towers] == [6, 6]
    assert graph.operators[join].name == "join"


@pytest.mark.parametrize("last", [True, False])
def test_ten_heads_keep_two_tensors_alive_wherever_the_file_lists_them(last):
    found = partition(imported(networks.many_heads(last=last), granularity="fused"))
    assert max(map(len, found.boundaries)) == 2


def test_a_dense_block_as_exporters_write_it_is_cut_where_it_begins():
    graph = imported(networks.densenet(blocks=(6, 12)), granularity="fused")
    found = partition(graph)
    names = cut_behind(graph, found)
    assert "block0/1/three" in names  # three tensors are live: the block's input and two layers
    assert "block0/2/three" not in names
    assert found.merged_units == ()


def test_a_unit_of_32_single_operators_is_not_oversize_and_one_of_33_is():
    def units(operators):
        # A chain beside a skip from its first operator to its last.
        net = networks.Emitter("chain", {"x": (1, 4, 4, 4)}, weightless=True)
        first = x = net.conv("x", "first", 4, 1)
        for i in range(operators - 1):
            x = net.conv(x, f"conv{i}", 4, 1)
        return len(partition(imported(net.model([net.add(first, x, "sum")]))).units)

    assert units(OVERSIZE) == 2  # the first operator, and the others with the sum
    assert units(OVERSIZE + 1) > 2


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_cut_loses_nothing_where_all_heavy_operators_wait(data):
    graph = imported(networks.many_heads(4, 8, 16), granularity="onnx")
    count = len(graph.operators)
    heavy = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    waits = [set() for _ in range(count)]
    for v in range(count):
        for u in graph.predecessors(v):
            waits[v] |= waits[u] | {u}
    for i, free in enumerate(lossless_cuts(graph, range(count), heavy)):
        before = {v for v in range(i + 1) if heavy[v]}
        assert free == all(before <= waits[v] for v in range(i + 1, count) if heavy[v])


def test_a_decoder_that_no_cut_makes_small_is_left_whole_between_single_tensors():
    graph = imported(build("petr", weightless=True), granularity="fused")
    found = partition(graph)
    largest = max(range(len(found.units)), key=lambda i: len(found.units[i].operators))
    assert len(found.units[largest].operators) > 100
    assert [len(found.boundaries[i]) for i in (largest, largest + 1)] == [1, 1]
