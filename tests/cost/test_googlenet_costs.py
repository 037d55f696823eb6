"""All of GoogLeNet on one processor costs what the board took, in the state of the platform."""

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_model
from parapipe.platform.load import load_platform
from parapipe.zoo.registry import write
from tools.states_amlogic_a311d import BIG_SLOWER_IN_2025

MILLISECONDS = {"big": 113.9 * BIG_SLOWER_IN_2025, "gpu": 100.3, "little": 310.8}


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
        assert total_s * 1e3 == pytest.approx(milliseconds, rel=0.011)


def test_every_operator_is_measured_where_its_time_is_not_scaled(costs):
    coverage = costs.coverage()
    shares = coverage.processors
    assert shares["little"].measured == shares["gpu"].measured == 1
    assert shares["big"].fitted == 1 - shares["big"].measured
    assert shares["big"].measured < 0.1  # what ResNet-50 and others of 2025 have too
    assert coverage.unmodelled == ()


def test_as_the_board_was_in_2024_every_operator_is_measured_on_every_processor(path):
    graph = import_model(path)
    coverage = build_cost_table(graph, load_platform("amlogic-a311d-2024")).coverage()
    assert coverage.measured.operators == coverage.measured.time == 1


def test_a_time_says_how_it_was_got(path):
    graph = import_model(path, granularity="onnx")
    costs = build_cost_table(graph, load_platform("amlogic-a311d"))
    v = [operator.name for operator in graph.operators].index("conv2/3x3")
    for name, method, provenance in (
        ("big", "scaled", "fitted"),
        ("little", "timed", "measured"),
        ("gpu", "apportioned", "measured"),
    ):
        (part,) = costs.cost(v, costs.processors.index(name)).parts[:1]
        assert f"profile amlogic-a311d/armcl-f32, {method}, " in part.source
        assert part.provenance == provenance


def test_nothing_was_folded_so_both_views_agree(path, costs):
    graph = import_model(path, granularity="fused")
    platform = load_platform("amlogic-a311d")
    deployed, as_measured = (
        build_cost_table(graph, platform, view=view) for view in ("deployed", "as-measured")
    )
    assert deployed.entries == as_measured.entries
