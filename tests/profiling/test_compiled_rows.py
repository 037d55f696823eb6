"""A profile's rows out of compiled segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from parapipe.compilers.contract import CompiledRow, CompiledSegment
from parapipe.cost.compiled_groups import join_compiled
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.fitted import fit_profile
from parapipe.cost.profile import COMPILED, UNPRICED, Profile
from parapipe.graph.onnx_import import import_model
from parapipe.platform.load import read_platform
from parapipe.profiling.compiled_rows import RowTimes, joined_as, operator_times
from parapipe.profiling.operator_times import measurements_of
from tests.cases.priced_compiler import PLATFORM, chain

NPU = 3  # place of npu0 on the RK3588


def _row(operator, nodes, cycles) -> CompiledRow:
    return CompiledRow(operator, "NPU", "INT8", nodes, "group", cycles)


@pytest.fixture
def case(tmp_path: Path):
    graph = import_model(chain(tmp_path, blocks=2))
    platform = read_platform(PLATFORM, "rk3588.yaml")
    rows = (
        _row("exDataConvert", (), None),
        _row("ConvExSwish", ("conv0", "sigmoid0", "mul0"), 70_000),
        _row("ConvExSwish", ("conv1", "sigmoid1", "mul1"), 90_000),
        _row("MaxPool", ("pool",), None),
    )
    segment = CompiledSegment(Path("a.rknn"), "0" * 64, "rknn", "2.5.0", rows)
    joined = joined_as(graph, [segment])
    costs = build_cost_table(joined, platform, profiles=(), precision="int8")
    times = RowTimes.of(costs, platform, platform.processors[NPU])
    return graph, platform, segment, joined, costs, times


def test_operators_of_a_fused_row_are_one(case) -> None:
    joined = case[3]
    assert [operator.members for operator in joined.operators] == [
        ("conv0", "sigmoid0", "mul0"), ("conv1", "sigmoid1", "mul1"), ("pool",),
    ]  # fmt: skip


def test_a_group_that_does_not_begin_with_its_work_is_not_joined(case) -> None:
    graph, _, segment, *_ = case
    rows = (
        _row("ConvExSwish", ("conv0", "sigmoid0", "mul0"), 70_000),
        # a profile would know it by a Mul of that shape and the types that follow
        _row("MulConv", ("mul0", "conv1"), 90_000),
        _row("ConcatConv", ("sigmoid1", "mul1", "pool"), None),
    )
    joined = joined_as(graph, [replace(segment, rows=rows[1:])])
    assert [each.members for each in joined.operators][:3] == [
        ("conv0",), ("sigmoid0",), ("mul0",),
    ]  # fmt: skip
    assert ("mul0", "conv1") not in {each.members for each in joined.operators}


def test_times_of_a_compiler_are_not_fitted(case) -> None:
    _, platform, segment, joined, costs, times = case
    of_segment = operator_times(joined, segment, times)
    npu = platform.processors[NPU : NPU + 1]
    rows = tuple(measurements_of(joined, [of_segment], costs, npu, weights="own"))
    assert {m.method for m in rows} == {COMPILED, UNPRICED}
    assert not fit_profile(Profile("rk3588/rknn", rows)).fits


def test_operators_take_what_the_rows_take(case) -> None:
    _, _, segment, joined, costs, times = case
    of_operators = operator_times(joined, segment, times)
    assert [of_operators[v].method for v in range(3)] == [COMPILED, COMPILED, UNPRICED]
    total_s = sum(each.time_s for each in of_operators.values())
    assert total_s == pytest.approx(times.segment_s(segment))
    # the second row: 90,000 cycles at 1 GHz × 1.232, and 0.508 of our price of Sigmoid and Mul
    own_s = sum(part.time_s for part in costs.cost(1, NPU).parts[1:])
    assert of_operators[1].time_s == pytest.approx(1.232 * 90e-6 + 0.508 * own_s)
    # the conversion at the border belongs to the first operator: 88.4 µs more
    own_s = sum(part.time_s for part in costs.cost(0, NPU).parts[1:])
    assert of_operators[0].time_s == pytest.approx(88.4e-6 + 1.232 * 70e-6 + 0.508 * own_s)
    # a pool takes a start and its own price
    own_s = costs.time_s(2, NPU)
    assert of_operators[2].time_s == pytest.approx(88.4e-6 + 0.508 * own_s)


def test_rows_say_what_is_compiled_and_join_the_graph_again(case) -> None:
    graph, platform, segment, joined, costs, times = case
    cores = platform.processors[NPU:]
    taken = [operator_times(joined, segment, times)]
    rows = tuple(measurements_of(joined, taken, costs, cores, weights="own"))
    assert {m.processor for m in rows} == {"npu0", "npu1", "npu2"}
    by_type = {m.signature.inputs: m for m in rows}
    assert by_type["16x64x64"].then == "Sigmoid Mul"
    assert by_type["16x64x64"].method == COMPILED
    assert [m.method for m in rows if m.signature.type == "MaxPool"] == [UNPRICED] * 3
    profile = Profile("rk3588/rknn", rows)
    again = join_compiled(graph, [profile])
    assert [each.id for each in again.operators] == [each.id for each in joined.operators]
    priced = build_cost_table(again, platform, profiles=(profile,), precision="int8")
    total_s = sum(priced.time_s(v, NPU) for v in range(3))
    assert total_s == pytest.approx(times.segment_s(segment), abs=3e-9)
    on_npu = priced.coverage().processors["npu0"]
    assert (on_npu.compiled, on_npu.fitted) == pytest.approx((2 / 3, 1 / 3))
    assert priced.cost(0, NPU).parts[0].provenance == "compiled"
    assert priced.cost(0, 1).parts[0].provenance == "nominal"
    assert priced.coverage().processors["big"].compiled is None


def test_without_compiled_rows_a_graph_stays_as_it_is(case) -> None:
    graph = case[0]
    assert join_compiled(graph, None) is graph
    assert join_compiled(graph, [Profile("empty", ())]) is graph
