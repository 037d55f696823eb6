"""Networks that repeat a block: their mapping problems are equal, so that few are solved."""

from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.partition import partition
from parapipe.pipeline.problems import requests
from parapipe.platform.load import load_platform
from parapipe.zoo.inception_resnet_v2 import build


def test_forty_blocks_of_three_kinds_need_a_quarter_of_the_problems_solved() -> None:
    graph = import_proto(build(weightless=True), source=ModelSource("net", ""))
    costs = build_cost_table(graph, load_platform("amlogic-a311d"))
    problems = [request.problem for request in requests(graph, partition(graph), costs)]
    assert len(set(problems)) < len(problems) / 4
