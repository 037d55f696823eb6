"""The benchmark of streams computes what it says; nothing here measures time."""

import pytest

from benchmarks.streams_here import (
    COUNTS,
    STRATEGIES,
    Case,
    load_rows,
    overhead_rows,
    page,
    plan_on,
    stream_rows,
    streams_on,
    with_streams,
)
from parapipe.cost.profile import write_profile
from parapipe.platform.load import read_platform
from parapipe.strategies.cut import pieces_of
from tests.cases.divided import convolutions
from tests.cases.soc_texts import SOC


def case(latency_s, *busy_s, pieces=10):
    return Case(None, lambda _: None, pieces, [latency_s], [busy_s])


@pytest.fixture
def found():
    cases = {("threads", 2): case(0.05)}
    for mode in STRATEGIES:
        cases[mode, 1] = case(0.1, 0.098)
        cases[mode, 2] = case(0.08, 0.04, 0.05)
        cases[mode, 4] = case(0.04, 0.01, 0.02, 0.03, 0.04)
    return {"net": cases}


def test_gains_are_over_one_stream(found):
    for row in stream_rows(found):
        assert row[3:] == ("100.0", "80.0", "40.0", "1.25", "2.50", "50.0")


def test_loads_are_compared_with_the_longest(found):
    (row,) = load_rows(found)
    assert row == ("net", *("20.0%", "75.0%") * len(STRATEGIES))


def test_overhead_is_what_a_frame_takes_beyond_its_pieces(found):
    for row in overhead_rows(found):
        assert row[2:] == (10, "9.80", "200", "2.0%")
    assert "| net | M = 1 | 10 | 9.80 | 200 | 2.0% |" in page(found, {"CPU": "some"})


@pytest.fixture
def platform(tmp_path):
    """Two identical processors, called as in the file that one of them is of."""
    cpu, gpu, links = map(SOC.index, ("  - name: cpu", "  - name: gpu", "links:"))
    other = SOC[cpu:gpu].replace("name: cpu", "name: gpu").replace("[0, 1]", "[2, 3]")
    text = SOC[:gpu] + other + SOC[links:]
    file = tmp_path / "soc.yaml"
    file.write_text(text)
    return with_streams(file, tmp_path)


def test_four_streams_on_two_cores_are_two_on_each_in_turn(platform):
    soc = read_platform(platform.read_text(), "soc.yaml")
    for count in COUNTS:
        on, lanes = streams_on(soc, count)
        names = [on.names[p] for p in lanes]
        assert names == {
            1: ["cpu"], 2: ["cpu", "gpu"],
            4: ["cpu-1of2", "gpu-1of2", "cpu-2of2", "gpu-2of2"],
        }[count]  # fmt: skip


def test_a_plan_has_each_cluster_whole_on_its_stream(platform, tmp_path):
    soc, profile = read_platform(platform.read_text(), "soc.yaml"), tmp_path / "none.csv"
    write_profile(profile, [])
    on, lanes = streams_on(soc, 4)
    for strategy in STRATEGIES.values():
        plan = plan_on(convolutions(8, 8, 8, 8, 8, 8), on, lanes, profile, strategy.most)
        names = pieces_of(plan, strategy.cut).values()
        assert not any("." in name for name in names)
        assert {each.name for each in plan.processors} <= {on.names[p] for p in lanes}
