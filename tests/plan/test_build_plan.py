"""A plan says what its configuration, graph, platform and costs say."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import PlanError, VerificationError
from parapipe.mappings.evaluate import evaluate
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Computed, Initializer
from tests.cases.plan_cases import (
    Costs,
    configured,
    drawn,
    drawn_plan,
    graph_of,
    operator,
    platform_of,
)
from tests.cases.plan_cases import random_case as case

SEEDS = st.integers(0, 10**9)


def test_the_model_is_recognisable_by_digests_of_all_its_files() -> None:
    model = drawn_plan().model
    assert (model.name, model.sha256) == ("nets/small.onnx", "0" * 64)
    assert model.external == {"weights.bin": "1" * 64, "a.bin": "2" * 64}


def test_each_processor_runs_its_operators_in_order_of_time() -> None:
    stages = [
        {
            processor.name: [
                (at.operator, at.start_s, at.end_s, at.lag) for at in processor.operators
            ]
            for processor in stage.processors
        }
        for stage in drawn_plan().stages
    ]
    assert stages == [
        {"big": [("a", 0.0, 1.0, 0), ("b", 1.0, 3.0, 0)], "little": [("c", 1.25, 2.25, 0)]},
        {"gpu": [("d", 0.25, 1.25, 1), ("e", 1.25, 2.25, 1)]},
    ]


def test_every_tensor_that_crosses_processors_has_one_transfer() -> None:
    found = {(t.tensor, t.source, t.target, t.kind, t.time_s) for t in drawn_plan().transfers}
    assert found == {
        ("a", "big", "little", "within-stage", 0.25),
        ("a", "big", "gpu", "stage", 0.25),
        ("b", "big", "gpu", "stage", 0.25),
        ("c", "little", "gpu", "stage", 0.25),
    }


def test_readers_on_one_processor_share_a_transfer() -> None:
    graph = graph_of(
        [operator("a", "x"), operator("b", "a"), operator("c", "a")], inputs=["x"], outputs=["c"]
    )
    costs = Costs([[1.0, 1.0]] * 3, {})
    plan = build_plan(
        graph, platform_of(2), costs, configured(graph, costs, [[(0, 0), (1, 1), (2, 1)]])
    )
    assert [(t.tensor, t.source, t.target) for t in plan.transfers] == [("a", "big", "little")]


def test_graph_inputs_need_no_transfer() -> None:
    graph = graph_of([operator("a", "x"), operator("b", "x a")], inputs=["x"], outputs=["b"])
    costs = Costs([[1.0, 1.0]] * 2, {})
    plan = build_plan(graph, platform_of(2), costs, configured(graph, costs, [[(0, 0)], [(1, 1)]]))
    assert [transfer.tensor for transfer in plan.transfers] == ["a"]


def test_a_tensor_that_skips_stages_gets_a_slot_for_each() -> None:
    # a (stage 0) is read by b, c, d in stages 1, 2, 3.
    graph = graph_of(
        [operator("a", "x"), operator("b", "a"), operator("c", "a b"), operator("d", "a c")],
        inputs=["x"],
        outputs=["d"],
    )
    costs = Costs([[1.0] * 4] * 4, {})
    stages = [[(v, v)] for v in range(4)]
    plan = build_plan(graph, platform_of(4), costs, configured(graph, costs, stages))
    depths = {(t.tensor, t.target): t.queue_depth for t in plan.transfers}
    assert depths == {
        ("a", "little"): 2, ("a", "gpu"): 3, ("a", "npu"): 4, ("b", "gpu"): 2, ("c", "npu"): 2,
    }  # fmt: skip


def test_only_the_processors_used_are_listed_in_the_order_of_the_platform() -> None:
    graph, _, costs, _ = drawn()
    on_gpu_then_big = configured(graph, costs, [[(0, 2), (1, 2)], [(2, 0), (3, 0), (4, 0)]])
    plan = build_plan(graph, platform_of(3), costs, on_gpu_then_big)
    assert [(p.name, p.kind, p.cores) for p in plan.processors] == [
        ("big", "cpu", (0, 1)),
        ("gpu", "gpu", ()),
    ]


def test_a_fused_operator_lists_its_parts_with_constants_and_folded_batch_norm() -> None:
    first = drawn_plan().operators[0]
    assert (first.id, first.type, first.members) == ("a", "Conv", ("node/inner", "node/a"))
    assert [part.type for part in first.parts] == ["Conv", "Relu"]
    conv, relu = first.parts
    assert [(c.name, c.shape, c.recipe) for c in conv.constants] == [
        ("w", (2, 2, 1, 1), Initializer(kind="initializer"))
    ]
    assert relu.constants == ()
    assert conv.inputs == ("x", "w", "")
    (norm,) = conv.folded
    assert norm.type == "BatchNormalization"
    assert norm.attributes == {"epsilon": 1e-5}
    assert norm.constants[0].recipe == Computed(kind="computed", nodes=("node/exp", "node/neg"))


def test_what_is_folded_into_a_part_stands_with_the_part_only() -> None:
    assert drawn_plan().operators[0].folded == ()


def test_what_is_folded_into_no_part_in_particular_stands_with_the_whole() -> None:
    norm = operator("before", "raw", kind="BatchNormalization")
    parts = [operator("inner", "x", kind="Conv"), operator("a", "inner")]
    whole = operator("a", "x", kind="Conv", parts=parts, folded=[norm])
    graph = graph_of([whole], inputs=["x"], outputs=["a"])
    costs = Costs([[1.0]], {})
    plan = build_plan(graph, platform_of(1), costs, configured(graph, costs, [[(0, 0)]]))
    assert [folded.id for folded in plan.operators[0].folded] == ["before"]


def test_tensors_within_fused_operators_are_listed() -> None:
    assert "inner" in drawn_plan().tensors


def test_the_predictions_are_those_of_the_configuration() -> None:
    graph, platform, costs, mapping = drawn()
    predicted = build_plan(graph, platform, costs, mapping).predicted
    found = evaluate(mapping, graph, costs)
    for field in ("latency_s", "period_s", "sustained_period_s", "throughput_fps", "energy_j",
                  "board_energy_j", "input_s", "output_s"):  # fmt: skip
        assert getattr(predicted, field) == getattr(found, field)


def test_coverage_is_by_share_of_time() -> None:
    graph, platform, _, configuration = drawn()
    costs = Costs([[1.0] * 3] * 5, {}, provenance=("measured", "nominal"))
    coverage = build_plan(graph, platform, costs, configuration).predicted.coverage
    assert (coverage.measured, coverage.fitted, coverage.nominal) == (0.5, 0.0, 0.5)


def test_all_attributes_that_json_cannot_hold_are_named() -> None:
    operators = [
        operator("a", "x", attributes={"alpha": math.inf}),
        operator("b", "a", attributes={"scales": (1.0, math.nan)}),
    ]
    graph = graph_of(operators, inputs=["x"], outputs=["b"])
    costs = Costs([[1.0]] * 2, {})
    with pytest.raises(PlanError, match=r"node/a.*inf.*node/b.*nan") as caught:
        build_plan(graph, platform_of(1), costs, configured(graph, costs, [[(0, 0), (1, 0)]]))
    assert "nets/small.onnx" in str(caught.value)


def test_a_wrong_configuration_gives_no_plan() -> None:
    graph, platform, costs, mapping = drawn()
    found = dataclasses.replace(evaluate(mapping, graph, costs), latency_s=1.0)
    with pytest.raises(VerificationError) as caught:
        build_plan(graph, platform, costs, mapping, found=found)
    assert caught.value.violations == ("the latency is 1 s, and the stages take 5.25 s",)


def test_googlenet_on_the_shipped_board_in_two_stages() -> None:
    graph, platform = load_model("zoo:googlenet"), load_platform("amlogic-a311d")
    costs = build_cost_table(graph, platform)
    half, gpu, big = 40, platform.index("gpu"), platform.index("big")
    stages = [[(v, gpu) for v in range(half)], [(v, big) for v in range(half, 84)]]
    plan = build_plan(graph, platform, costs, configured(graph, costs, stages))
    assert (len(plan.operators), sum(len(o.parts) for o in plan.operators)) == (84, 2 * 57)
    assert {p.name: p.operating_point.frequency_hz for p in plan.processors} == {
        "big": 2.208e9,
        "gpu": 0.8e9,
    }
    assert {(t.source, t.target, t.kind) for t in plan.transfers} == {("gpu", "big", "stage")}
    coverage = plan.predicted.coverage  # big's times are of 2024, scaled: they count as fitted
    on_big = sum(costs.time_s(v, big) for v in range(half, 84))
    every = on_big + sum(costs.time_s(v, gpu) for v in range(half))
    assert coverage.measured + coverage.fitted == pytest.approx(1)
    assert coverage.fitted == pytest.approx(on_big / every, abs=0.02)


@given(seed=SEEDS)
def test_every_valid_configuration_gives_a_plan_that_passes_the_verifier(seed) -> None:
    graph, platform, costs, configuration = case(seed)
    plan = build_plan(graph, platform, costs, configuration)
    assert [entry.id for entry in plan.operators] == [entry.id for entry in graph.operators]
    assert len(plan.stages) == len(configuration.stages)


@given(seed=SEEDS)
def test_the_same_configuration_gives_the_same_bytes(seed) -> None:
    assert build_plan(*case(seed)).to_bytes() == build_plan(*case(seed)).to_bytes()
    graph, *rest = case(seed)
    plan = build_plan(graph, *rest)
    again = build_plan(graph, *rest, like=plan)
    assert again.to_bytes() == again.to_bytes(plan.texts("tensors", "operators")) == plan.to_bytes()


def test_control_flow_is_marked_in_the_plan_and_nothing_else_is() -> None:
    loop = dataclasses.replace(operator("a", "x"), type="Loop", opaque=True)
    graph = graph_of([loop, operator("b", "a")], inputs=["x"], outputs=["b"])
    costs = Costs([[1.0]] * 2, {})
    plan = build_plan(graph, platform_of(1), costs, configured(graph, costs, [[(0, 0), (1, 0)]]))
    assert [placed.opaque for placed in plan.operators] == [True, None]
    assert plan.to_bytes().count(b"opaque") == 1
