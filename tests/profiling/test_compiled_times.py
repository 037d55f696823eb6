"""Seconds of the rows of a compiled segment; the rows are of rknn-toolkit2 2.5.0 for the RK3588."""

from __future__ import annotations

import pytest

from parapipe.compilers.contract import CompiledRow
from parapipe.errors import PlatformError
from parapipe.platform.sections import Compiled
from parapipe.profiling.compiled_times import NodePrice, RowWork, fit_of, row_work, total_work
from tools.calibrate_rknn import platform_of

FIT = Compiled(cycle_factor=1.25, row_start_s=100e-6, own_share=0.5, source="rknn-rates")
PRICES = {
    "conv": NodePrice("Conv", 1e-3, 9e-3),
    "relu": NodePrice("Relu", 2e-4, 9e-3),
    "sigmoid": NodePrice("Sigmoid", 3e-4, 9e-3),
    "silu": NodePrice("Mul", 4e-4, 9e-3),
    "pool": NodePrice("MaxPool", 6e-4, 9e-3),
    "softmax": NodePrice("Softmax", 7e-4, 8e-4),
}


def _row(
    operator: str, nodes: tuple[str, ...], cycles: int | None, target: str = "NPU"
) -> CompiledRow:
    return CompiledRow(operator, target, "INT8", nodes, "group", cycles)


def test_a_priced_row_takes_its_cycles() -> None:
    work = row_work(_row("ConvRelu", ("conv", "relu"), 80_000), PRICES)
    assert work == RowWork(80_000, 0, 0)
    assert work.time_s(1e9, FIT) == pytest.approx(1.25 * 80e-6)


def test_a_table_activation_in_a_priced_row_costs_its_own_price_on_top() -> None:
    work = row_work(_row("ConvExSwish", ("conv", "sigmoid", "silu"), 80_000), PRICES)
    assert work == RowWork(80_000, 0, pytest.approx(7e-4))
    assert work.time_s(1e9, FIT) == pytest.approx(100e-6 + 350e-6)


def test_a_row_without_cycles_takes_a_start_and_its_own_price() -> None:
    work = row_work(_row("MaxPool", ("pool",), None), PRICES)
    assert work.time_s(1e9, FIT) == pytest.approx(100e-6 + 300e-6)
    assert row_work(_row("exDataConvert", (), None), PRICES) == RowWork(0, 1, 0)


def test_a_row_on_the_cpu_takes_the_price_there() -> None:
    work = row_work(_row("exSoftmax13", ("softmax",), None, "CPU"), PRICES)
    assert work == RowWork(0, 0, 8e-4)


def test_rows_add_up() -> None:
    rows = [
        _row("Conv", ("conv",), 1000),
        _row("Conv", ("conv",), 500),
        _row("Pool", ("pool",), None),
    ]
    assert total_work(rows, PRICES) == RowWork(1500, 1, 6e-4)


def test_a_processor_without_a_fit_is_named() -> None:
    platform = platform_of("rk3588")
    assert fit_of(platform.processors[-1], "rk3588").cycle_factor == 1.232
    with pytest.raises(PlatformError, match="processor 'big' become seconds; state `compiled`"):
        fit_of(platform.processors[1], "rk3588")
