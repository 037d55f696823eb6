"""The spread of fitted power is what is left of the errors of energies when times are drawn."""

from __future__ import annotations

from math import log, sqrt
from statistics import NormalDist, fmean

import pytest

from benchmarks.energy_corrections import equation_8, left_out
from benchmarks.whole_runs import PLATFORM, priced, whole_runs
from parapipe.cost import spread
from parapipe.platform.load import load_platform

BOTH_ENDS = 2 * NormalDist().inv_cdf(0.95)  # standard deviations between the ends of an interval


def test_power_is_off_by_what_times_do_not_bring(monkeypatch) -> None:
    pairs = left_out(equation_8, whole_runs())
    missed = sqrt(fmean((each.predicted / each.measured - 1) ** 2 for each in pairs))
    assert missed == pytest.approx(0.041, abs=5e-4)
    monkeypatch.setattr(spread, "FITTED_POWER", 0.0)
    platform = load_platform(PLATFORM)
    by_order = {
        (each.model, each.order): priced(platform, each.model, each.order).intervals.energy_j
        for each in pairs
    }
    ends = [by_order[each.model, each.order] for each in pairs]
    of_times = sqrt(fmean((log(high / low) / BOTH_ENDS) ** 2 for low, high in ends))
    assert of_times == pytest.approx(0.023, abs=5e-4)
    monkeypatch.undo()
    assert sqrt(missed**2 - of_times**2) == pytest.approx(spread.FITTED_POWER, abs=5e-4)
