"""What times are multiplied by: jitter, and other programs on a processor."""

from statistics import fmean

import pytest

from parapipe.simulate.variation import RandomFactors

FRAMES = 4000


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_disturbed_processor_takes_twice_as_long_in_that_share_of_the_frames(share):
    luck = RandomFactors(disturbed={"big": share})
    factors = [luck.of_processor("big", frame) for frame in range(FRAMES)]
    assert set(factors) == {1.0, 2.0}
    assert fmean(factors) == pytest.approx(1 + share, abs=0.03)
    assert {luck.of_processor("gpu", frame) for frame in range(9)} == {1.0}
    assert luck.of("conv on big", 3) == 1.0


def test_which_frames_are_disturbed_depends_on_processor_and_seed_alone():
    def frames(seed, processor, order):
        luck = RandomFactors(0.2, {"big": 0.5, "gpu": 0.5}, seed)
        return {frame: luck.of_processor(processor, frame) for frame in order}

    assert frames(1, "big", range(99)) == frames(1, "big", range(98, -1, -1))
    assert frames(1, "big", range(99)) != frames(1, "gpu", range(99))
    assert frames(1, "big", range(99)) != frames(2, "big", range(99))


def test_only_what_changes_nothing_is_none():
    assert RandomFactors(seed=3).is_none
    assert not RandomFactors(0.1).is_none
    assert not RandomFactors(disturbed={"big": 0.1}).is_none
