"""What the final evaluation adds to separable costs."""

import pytest

from benchmarks.whole_runs import graph_of
from parapipe.cost.cost_table import build_cost_table
from parapipe.pipeline.assignment import Assignment
from parapipe.pipeline.evaluate import evaluate
from parapipe.platform.load import load_platform

A311D = load_platform("amlogic-a311d")
GRAPH = graph_of("MobileNet-v1")
COUNT = len(GRAPH.operators)
HALF = COUNT // 2


def with_evaluation(**values):
    return A311D.model_copy(update={"evaluation": A311D.evaluation.model_copy(update=values)})


def evaluated(platform=A311D, blocks=None):
    costs = build_cost_table(GRAPH, A311D)
    processors = tuple(0 if v < HALF else 2 for v in range(COUNT))
    stages = (tuple(range(HALF)), tuple(range(HALF, COUNT)))
    return evaluate(GRAPH, platform, costs, Assignment(processors, stages), blocks=blocks)


def test_a_hand_over_between_measured_blocks_counts_by_its_share():
    blocks = [int(v >= HALF) for v in range(COUNT)]
    whole = evaluated().latency_s
    none = evaluated(with_evaluation(hand_over_share=0.0), blocks).latency_s
    half = evaluated(with_evaluation(hand_over_share=0.5), blocks).latency_s
    assert evaluated(with_evaluation(hand_over_share=0.0)).latency_s == whole
    assert none < half < whole
    assert half == pytest.approx((none + whole) / 2)


def test_contention_lengthens_the_period_and_not_the_latency():
    calm, crowded = evaluated(), evaluated(with_evaluation(contention=0.5))
    assert crowded.latency_s == calm.latency_s
    assert crowded.period_s > calm.period_s
    for stage, free in zip(crowded.stages, calm.stages, strict=True):
        assert stage.contended_time_s > free.contended_time_s == free.time_s


def test_energies_add_up():
    found = evaluated()
    dynamic_j = sum(stage.dynamic_energy_j for stage in found.stages)
    static_w = [A311D.processors[p].static_power_w for p in (0, 2)]
    assert found.energy_j == pytest.approx(dynamic_j + found.period_s * sum(static_w))
    in_turn = sum(s.time_s * w for s, w in zip(found.stages, static_w, strict=True))
    assert found.sequential_energy_j == pytest.approx(dynamic_j + in_turn)
    shares = found.coverage.overall.operators
    assert shares.measured + shares.fitted + shares.nominal == pytest.approx(1)
