"""The A1000's part of docs/paper.md: hand-overs by hand, Table I, and figures as computed."""

import pytest

from benchmarks import paper_a1000_page
from benchmarks import paper_published as published
from benchmarks.paper import PAGE
from benchmarks.paper_a1000 import (
    Row,
    change,
    changes_by_network,
    methods,
    priced,
    stages_line,
)
from benchmarks.paper_published import A1000_STAGES, Ratio
from benchmarks.stated_a1000 import RULES, network_of, stated_networks
from tools.stated_networks import StatedOperator

LINES = PAGE.read_text(encoding="utf-8").splitlines()
FORK = [  # a hands its result to b and c
    StatedOperator("fork", "a", "Conv", ("b", "c"), 9e-6, 2e-6, 1e-6, 1e-6),
    StatedOperator("fork", "b", "Relu", ("d",), 3e-6, 4e-6, 1e-6, 1e-6),
    StatedOperator("fork", "c", "Relu", ("d",), 5e-6, 6e-6, None, 1e-6),
    StatedOperator("fork", "d", "Concat", (), 7e-6, 8e-6, 1e-6, 1e-6),
]


@pytest.mark.parametrize(
    ("rule", "hand_overs_s"),
    [
        ("edge", {"a>b": 5e-6, "a>c": 7e-6, "b>d": 11e-6, "c>d": 13e-6}),
        ("tensor", {"a": 7e-6, "b": 11e-6, "c": 13e-6}),
        ("median", {"a": 137e-6, "b": 137e-6, "c": 137e-6}),
    ],
)
def test_a_hand_over_takes_what_is_stored_and_loaded_by_each_rule(rule, hand_overs_s):
    network = network_of(FORK, rule)
    for name, time_s in hand_overs_s.items():
        assert network.costs.transfer_s(name, 0, 1) == pytest.approx(time_s)
        assert network.costs.transfer_s(name, 1, 1) == 0.0
    made = {name for each in network.graph.operators for name in each.outputs}
    assert made == {*hand_overs_s, "d"}


def test_an_operator_without_a_time_on_the_npu_does_not_run_there():
    costs = network_of(FORK, "edge", dsps=4).costs
    assert costs.processors == ("npu", "dsp0", "dsp1", "dsp2", "dsp3")
    assert costs.unsupported(2, 0) is not None
    assert costs.time_s(2, 4) == 1e-6


@pytest.mark.parametrize(
    "network", ["GoogLeNet", "Inception-v3", "Inception-v4", "Inception-ResNet-v2"]
)
@pytest.mark.parametrize("rule", RULES)
def test_the_sources_networks_have_the_subgraphs_of_table_one(network, rule):
    paper = published.NETWORKS[published.A1000_NETWORKS[network]]
    subgraphs = network_of(stated_networks()[network], rule).parts.subgraphs
    assert len(subgraphs) == paper.subgraphs
    assert max(each.parallelism for each in subgraphs) == paper.parallelism


def test_googlenets_rows_on_the_page_are_what_mapping_it_gives():
    rows, _ = methods("GoogLeNet", RULES[0])
    for figure in ("latency", "throughput"):
        cells = paper_a1000_page.method_cells(rows, "GoogLeNet", figure)
        assert f"| {' | '.join(cells)} |" in LINES
    stages = {row.method: row.stages for row in rows}
    assert any(stages["hybrid-L"] in line for line in LINES)


def test_a_plan_of_the_paper_is_priced_stage_by_stage_or_not_at_all():
    assert priced("GoogLeNet", RULES[0], A1000_STAGES["GoogLeNet", "hybrid-L"]) is None
    plan = priced("GoogLeNet", RULES[0], A1000_STAGES["GoogLeNet", "hybrid-T"])
    assert plan.stages == "npu [1–9] │ dsp0+dsp1 [10–11]"
    assert plan.period_s < plan.latency_s < 2 * plan.period_s
    assert any(plan.stages in line for line in LINES)


def test_changes_are_against_the_better_base_and_means_over_networks():
    rows = [
        Row("a", "edge", "HEFT", "", 2.0, 2.0),
        Row("a", "edge", "CPOP", "", 4.0, 4.0),
        Row("a", "edge", "para-only", "", 1.0, 1.0),
        Row("b", "edge", "HEFT", "", 3.0, 3.0),
        Row("b", "edge", "CPOP", "", 2.0, 2.0),
        Row("b", "edge", "para-only", "", 2.0, 1.0),
        Row("b", "edge", "pipe-only", "", 8.0, 4.0),
    ]
    ratio = Ratio("para-only", "HEFT & CPOP", "latency", 0.0)
    assert changes_by_network(rows, ratio) == {"a": -0.5, "b": 0.0}
    assert change(rows, ratio) == -0.25
    assert change(rows, Ratio("para-only", "HEFT & CPOP", "throughput", 0.0)) == 1.0
    assert change(rows, Ratio("pipe-only", "para-only", "latency", 0.0, "b")) == 3.0
    assert change(rows, Ratio("pipe-only", "para-only", "throughput", 0.0, "b")) == -0.75
    assert change(rows, Ratio("pipe-only", "para-only", "latency", 0.0, "a")) is None


def test_stages_are_written_with_their_subgraphs():
    assert stages_line([(("npu",), 9), (("dsp0", "dsp1"), 10)]) == "npu [1–9] │ dsp0+dsp1 [10]"
