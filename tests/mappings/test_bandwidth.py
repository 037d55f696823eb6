"""No plan moves more bytes a second than the platform's memory gives, whatever runs beside what."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import fsum

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import VerificationError
from parapipe.graph.operator_graph import Constant, ModelSource, Operator, OperatorGraph, Tensor
from parapipe.graph.partition import partition
from parapipe.graph.work import work_of
from parapipe.mappings.evaluate import keep_bandwidth, memory_s
from parapipe.plan.build import build_plan
from parapipe.plan.verify import verify_plan
from parapipe.platform.load import read_platform
from parapipe.search.configurations_from_costs import explore
from parapipe.search.interleaved import InterleavedSearch
from parapipe.search.options import MapOptions
from parapipe.search.stages.stage_search import StageSearch
from parapipe.simulate.simulation import simulate
from tests.cases import hand_built

RK3588 = read_platform("schema: parapipe/platform/1\nname: board\nchip: rk3588\n", "board.yaml")
RK3588_BYTES_PER_S = 0.7 * 34.1e9
OPTIONS = MapOptions(mapper="coarse", jobs=1, cache=False)
SEARCHES = (StageSearch(), InterleavedSearch())


def products(*rows_and_columns, chain):
    """Return products of one token with a matrix each: in a row, or all of the same token."""
    constants, tensors, operators = (
        {},
        {"x": Tensor("x", (1, rows_and_columns[0][0]), "float32")},
        [],
    )
    for number, size in enumerate(rows_and_columns):
        weights, made = f"w{number}", f"y{number}"
        read = f"y{number - 1}" if chain and number else "x"
        constants[weights] = Constant(weights, size, "float32")
        tensors[made] = Tensor(made, (1, size[1]), "float32")
        names = (read, weights), (made,)
        work = work_of("", "MatMul", {}, *names, known={**tensors, **constants})
        operators.append(
            Operator(made, f"node/{made}", "", "MatMul", {}, *names, work, (f"node/{made}",))
        )
    outputs = tuple(f"y{number}" for number in range(len(operators)))
    return OperatorGraph(
        ModelSource("products.onnx", "0" * 64), "fused", tuple(operators), tensors, constants,
        ("x",), outputs[-1:] if chain else outputs,
    )  # fmt: skip


def front(graph, costs, **options):
    options = replace(OPTIONS, **options)
    return explore(graph, partition(graph), costs, options, searches=SEARCHES).found


def limited(bytes_per_s, *processors):
    """Return a platform by hand whose memory gives so many bytes a second."""
    platform = hand_built.platform(*processors)
    memory = platform.memory.model_copy(update={"bandwidth_bytes_per_s": bytes_per_s})
    return platform.model_copy(update={"memory": memory})


def moved_bytes(costs, mapping):
    return sum(costs.cost(at.operator, at.processor).moved_bytes for at in mapping.placements)


def test_two_products_of_64_mb_are_promised_no_more_than_the_memory_gives():
    graph = products((4000, 4000), (4000, 4000), chain=False)
    costs = build_cost_table(graph, RK3588)
    found = front(graph, costs)
    assert {each.kind for each in found} >= {"sequential", "para-only"}
    for each in found:
        rate = moved_bytes(costs, each.mapping) / each.period_s
        assert rate <= RK3588_BYTES_PER_S * (1 + 1e-9)
        assert moved_bytes(costs, each.mapping) / each.evaluated.latency_s <= rate * (1 + 1e-9)
    fastest = min(found, key=lambda each: each.period_s)
    assert 1 / fastest.period_s == pytest.approx(RK3588_BYTES_PER_S / 128e6, rel=1e-3)  # not 364


def test_a_decoder_of_3_billion_float16_weights_gives_no_more_tokens_than_they_can_be_read():
    graph = products(*[(16384, 49152), (49152, 16384)] * 2, chain=True)
    costs = build_cost_table(graph, RK3588, precision="float16")
    weights_bytes = 4 * 2 * 16384 * 49152
    fastest = min(front(graph, costs), key=lambda each: each.period_s)
    assert fastest.kind != "sequential"
    assert 1 / fastest.period_s < RK3588_BYTES_PER_S / weights_bytes  # 3.7
    assert 1 / fastest.period_s == pytest.approx(RK3588_BYTES_PER_S / weights_bytes, rel=1e-3)


@pytest.mark.parametrize("bytes_per_s", [1.2e9, 1.7e9, 2.5e9])
def test_the_least_period_is_that_of_all_assignments(bytes_per_s):
    graph = products((300, 400), (400, 200), (200, 500), (500, 300), chain=True)
    slow = hand_built.processor("little", memory={"source": "guess", "bandwidth_bytes_per_s": 8e8})
    platform = limited(bytes_per_s, hand_built.processor("big"), slow)
    costs = build_cost_table(graph, platform)
    found = front(graph, costs, resolution=0.0)
    served_s = fsum(each.work.read_bytes + each.work.written_bytes for each in graph.operators)
    served_s /= bytes_per_s
    least_s = min(
        max(
            served_s,
            *(sum(costs.time_s(v, p) for v, q in enumerate(place) if p == q) for p in (0, 1)),
        )
        for place in product((0, 1), repeat=4)
    )
    assert min(each.period_s for each in found) == pytest.approx(least_s, rel=1e-6)
    for each in found:
        assert each.evaluated.memory_s == pytest.approx(served_s)
        assert each.least is None or each.least.period_s <= each.period_s
        plan = build_plan(graph, platform, costs, each.mapping)  # which is verified
        assert plan.predicted.sustained_period_s >= served_s * (1 - 1e-9)


def plan_of_two(bytes_per_s=1.2e9):
    graph = products((300, 300), (300, 300), chain=False)
    platform = limited(bytes_per_s)
    costs = build_cost_table(graph, platform)
    fastest = next(each for each in front(graph, costs) if each.kind == "para-only")
    return build_plan(graph, platform, costs, fastest.mapping)


def test_the_verifier_counts_the_bytes_of_a_plan_by_itself():
    plan = plan_of_two()
    for faster in (
        {"memory_s": plan.predicted.memory_s / 2},
        {"memory_s": 0.0, "period_s": plan.stages[0].time_s, "latency_s": plan.stages[0].time_s},
        {"sustained_period_s": plan.predicted.sustained_period_s * 0.99},
        {"memory_s": None},
    ):
        predicted = plan.predicted.model_copy(update=faster)
        with pytest.raises(VerificationError) as raised:
            verify_plan(plan.model_copy(update={"predicted": predicted}))
        assert any("memory" in each for each in raised.value.violations)


def test_frames_in_a_simulation_come_no_faster_than_the_memory_serves_them():
    plan = plan_of_two()
    assert plan.predicted.period_s == plan.predicted.memory_s > plan.stages[0].time_s
    simulation = simulate(plan, frames=20, saturate=True)
    assert float(simulation.pace_ps) / 1e12 == pytest.approx(plan.predicted.sustained_period_s)
    last = simulation.record.frames[-1]
    assert last.done_s - last.admitted_s == pytest.approx(plan.predicted.latency_s)


def test_a_bandwidth_that_is_a_lower_bound_holds_no_plan_to_it():
    graph, platform = products((300, 300), (300, 300), chain=False), limited(1.2e9)
    memory = platform.memory.model_copy(update={"lower_bound": True})
    costs = build_cost_table(graph, platform.model_copy(update={"memory": memory}))
    found = front(graph, costs)
    assert all(each.evaluated.memory_s is None for each in found)
    assert min(each.period_s for each in found) < plan_of_two().predicted.period_s


def test_what_an_operator_moves_beyond_its_time_has_come_out_of_caches():
    fast = hand_built.processor("big", memory={"source": "guess", "bandwidth_bytes_per_s": 1e10})
    graph = products((300, 300), chain=True)
    costs = build_cost_table(graph, limited(1e9, fast, hand_built.processor("little")))
    assert costs.memory_s(0, 0) == costs.time_s(0, 0) < costs.memory_s(0, 1)
    assert costs.memory_range_s() == (costs.memory_s(0, 0), costs.memory_s(0, 1))


def test_a_mapping_made_for_a_shorter_period_gets_one_in_which_the_memory_serves_a_frame():
    graph = products((300, 300), (300, 300), chain=True)
    costs = build_cost_table(graph, limited(1.2e9))
    mapping = next(each.mapping for each in front(graph, costs) if len(each.mapping.stages) > 1)
    made = replace(mapping, period_s=mapping.stages[0].time_s)
    assert keep_bandwidth(made, costs).period_s == memory_s(mapping, costs) > made.period_s
    assert keep_bandwidth(mapping, costs) is mapping
