"""Operating points: which are considered, and the cost table of every combination."""

from __future__ import annotations

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.operating_points import MOST_COMBINATIONS, considered_points, settings
from parapipe.errors import PlatformError
from parapipe.platform.load import load_platform
from tests.cases.coverage import assert_shares_add_up_to_one
from tests.cases.hand_built import GraphBuilder, platform, processor

A311D = load_platform("amlogic-a311d")


def clocked(name, points, **changes):
    return processor(
        name,
        clock={
            "source": "guess",
            "default_frequency_hz": 2e9,
            "points": [{"frequency_hz": hz, "voltage_v": volts} for hz, volts in points],
            "scaling": {"source": "guess", "compute_share": {"default": 0.5}},
        },
        **changes,
    )


TWO = [(1e9, 0.8), (2e9, 1.0)]
FOUR = [(0.5e9, 0.8), (1e9, 0.8), (1.5e9, 0.9), (2e9, 1.0)]


def small_graph():
    builder = GraphBuilder(x=(1, 8, 10, 10))
    builder.add("Relu", [builder.conv("x", 8)], (1, 8, 10, 10))
    return builder.graph()


def megahertz(points):
    return [round(point.frequency_hz / 1e6) for point in points]


def test_the_default_point_comes_first_and_the_others_by_falling_frequency():
    (one,) = platform(clocked("big", FOUR)).processors
    assert megahertz(considered_points(one, 4)) == [2000, 1500, 1000, 500]
    assert megahertz(considered_points(one, 1)) == [2000]


def test_a_point_that_saves_nothing_is_the_last_to_be_considered():
    # 1 ms at 2 GHz is 1.5 ms at 1 GHz and 2.5 ms at 0.5 GHz, at the same voltage: 2 W of dynamic
    # power at 1 GHz and 1 W at 0.5 GHz, static 5 W at both.
    power = {"source": "guess", "alpha_w_per_v2_hz": 3.125e-9, "beta_w_per_v": 6.25,
             "utilisation": {"default": 1.0}}  # fmt: skip
    (one,) = platform(clocked("big", FOUR, power=power)).processors
    assert 500 not in megahertz(considered_points(one, 3))
    assert 500 in megahertz(considered_points(one, 4))


def test_without_clock_scaling_there_is_the_default_point_only():
    (one,) = platform(processor("big")).processors
    assert considered_points(one, 3) == (one.point,)


@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("one", A311D.processors, ids=A311D.names)
def test_of_the_a311d_no_more_are_considered_than_asked_for(one, most):
    points = considered_points(one, most)
    assert len(set(points)) == most
    assert points[0] == one.point


def test_there_is_a_table_for_every_combination_and_that_of_the_defaults_is_first():
    graph = small_graph()
    soc = platform(clocked("big", TWO), clocked("little", FOUR))
    found = settings(graph, soc, most=3, profiles=[])
    clocks = [
        [p.point.frequency_hz for p in setting.platform.processors]
        for setting in found.combinations
    ]
    assert len(clocks) == 6
    assert clocks[0] == [2e9, 2e9]
    assert len({tuple(each) for each in clocks}) == 6
    (alone,) = settings(graph, soc, most=1, profiles=[]).combinations
    assert alone.costs == found.combinations[0].costs
    for setting in found.combinations:
        assert setting.costs == build_cost_table(graph, setting.platform, profiles=[])


def test_shares_of_coverage_add_up_to_one_over_all_points():
    found = settings(small_graph(), platform(clocked("big", FOUR)), most=4, profiles=[])
    assert_shares_add_up_to_one(found.coverage)


def test_a_platform_of_single_points_says_so():
    single = clocked("little", [(2e9, 1.0)])
    with pytest.raises(PlatformError) as caught:
        settings(small_graph(), platform(processor("big"), single), most=3, profiles=[])
    assert str(caught.value) == (
        "platform 'by-hand' leaves no operating points to choose from (big has a single point, "
        "little has a single point); map without DVFS, or add points and clock.scaling to the "
        "platform"
    )


def test_points_that_the_platform_does_not_say_how_to_scale_to_are_named():
    soc = load_platform("bst-a1000")
    with pytest.raises(PlatformError, match=r"\(npu states no clock\.scaling, dsp"):
        settings(small_graph(), soc, most=3)


def test_too_many_combinations_are_refused():
    soc = platform(*(clocked(f"p{i}", FOUR, cores=[i]) for i in range(5)))
    with pytest.raises(PlatformError, match=f"1024 combinations .* more than {MOST_COMBINATIONS}"):
        settings(small_graph(), soc, most=4, profiles=[])
