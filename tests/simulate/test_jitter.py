"""Chance is seeded, positive, and as large as asked."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest

from parapipe.simulate.simulation import Jitter


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_factors_have_mean_one_and_the_standard_deviation_asked_for(share):
    jitter = Jitter(share, 0, "conv")
    factors = [jitter.of_frame(frame) for frame in range(20_000)]
    assert min(factors) > 0
    assert fmean(factors) == pytest.approx(1, abs=0.02)
    assert stdev(factors) == pytest.approx(share, rel=0.05)


def test_factors_depend_on_seed_and_name_and_not_on_when_they_are_asked_for():
    def factors(seed, name, frames):
        jitter = Jitter(0.1, seed, name)
        return {frame: jitter.of_frame(frame) for frame in frames}

    assert factors(1, "conv", [3, 0, 2, 1]) == factors(1, "conv", [0, 1, 2, 3])
    assert factors(1, "conv", [0]) != factors(2, "conv", [0])
    assert factors(1, "conv", [0]) != factors(1, "pool", [0])
