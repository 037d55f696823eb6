"""What the DVFS benchmark takes for saved, and for worse."""

from types import SimpleNamespace

import pytest

from benchmarks.dvfs import SHARES, savings, worse


def row(fps, energy_j, drawing, latency_s=1.0):
    return SimpleNamespace(
        throughput_fps=fps, period_s=1 / fps, latency_s=latency_s, energy_j=energy_j,
        board_energy_j=energy_j + 2 / fps, drawing=drawing,
    )  # fmt: skip


FIXED = [row(10, 8.0, "a"), row(8, 6.0, "b"), row(5, 5.0, "c")]
CHOSEN = [row(10, 8.0, "a"), row(9, 6.0, "d"), row(4.9, 1.0, "e")]


def test_at_each_share_the_least_energies_of_at_least_that_throughput_are_compared():
    found = savings("m", "p", FIXED, CHOSEN)
    assert [each.throughput_share for each in found] == list(SHARES)
    assert [(each.fixed, each.chosen) for each in found] == [
        ("a", "a"), ("a", "d"), ("b", "d"), ("c", "d"),
    ]  # fmt: skip
    assert found[1].chosen_board_j == pytest.approx(6.0 + 2 / 9)


def test_a_configuration_is_worse_off_if_none_is_as_good_in_everything():
    assert worse(FIXED, CHOSEN) == [FIXED[2]]
    assert worse(FIXED, FIXED) == []
