"""Rates of operator classes, fitted to what Rockchip's compiler tells of operators."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from parapipe.compilers.contract import CompiledRow
from parapipe.platform.catalogue import catalogue
from tests.cases.hand_built import GraphBuilder
from tools.calibrate_rknn import PAGE, TARGETS, platform_of
from tools.calibrate_rknn_classes import (
    CLASSES,
    INPUT_CHANNELS,
    Rates,
    Rows,
    fit_rates,
    fits_of,
    rows_of,
    table,
)
from tools.rknn_operators import CompiledOperator, operators_of, read_operators, write_operators


def rows(*compute_memory_ms: tuple[float, float], rates: Rates) -> Rows:
    """Return rows that take just what the rates make of them; a launch takes 0.1 ms."""
    compute_s, memory_s = np.array(compute_memory_ms).T / 1e3
    time_s = 1e-4 + np.maximum(compute_s / rates.compute, memory_s / rates.bandwidth)
    return Rows(compute_s, memory_s, time_s, np.ones(len(time_s), dtype=np.int64), 1e-4)


def test_a_fit_finds_the_rates_that_times_were_made_with() -> None:
    rates = Rates(1.5, 0.25)
    fitted = fit_rates(rows((8, 1), (3, 0.1), (1, 4), (2, 5), rates=rates), most=3)
    assert fitted == pytest.approx(rates, rel=1e-2)


def test_no_class_is_faster_than_the_peak_or_the_memory() -> None:
    fitted = fit_rates(rows((8, 1), (1, 40), rates=Rates(4.0, 3.0)), most=2)
    assert fitted == pytest.approx((2, 1))


def test_what_rows_do_not_show_is_that_of_the_prior() -> None:
    bound_by_memory = rows((0.01, 4), (0.02, 5), rates=Rates(1.0, 0.5))
    fitted = fit_rates(bound_by_memory, 3, prior=Rates(2.0, 0.5))
    assert fitted == pytest.approx((2, 0.5), rel=1e-2)
    assert fit_rates(rows_of([], npu("rk3588")), 3, Rates(2.0, 0.5)) == pytest.approx(
        (2, 0.5), rel=1e-2
    )


def npu(target: str):
    return next(each for each in platform_of(target).processors if each.compiler)


def test_errors_are_of_each_row_and_of_their_sum() -> None:
    # 3.1 ms for 2.1, twice, and 3.1 for 6.2
    some = Rows(
        np.array([3, 3]) / 1e3, np.zeros(2), np.array([2.1, 6.2]) / 1e3, np.array([2, 1]), 1e-4
    )
    errors = some.errors(Rates(1.0, 1.0))
    assert errors.rows == pytest.approx((1 / 2.1, 1 / 2.1, 0.5))
    assert errors.sum == pytest.approx(9.3 / 10.4 - 1)


def test_a_row_has_its_cycles_by_the_chips_factor_and_channels_in_multiples() -> None:
    first = CompiledOperator("net", "rk3588", "conv3x3", 3, 3_000_000, 1000, 200_000)
    counted = rows_of([first], npu("rk3588"))
    assert counted.time_s == pytest.approx([1.232 * 200e-6])
    assert counted.compute_s == pytest.approx([32_000_000 / 450.6e9])
    assert counted.launch_s == 10e-6
    assert rows_of([first], npu("rk3588"), 1).compute_s == pytest.approx([3_000_000 / 450.6e9])


def test_equal_rows_are_counted_and_rows_without_one_product_left_out() -> None:
    build = GraphBuilder(x=(1, 4, 6, 6))
    weights = build.constant("w", (4, 4, 1, 1))
    one = build.add("Conv", ("x", weights), (1, 4, 6, 6), 576)
    relu = build.add("Relu", (one,), (1, 4, 6, 6))
    two = build.add("Conv", (relu, weights), (1, 4, 6, 6), 576)
    pool = build.add("MaxPool", (two,), (1, 4, 6, 6), kernel_shape=(1, 1))
    graph = build.graph(pool)
    names = {operator.id: operator.name for operator in graph.operators}

    def row(*ids: str, cycles: int | None = 50) -> CompiledRow:
        nodes = tuple(names[each] for each in ids)
        return CompiledRow("Conv", "NPU", "INT8", nodes, "name", cycles)

    def found(*table_rows: CompiledRow) -> list[CompiledOperator]:
        return list(operators_of("net", "rk3588", graph, table_rows))

    moved = 144 + 144 + 16
    expected = CompiledOperator("net", "rk3588", "conv1x1", 4, 576, moved, 50, 2)
    assert found(row(one, relu), row(two), row(pool)) == [expected]
    assert found(row(one, cycles=None), row(one, two)) == []


def test_a_row_that_helps_a_node_counts_for_it() -> None:
    build = GraphBuilder(x=(1, 4, 6, 6))
    conv = build.add("Conv", ("x", build.constant("w", (4, 4, 1, 1))), (1, 4, 6, 6), 576)
    graph = build.graph(conv)
    (name,) = (operator.name for operator in graph.operators)
    rows = (
        CompiledRow("Transpose", "NPU", "INT8", (), "unmatched", 7, part_of=name),
        CompiledRow("Conv", "NPU", "INT8", (name,), "name", 50),
    )
    assert [each.cycles for each in operators_of("net", "rk3588", graph, rows)] == [57]


def test_the_table_is_read_as_it_was_written(tmp_path) -> None:
    operators = read_operators()
    write_operators(operators["rk3588"], tmp_path / "table.csv")
    assert read_operators(tmp_path / "table.csv")["rk3588"] == operators["rk3588"]
    assert set(operators) == set(TARGETS)


def test_the_catalogue_has_the_rates_of_the_fit() -> None:
    operators = read_operators()
    for target in TARGETS:
        stated = catalogue().parts[f"{target.upper()}-NPU"].rates
        assert stated is not None
        assert stated.input_channels == INPUT_CHANNELS
        for name, each in fits_of(operators[target], target).items():
            assert each.rates == (stated.compute[name], stated.bandwidth[name])
        assert {*stated.compute} == {*stated.bandwidth} == {*CLASSES, "default"}


def test_rates_of_classes_are_nearer_to_the_compiler_than_one_rate() -> None:
    operators = read_operators()
    for target in TARGETS:
        fits = fits_of(operators[target], target).values()
        before = [error for each in fits for error in each.before.rows]
        after = [error for each in fits for error in each.after.rows]
        assert median(after) < median(before) / 2
        for each in fits:
            if each.before.sum and each.after.sum:
                assert abs(each.after.sum) < abs(each.before.sum)


def test_the_page_has_the_table_of_the_fit() -> None:
    operators = read_operators()
    fits = {target: fits_of(operators[target], target) for target in TARGETS}
    assert table(fits) in PAGE.read_text(encoding="utf-8")
