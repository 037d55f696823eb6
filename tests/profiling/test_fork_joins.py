"""What rows of modules that fork and join say of a hand-over."""

from math import log, sqrt

import pytest
from onnx import checker

from parapipe.profiling.fork_joins import (
    FORMS,
    MODULES,
    Form,
    hand_over_of,
    trunk_and_branch,
    without_hand_overs,
)

COPY = 40e9


def rounds(overhead_s, bandwidth_bytes_per_s, factors=(1.0,)):
    """Return what rows take whose modules hold two hand-overs, there and back."""
    return {
        form: [
            factor * MODULES * (2 * overhead_s + form.size_bytes / bandwidth_bytes_per_s)
            for factor in factors
        ]
        for form in FORMS
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
    assert found.spread == pytest.approx(sqrt(2 / 3) * log(1.25))


def test_no_noise_makes_a_hand_over_quicker_than_a_copy() -> None:
    found = hand_over_of({form: [MODULES * 80e-6] for form in FORMS}, COPY)
    assert found.overhead_s == pytest.approx(40e-6)
    assert found.bandwidth_bytes_per_s == pytest.approx(COPY)


def test_hand_overs_that_noise_hides_take_no_more_than_a_copy_and_have_a_large_spread() -> None:
    found = hand_over_of({form: [-1e-3] for form in FORMS}, COPY)
    assert (found.overhead_s, found.bandwidth_bytes_per_s) == (0, pytest.approx(COPY))
    assert found.spread > 1


def test_the_slower_processor_has_the_branch_which_is_a_third_of_the_work() -> None:
    assert trunk_and_branch({0: 2e-3, 1: 5e-3}) == (0, 1)
    assert trunk_and_branch({0: 5e-3, 1: 2e-3}) == (1, 0)
    assert without_hand_overs(2e-3, 5e-3) == pytest.approx(3e-3)
    assert without_hand_overs(2e-3, 2e-3) == pytest.approx(2e-3)
