"""What the final evaluation adds to separable costs."""

import pytest

from benchmarks.whole_runs import graph_of
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.coverage import coverage_of
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate, priced_parts
from parapipe.platform.load import load_platform
from tests.cases.coverage import assert_shares_add_up_to_one

A311D = load_platform("amlogic-a311d")
GRAPH = graph_of("MobileNet-v1")
COUNT = len(GRAPH.operators)
HALF = COUNT // 2


def with_evaluation(**values):
    return A311D.model_copy(update={"evaluation": A311D.evaluation.model_copy(update=values)})


def priced(costs, assignment, platform=A311D, blocks=None):
    mapping = mapping_of(GRAPH, platform, costs, assignment, blocks=blocks)
    return evaluate(mapping, GRAPH, costs)


def evaluated(platform=A311D, blocks=None):
    costs = build_cost_table(GRAPH, platform)
    processors = tuple(0 if v < HALF else 2 for v in range(COUNT))
    stages = (tuple(range(HALF)), tuple(range(HALF, COUNT)))
    return priced(costs, Assignment(processors, stages), platform, blocks)


def test_a_hand_over_between_measured_blocks_counts_by_its_share():
    blocks = [int(v >= HALF) for v in range(COUNT)]
    whole = evaluated().latency_s
    none = evaluated(with_evaluation(hand_over_share=0.0), blocks).latency_s
    half = evaluated(with_evaluation(hand_over_share=0.5), blocks).latency_s
    assert evaluated(with_evaluation(hand_over_share=0.0)).latency_s == whole
    assert none < half < whole
    assert half == pytest.approx((none + whole) / 2)


def test_contention_lengthens_period_and_latency_and_no_stage_by_more_than_its_share():
    calm, crowded = evaluated(), evaluated(with_evaluation(contention=0.5))
    assert calm.latency_s < crowded.latency_s < calm.latency_s * 1.5
    assert calm.period_s < crowded.period_s < calm.period_s * 1.5
    for stage, free in zip(crowded.stages, calm.stages, strict=True):
        assert stage.contended_time_s > free.contended_time_s == free.time_s


def test_energies_add_up():
    found = evaluated()
    dynamic_j = sum(stage.dynamic_energy_j for stage in found.stages)
    static_w = [A311D.processors[p].static_power_w for p in (0, 2)]
    assert found.energy_j == pytest.approx(dynamic_j + found.period_s * sum(static_w))
    in_turn = sum(s.time_s * w for s, w in zip(found.stages, static_w, strict=True))
    assert found.sequential_energy_j == pytest.approx(dynamic_j + in_turn)


def test_shares_of_the_prices_of_a_mapping_add_up_to_one():
    costs = build_cost_table(GRAPH, A311D)
    everywhere_on_big = Assignment((0,) * COUNT, (tuple(range(COUNT)),))
    parts = priced_parts(mapping_of(GRAPH, A311D, costs, everywhere_on_big), costs)
    assert_shares_add_up_to_one(coverage_of(parts))


def test_stages_of_single_processors_sustain_the_longest_work_since_transfers_are_hidden():
    found = evaluated()
    works_s = [stage.work_s for stage in found.stages]
    assert found.sustained_period_s == pytest.approx(max(works_s), rel=1e-9)
    assert found.sustained_period_s < found.longest_stage_s


def test_processors_of_one_stage_sustain_more_than_the_stage_promises():
    """Operators in turn on two processors: each waits for the other within a frame only."""
    costs = build_cost_table(GRAPH, A311D)
    processors = tuple(2 if HALF // 2 <= v < HALF else 0 for v in range(COUNT))
    found = priced(costs, Assignment(processors, (tuple(range(COUNT)),)))
    (stage,) = found.stages
    busy_s = [sum(costs.time_s(v, p) for v in range(COUNT) if processors[v] == p) for p in (0, 2)]
    assert max(busy_s) - 1e-9 <= found.sustained_period_s < stage.time_s


def test_a_processor_that_stages_share_sustains_no_more_than_its_work():
    costs = build_cost_table(GRAPH, A311D)
    third = COUNT // 3
    stages = tuple(tuple(range(i * third, COUNT if i == 2 else (i + 1) * third)) for i in range(3))
    processors = tuple(2 if v in stages[1] else 0 for v in range(COUNT))
    found = priced(costs, Assignment(processors, stages))
    busy_s = found.stages[0].work_s + found.stages[2].work_s
    assert busy_s - 1e-9 <= found.sustained_period_s <= found.period_s + 1e-9
