"""What the final evaluation adds to a front."""

from __future__ import annotations

from pathlib import Path

import pytest

import parapipe

A311D = Path(__file__).parents[2] / "platforms" / "amlogic-a311d.yaml"
SHARE = "  hand_over_share: 0"


def mapped(platform):
    return parapipe.map(
        "zoo:squeezenet",
        platform,
        objectives="latency-throughput",
        note=lambda _: None,
        interleave="none",
    )


@pytest.fixture(scope="module")
def front():
    return mapped("amlogic-a311d")


def test_without_effects_no_configuration_takes_longer_than_the_search_says(front):
    for made in front:
        row, evaluated = made, made.evaluated
        assert evaluated.network is None
        assert evaluated.latency_s <= row.latency_s * (1 + 1e-9)
        assert evaluated.period_s <= row.period_s * (1 + 1e-9)
        assert evaluated.energy_j <= row.energy_j * (1 + 1e-9)
        assert evaluated.longest_stage_s == evaluated.period_s
        assert evaluated.sustained_period_s <= row.sustained_period_s * (1 + 1e-9)


@pytest.mark.nightly
def test_stages_that_share_the_memory_slow_each_other_down(front, tmp_path):
    path = tmp_path / "soc.yaml"
    path.write_text(A311D.read_text().replace(SHARE, f"  contention: 0.5\n{SHARE}"))
    slowed = mapped(path)
    alone = next(made for made in slowed if len(made.processors) == 1)
    assert alone.period_s == pytest.approx(alone.co_run.free_period_s)
    for made in slowed:
        free = made.co_run
        assert made.evaluated.period_s <= made.period_s * (1 + 1e-9)
        assert free.free_latency_s <= made.latency_s < free.free_latency_s * 1.5
        if len(made.stages) > 1:
            assert free.free_period_s <= made.period_s < free.free_period_s * 1.5
    assert min(made.period_s for made in slowed) > min(made.period_s for made in front)


def test_a_platform_without_the_section_has_none():
    front = mapped("bst-a1000")
    assert {made.evaluated for made in front} == {None}
    assert front.to_pandas().evaluated_latency_s.isna().all()


def test_a_network_measured_in_float32_is_not_evaluated_by_its_rows_in_float16() -> None:
    front = parapipe.map(
        "zoo:alexnet",
        "amlogic-a311d",
        precision="float16",
        objectives="latency-throughput",
        interleave="none",
    )
    assert {row.evaluated.network for row in front.document.configurations} == {None}
