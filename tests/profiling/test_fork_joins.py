"""What rows of modules that fork and join say of a hand-over."""

from math import log
from statistics import NormalDist

import pytest
from onnx import checker

from parapipe.profiling.identical_figures import (
    FORMS,
    MODULES,
    Form,
    FrameTime,
    hand_over_of,
    hand_over_time,
    trunk_and_branch,
)

COPY = 40e9


def rounds(overhead_s, bandwidth_bytes_per_s, factors=(1.0,), busy_share=0.0):
    """Return what rows take whose modules hold two hand-overs, there and back."""
    once_s = {
        form: MODULES * (2 * overhead_s + form.size_bytes / bandwidth_bytes_per_s) for form in FORMS
    }
    return {
        form: [FrameTime(factor * time_s, busy_share * time_s) for factor in factors]
        for form, time_s in once_s.items()
    }


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_row_of_modules_is_a_model(form, forks) -> None:
    model = form.model(forks=forks)
    checker.check_model(model, full_check=True)
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    assert len(convolutions) == MODULES * (2 + form.outputs if forks else 2)


def test_a_module_moves_its_channels_there_and_half_of_them_back() -> None:
    assert Form(14).size_bytes == 4 * (256 + 128) * 14 * 14


def test_overhead_and_bandwidth_are_found_again() -> None:
    found = hand_over_of(rounds(40e-6, 10e9), COPY)
    assert found.overhead_s == pytest.approx(40e-6)
    assert found.bandwidth_bytes_per_s == pytest.approx(10e9)
    assert found.spread == pytest.approx(0, abs=1e-9)


def test_rounds_that_differ_by_a_factor_have_its_logarithm_as_spread() -> None:
    found = hand_over_of(rounds(40e-6, 10e9, (0.8, 1.0, 1.25)), COPY)
    assert found.overhead_s == pytest.approx(40e-6)
    assert found.spread == pytest.approx(log(1.25) / NormalDist().inv_cdf(0.75))


def test_a_disturbed_round_says_nothing_of_hand_overs() -> None:
    quiet = (0.9, 1.0, 1.0, 1.1)
    found = hand_over_of(rounds(40e-6, 10e9, (*quiet, 12.0)), COPY)
    assert found.overhead_s == pytest.approx(40e-6)
    assert found.spread < 0.2


@pytest.mark.parametrize(("busy_share", "busy"), [(0.3, False), (0.7, True)])
def test_hand_overs_are_work_where_processors_are_busy_for_most_of_them(busy_share, busy) -> None:
    assert hand_over_of(rounds(40e-6, 10e9, busy_share=busy_share), COPY).busy is busy


def test_no_noise_makes_a_hand_over_quicker_than_a_copy() -> None:
    found = hand_over_of({form: [FrameTime(MODULES * 80e-6, 0)] for form in FORMS}, COPY)
    assert found.overhead_s == pytest.approx(40e-6)
    assert found.bandwidth_bytes_per_s == pytest.approx(COPY)


def test_hand_overs_that_noise_hides_take_no_more_than_a_copy_and_have_a_large_spread() -> None:
    found = hand_over_of({form: [FrameTime(-1e-3, 0)] for form in FORMS}, COPY)
    assert (found.overhead_s, found.bandwidth_bytes_per_s) == (0, pytest.approx(COPY))
    assert found.spread > 1
    assert not found.busy


def test_the_slower_processor_has_the_branch_which_is_a_third_of_the_work() -> None:
    assert trunk_and_branch({0: 2e-3, 1: 5e-3}) == (0, 1)
    assert trunk_and_branch({0: 5e-3, 1: 2e-3}) == (1, 0)
    slow, fast = FrameTime(5e-3, 4e-3), FrameTime(2e-3, 1e-3)
    added = hand_over_time(FrameTime(4e-3, 3e-3), trunk=fast, branch=slow)
    assert added.latency_s == pytest.approx(4e-3 - (2e-3 + (5e-3 - 2e-3) / 3))
    assert added.busy_s == pytest.approx(3e-3 - (1e-3 + 4e-3 / 3))
    assert hand_over_time(FrameTime(4e-3, 3e-3), fast, fast).latency_s == pytest.approx(2e-3)
