"""Networks that were measured as a whole are recognised, and take their blocks' times."""

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.coverage import coverage_of
from parapipe.cost.measured_network import (
    costs_as_run,
    costs_as_run_elsewhere,
    measured_networks,
    networks_of,
    recognise,
)
from parapipe.cost.measured_rows import read_rows, rows_behind
from parapipe.cost.operating_points import settings
from parapipe.cost.profile import Measurement, read_profile, write_profile
from parapipe.cost.signature import Signature
from parapipe.errors import CostError
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.platform.describe import as_dict
from parapipe.platform.load import load_platform
from parapipe.platform.platform import Platform
from parapipe.zoo.registry import build
from tests.cases.divided import divisions
from tools.states_amlogic_a311d import STATES

MEASURED = Path(__file__).parents[2] / "profiles/amlogic-a311d"
A311D = load_platform("amlogic-a311d")
NETWORKS = {
    "alexnet": "AlexNet",
    "googlenet": "GoogLeNet",
    "inception-resnet-v2": "Inception-ResNet-v2",
    "inception-v3": "Inception-v3",
    "inception-v4": "Inception-v4",
    "mobilenet-v1": "MobileNet-v1",
    "resnet-50": "ResNet-50-v1",
}


OF_2024 = ("GoogLeNet", "Inception-v3", "Inception-v4", "Inception-ResNet-v2")


@cache
def graph_of(name):
    model = build(name, weightless=True)
    return import_proto(model, source=ModelSource(name, ""), granularity="onnx")


def block_times(network):
    found = defaultdict(dict)
    with (MEASURED / "measured/blocks.csv").open() as file:
        for row in csv.DictReader(file):
            if row["model"] == network and row["metric"] == "task":
                factor = STATES["amlogic-a311d"].factor(row["run"], row["processor"])
                found[row["processor"]][int(row["block"])] = float(row["time_ms"]) / 1e3 * factor
    return found


@pytest.mark.parametrize(("name", "network"), NETWORKS.items())
def test_each_block_of_a_measured_network_takes_what_was_measured_in_the_boards_state(
    name, network
):
    graph = graph_of(name)
    found = recognise(graph, measured_networks("amlogic-a311d"))
    assert found is not None
    assert found.network.name == network
    blocks = found.blocks_of(graph)
    assert list(blocks) == sorted(blocks)
    table = build_cost_table(graph, A311D, view="as-measured")
    costs = costs_as_run(table, graph, A311D, found)
    parts = {name: costs.parts(p) for p, name in enumerate(costs.processors)}
    shares = {name: coverage_of({name: each}).measured.time for name, each in parts.items()}
    assert shares == {"big": 0 if network in OF_2024 else 1, "little": 1, "gpu": 1}
    for p, processor in enumerate(costs.processors):
        total = defaultdict(float)
        for v, block in enumerate(blocks):
            total[block] += costs.time_s(v, p)
        assert total == pytest.approx(block_times(network)[processor], rel=1e-5)


def test_parts_of_a_cluster_take_what_was_measured_in_proportion():
    own = divisions((2, 2), share=0.7) | {"source": "transfers"}
    soc = as_dict(A311D)
    soc["processors"][0]["divisions"] = own
    graph = graph_of("alexnet")
    whole, divided = settings(graph, Platform.model_validate(soc), most=1).combinations
    found = recognise(graph, measured_networks("amlogic-a311d"))
    as_run = costs_as_run(whole.costs, graph, whole.platform, found)
    costs = costs_as_run_elsewhere(divided.costs, whole.costs, as_run, [0, 1, 2, 0, 0])
    for v in range(len(graph.operators)):
        assert costs.time_s(v, 2) == pytest.approx(as_run.time_s(v, 2))
        for p in (3, 4):
            assert costs.time_s(v, p) == pytest.approx(1.7 * as_run.time_s(v, 0))


def test_another_network_is_not_recognised():
    assert recognise(graph_of("squeezenet"), measured_networks("amlogic-a311d")) is None


def test_a_platform_without_measured_networks_has_none():
    assert measured_networks("bst-a1000") == ()


def test_a_table_with_mistakes_is_refused_with_its_lines(tmp_path):
    path = tmp_path / "x.rows.csv"
    head = "model,block,layer,type,kernel,strides,attributes,inputs,output,dtype,big_s"
    path.write_text(f"{head}\nnet,0,a,Relu,,,,8,8,float32,-1\nnet,x,b,Relu,,,,8,8,float32,1\n")
    with pytest.raises(CostError, match=r"x.rows.csv:2: big_s is '-1'.*x.rows.csv:3: block is 'x'"):
        read_rows(path, ["big"], complete=True)
    with pytest.raises(CostError, match="cannot be read"):
        read_rows(tmp_path / "none.rows.csv", ["big"], complete=True)


def test_an_empty_time_of_a_measured_network_is_refused_with_its_line(tmp_path):
    signature = Signature("Relu", "", "", "", "8", "8", "float32")
    path = tmp_path / "x.csv"
    write_profile(
        path, [Measurement(signature, "elementwise", 0, 64, "big", 1e9, 1e-3, 1, 0, "timed")]
    )
    head = "model,block,index,layer,type,kernel,strides,attributes,inputs,output,dtype,big_s"
    line = "net,0,0,a,Relu,,,,8,8,float32,"
    (tmp_path / "x.rows.csv").write_text(f"{head}\n{line}0.001\n{line}\n")
    profile = read_profile(path)
    with pytest.raises(CostError, match=r"x.rows.csv:3: big_s is ''"):
        list(networks_of(profile))
    assert [row.times_s for row in rows_behind(profile)] == [{"big": 0.001}, {}]
