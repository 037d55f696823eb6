"""Estimates against whole runs on the board: fitted to two networks, tried on the third."""

from pathlib import Path

import pytest

from benchmarks import accuracy
from benchmarks.time_corrections import big_slower
from tools.states_amlogic_a311d import BIG_SLOWER_IN_2025, STATES

LIMITS = {"latency": 0.053, "longest stage": 0.044, "energy": 0.041}


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


def test_no_fitted_correction_lowers_the_error_of_latency_in_two_networks():
    plain = accuracy.pooled(accuracy.plain())
    networks = [model for metric, model in plain if metric == "latency" and model]
    for each in accuracy.CORRECTIONS[1:]:
        if each.low < each.high:
            found = accuracy.pooled(accuracy.left_out(each, accuracy.whole_runs())[0])
            lower = [
                model
                for model in networks
                if found["latency", model].rmspe < plain["latency", model].rmspe - 1e-9
            ]
            assert len(lower) <= 1, (each.name, lower)


def test_the_factor_on_earlier_blocks_is_what_fits_the_whole_runs_of_googlenet():
    fitted = big_slower(accuracy.whole_runs())
    assert fitted == pytest.approx(BIG_SLOWER_IN_2025, abs=5e-4)


def test_in_one_state_whole_runs_are_met_better_than_with_blocks_as_they_were_measured():
    one, mixed = (accuracy.pooled(accuracy.shipped(name)) for name in STATES)
    for metric in LIMITS:
        assert one[metric, None].rmspe < mixed[metric, None].rmspe
    assert one["latency", "GoogLeNet"].rmspe < 0.01 < mixed["latency", "GoogLeNet"].rmspe


def test_the_page_is_what_the_script_writes():
    """Correct it with `python -m benchmarks.accuracy`."""
    page = Path(__file__).parents[2] / "docs/accuracy.md"
    assert page.read_text(encoding="utf-8") == accuracy.page()
