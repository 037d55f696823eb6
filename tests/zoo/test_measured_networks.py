"""The zoo's networks that were measured on the A311D: what they must have in common with those."""

import csv
from functools import cache
from pathlib import Path

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.coverage import coverage_of
from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.rewrites import fuse
from parapipe.platform.load import load_platform
from parapipe.zoo.registry import build
from tools.states_amlogic_a311d import STATES

# Each operator as the board ran it; profiles/SOURCES.md says where it comes from.
PROFILE = Path(__file__).parents[2] / "profiles/amlogic-a311d"
ROWS = PROFILE / "armcl-f32.rows.csv"
BLOCKS = PROFILE / "measured/blocks.csv"
NETWORKS = {
    "alexnet": "AlexNet",
    "googlenet": "GoogLeNet",
    "inception-resnet-v2": "Inception-ResNet-v2",
    "inception-v3": "Inception-v3",
    "inception-v4": "Inception-v4",
    "mobilenet-v1": "MobileNet-v1",
    "resnet-50": "ResNet-50-v1",
}
# Names that stand twice in a measured network: the right one of the wrong, and which is wrong.
TWICE = {
    "Inception-v4": {
        f"Mixed_7a/Branch_1/Conv2d_0a_1x1/{part}": (f"Mixed_7a/Branch_0/Conv2d_0a_1x1/{part}", 0)
        for part in ("Conv2D", "BatchNorm", "Relu")
    },
    "ResNet-50-v1": {
        f"block{block}/unit{unit}/bottleneck_v1/{wrong}": (
            f"block{block}/unit{unit}/bottleneck_v1/{right}",
            1,
        )
        for block in range(1, 5)
        for unit in range(1, 7)
        for wrong, right in (("conv1/Relu", "conv2/Relu"), ("conv2/BatchNorm", "conv3/BatchNorm"))
    },
}


@cache
def graph_of(name):
    model = build(name, weightless=True)
    return import_proto(model, source=ModelSource(name, ""), granularity="onnx")


@cache
def measured(network):
    """Name and signature of each measured operator."""
    with ROWS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == network]
    found = []
    seen = set()
    for row in rows:
        layer = row["layer"]
        right, place = TWICE.get(network, {}).get(layer, (layer, 0))
        again = layer in seen
        seen.add(layer)
        signature = Signature(**{key: row[key] for key in Signature.__dataclass_fields__})
        found.append((right if again == bool(place) else layer, signature))
    return found


def singles(graph):
    """All operators, those that were folded into others right behind them."""
    return [single for operator in graph.operators for single in (operator, *operator.folded)]


@pytest.mark.parametrize(("name", "network"), NETWORKS.items())
def test_names_shapes_and_order_are_those_of_the_measured_operators(name, network):
    graph = graph_of(name)
    found = [(operator.name, signature_of(operator, graph)) for operator in singles(graph)]
    # A Split is no work on the board, and a Flatten belongs to its Gemm.
    found = [(layer, signature) for layer, signature in found if signature.type != "Split"]
    wanted = [row for row in measured(network) if row[0] != "Logits/Flatten"]
    assert found == wanted


@pytest.mark.parametrize("view", ["deployed", "as-measured"])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_operator_is_measured_on_every_processor(name, view):
    graph = fuse(graph_of(name))
    costs = build_cost_table(graph, load_platform("amlogic-a311d-2024"), view=view)
    splits = {"alexnet": 3}.get(name, 0)
    for p, processor in enumerate(costs.processors):
        parts = [part for part in costs.parts(p) if not part.free_view]
        covered = coverage_of({processor: parts})
        fitted = round(covered.fitted.operators * len(parts))
        assert (fitted, covered.nominal.operators) == (splits, 0)
        assert covered.measured.time > 0.99


@pytest.mark.parametrize(("name", "network"), NETWORKS.items())
@pytest.mark.parametrize("state", STATES.values(), ids=list(STATES))
def test_each_processor_alone_takes_what_the_board_took_for_the_whole_network(state, name, network):
    with BLOCKS.open() as file:
        blocks = [row for row in csv.DictReader(file) if row["model"] == network]
    costs = build_cost_table(graph_of(name), load_platform(state.platform), view="as-measured")
    for p, processor in enumerate(costs.processors):
        board_s = sum(
            float(row["time_ms"]) / 1e3 * state.factor(row["run"], processor)
            for row in blocks
            if (row["processor"], row["metric"]) == (processor, "task")
        )
        alone_s = sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        # The farthest is ResNet-50 on big, for a reason that SOURCES.md tells.
        assert alone_s == pytest.approx(board_s, rel=0.02)
