"""What operators cost on a part of a cluster: measured, or scaled from the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.operating_points import MOST_COMBINATIONS, settings
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import signature_of
from parapipe.errors import PlatformError
from parapipe.platform.divided import variants
from tests.cases.divided import convolutions, divided, divisions
from tests.cases.hand_built import platform, processor

GRAPH = convolutions(8)
CLOCK = {
    "source": "guess",
    "default_frequency_hz": 2e9,
    "points": [{"frequency_hz": hz, "voltage_v": 1.0} for hz in (1e9, 2e9)],
    "scaling": {"source": "guess", "compute_share": {"default": 1.0}},
}


def measured(**times_s):
    row = Measurement(
        signature=signature_of(GRAPH.operators[0], GRAPH),
        operator_class="conv3x3",
        macs=GRAPH.operators[0].work.macs,
        size_bytes=0,
        processor="big",
        frequency_hz=1e9,
        time_s=0.01,
        rows=1,
        spread=0.0,
        method="block",
    )
    rows = (
        replace(row, processor=name.replace("_", "-"), time_s=time_s)
        for name, time_s in times_s.items()
    )
    return [Profile("test", tuple(rows))]


def costs(soc, profiles=()):
    _, variant = variants(soc)
    return build_cost_table(GRAPH, variant, profiles=profiles)


def test_a_nominal_time_is_scaled_and_stays_nominal():
    table = costs(divided((2, 2), share=0.6))
    (whole,) = build_cost_table(GRAPH, divided(), profiles=[]).cost(0, 0).parts
    (part,) = table.cost(0, 2).parts
    assert part.provenance == "nominal"
    assert part.source.endswith("; scaled from 4 to 2 cores of big")
    assert part.time_s == pytest.approx(whole.time_s * 1.6)
    assert part.energy_j == pytest.approx(whole.energy_j * 0.8)


def test_a_measured_time_of_the_whole_is_scaled_and_counts_as_fitted():
    table = costs(divided((1, 3), share=0.6), measured(big=0.01))
    for p, slowdown in ((2, 2.8), (3, 1.2)):
        (part,) = table.cost(0, p).parts
        assert part.provenance == "fitted"
        assert part.time_s == pytest.approx(0.01 * slowdown)


def test_measured_times_of_a_part_count_before_what_is_scaled():
    table = costs(divided((1, 3)), measured(big=0.01, big_4=0.123))
    (part,) = table.cost(0, 2).parts
    assert (part.provenance, part.time_s) == ("measured", 0.123)
    assert table.cost(0, 3).parts[0].provenance == "fitted"


def test_a_cluster_that_is_divided_runs_nothing():
    assert str(costs(divided((2, 2))).unsupported(0, 0)) == "big is divided into big-4-5, big-6-7"


def test_there_is_a_table_for_each_division_the_undivided_one_first():
    found = settings(GRAPH, divided((2, 2), (1, 3)), most=1, profiles=[])
    assert [each.costs.processors[2:] for each in found.combinations] == [
        (), ("big-4-5", "big-6-7"), ("big-4", "big-5-7")
    ]  # fmt: skip
    (alone,) = settings(GRAPH, divided(), most=1, profiles=[]).combinations
    assert found.combinations[0].costs == alone.costs


def test_parts_have_the_clock_of_their_cluster():
    found = settings(GRAPH, divided((2, 2), clock=CLOCK), most=2, profiles=[])
    clocks = [
        [p.point.frequency_hz / 1e9 for p in each.platform.processors]
        for each in found.combinations
    ]
    assert clocks == [[2, 1], [1, 1], [2, 1, 2, 2], [1, 1, 1, 1]]
    for each in found.combinations:
        assert each.costs == build_cost_table(GRAPH, each.platform, profiles=[])


def test_too_many_divisions_are_refused():
    own = divisions(
        (1, 5), (2, 4), (3, 3), (4, 2), (5, 1), (1, 1, 4)
    )  # 7⁹ with none: none of them is made
    many = platform(
        *(processor(f"p{i}", cores=list(range(6 * i, 6 * i + 6)), divisions=own) for i in range(9))
    )
    with pytest.raises(PlatformError, match=f"more than {MOST_COMBINATIONS}; state fewer"):
        settings(GRAPH, many, most=1, profiles=[])
