"""Estimates against whole runs on the board: fitted to two networks, tried on the third."""

from pathlib import Path

import pytest

from benchmarks import accuracy

LIMITS = {"latency": 0.058, "longest stage": 0.049, "energy": 0.08}


@pytest.fixture(scope="module")
def held_out():
    return accuracy.pooled(accuracy.held_out())


@pytest.mark.parametrize("metric", LIMITS)
def test_errors_of_networks_left_out_are_within_the_limits_and_never_above_the_plain_sum(
    metric, held_out
):
    plain = accuracy.pooled(accuracy.plain())
    assert held_out[metric, None].runs == 23
    assert held_out[metric, None].rmspe <= LIMITS[metric]
    assert held_out[metric, None].rmspe <= plain[metric, None].rmspe


def test_what_evaluate_says_with_the_shipped_platform_is_within_the_same_limits():
    shipped = accuracy.pooled(accuracy.shipped())
    for metric, limit in LIMITS.items():
        assert shipped[metric, None].rmspe <= limit


def test_the_plain_sum_is_what_evaluate_says_of_latency_and_stages(held_out):
    shipped = accuracy.pooled(accuracy.shipped())
    for metric in ("latency", "longest stage"):
        assert shipped[metric, None].rmspe == pytest.approx(held_out[metric, None].rmspe, rel=1e-5)


def test_no_fitted_correction_of_times_lowers_both_errors():
    plain = accuracy.pooled(accuracy.plain())
    for each in accuracy.CORRECTIONS[1:]:
        if each.low < each.high:
            found = accuracy.pooled(accuracy.left_out(each, accuracy.whole_runs())[0])
            changes = [
                found[metric, None].rmspe - plain[metric, None].rmspe
                for metric in ("latency", "longest stage")
            ]
            assert max(changes) >= -1e-9, each.name


def test_the_page_is_what_the_script_writes():
    """Correct it with `python -m benchmarks.accuracy`."""
    page = Path(__file__).parents[2] / "docs/accuracy.md"
    assert page.read_text(encoding="utf-8") == accuracy.page()
