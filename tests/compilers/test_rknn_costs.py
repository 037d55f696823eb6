"""Costs out of Rockchip's compiler itself: runs where PARAPIPE_COMPILER_RKNN names its Python."""

from __future__ import annotations

import os

import pytest

import parapipe
from parapipe.cost.profile import read_profile
from tests.cases.priced_compiler import PLATFORM, chain

pytestmark = pytest.mark.skipif(
    "PARAPIPE_COMPILER_RKNN" not in os.environ,
    reason="Rockchip's compiler is not installed: make test-rknn",
)


def test_inspect_says_what_runs_on_the_cpu(tmp_path) -> None:
    platform = tmp_path / "rk3588.yaml"
    platform.write_text(PLATFORM)
    inspection = parapipe.inspect(
        "zoo:googlenet", platform=platform, precision="int8", compiler="rknn"
    )
    (row,) = inspection.compiled
    assert (row.target, row.operators, row.on_processor) == ("rk3588", 84, 82)
    assert [(each.type, each.where) for each in row.fallbacks] == [("LRN", "cpu"), ("LRN", "cpu")]


def test_a_convolution_and_its_silu_are_one_row_and_one_operator(tmp_path) -> None:
    platform = tmp_path / "rk3588.yaml"
    platform.write_text(PLATFORM)
    model = chain(tmp_path)
    report = parapipe.compile_profile(model, platform, "rknn", precision="int8")
    rows = read_profile(report.path).measurements
    assert {(m.signature.type, m.then, m.method) for m in rows} == {
        ("Conv", "Sigmoid Mul", "compiled"),
        ("MaxPool", "", "unpriced"),
    }
    front = parapipe.map(
        model, platform, compiler="rknn", precision="int8", draws=0, interleave="none",
        note=lambda _: None,
    )  # fmt: skip
    record = front.document.compilation
    assert record is not None
    assert (record.rounds, record.refused) == (1, ())
    assert record.total_difference < 0.02
