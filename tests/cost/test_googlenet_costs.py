"""All of GoogLeNet on one processor costs what the board measured."""

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_model
from parapipe.platform.load import load_platform
from parapipe.zoo.registry import write

MILLISECONDS = {"big": 113.9, "gpu": 100.3, "little": 310.8}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "googlenet.onnx"
    write("googlenet", path)
    return path


@pytest.fixture(scope="module", params=["onnx", "fused"])
def costs(request, path):
    graph = import_model(path, granularity=request.param)
    return build_cost_table(graph, load_platform("amlogic-a311d"))


def test_each_processor_takes_what_the_board_took_within_a_hundredth(costs):
    for name, milliseconds in MILLISECONDS.items():
        p = costs.processors.index(name)
        total_s = sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        assert total_s * 1e3 == pytest.approx(milliseconds, rel=0.01)


def test_every_operator_is_measured_on_every_processor(costs):
    coverage = costs.coverage()
    assert coverage.overall.operators.measured == coverage.overall.time.measured == 1
    assert coverage.overall.counted == 3 * 141
    assert coverage.unmodelled == ()


def test_times_on_the_gpu_say_that_they_were_apportioned(costs):
    for name, method in (("big", "timed"), ("gpu", "apportioned")):
        cost = costs.cost(0, costs.processors.index(name))
        assert f"profile amlogic-a311d/armcl-f32, {method}, " in cost.parts[0].source


def test_nothing_was_folded_so_both_views_agree(path, costs):
    graph = import_model(path, granularity="fused")
    platform = load_platform("amlogic-a311d")
    deployed, as_measured = (
        build_cost_table(graph, platform, view=view) for view in ("deployed", "as-measured")
    )
    assert deployed.entries == as_measured.entries
