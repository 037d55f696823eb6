"""Tables of slowdowns out of measured co-runs, by hand."""

import pytest

from parapipe.cost.co_run_fit import CoRunSample, fit_slowdowns, read_co_run_samples
from parapipe.errors import CostError
from parapipe.platform.load import read_platform
from tests.cases.soc_texts import SOC, spoil

PLATFORM = read_platform(SOC, "soc.yaml")
GPUS = "  - name: gpu\n    count: 2\n"
BETWEEN = "links:\n  - {from: gpu, to: gpu, latency_s: 0, source: guess}\n"
THREE = read_platform(spoil(("  - name: gpu\n", GPUS), ("links:\n", BETWEEN)), "soc.yaml")


def sample(factor, *, busy=("gpu",), own=None, moved=0.0, alone_s=1e-3, spread=0.0):
    return CoRunSample("x", "cpu", tuple(busy), own, None, moved, alone_s, factor, spread)


def test_times_of_one_class_are_added_up():
    # 1 ms takes 2 ms, and 3 ms takes 3.6: together 5.6 of 4.
    (row,) = fit_slowdowns([sample(2.0), sample(1.2, alone_s=3e-3)], PLATFORM)
    assert (row.processor, row.busy, row.operator_class) == ("cpu", ("gpu",), "compute")
    assert (row.factor, row.samples) == (1.4, 2)
    # ln 2 / 1.4 and ln 1.2 / 1.4 from the middle.
    assert row.spread == pytest.approx((0.3567**2 + 0.1542**2) ** 0.5, rel=1e-3)


def test_what_an_operator_moves_tells_its_class():
    # The CPU draws 8 GB/s at most: from 4 GB/s on, operators are memory-bound.
    below, above = sample(1.1, moved=3.9e6), sample(1.9, moved=4e6, spread=0.2)
    rows = fit_slowdowns([below, above], PLATFORM)
    assert [(r.operator_class, r.factor) for r in rows] == [("compute", 1.1), ("memory", 1.9)]
    assert rows[1].spread == 0.2
    assert rows[1].section() == {
        "processor": "cpu", "busy": ["gpu"], "class": "memory", "factor": 1.9, "spread": 0.2,
    }  # fmt: skip


def test_no_factor_is_below_one_or_below_that_of_a_part_of_what_is_busy():
    both = ("gpu0", "gpu1")
    rows = fit_slowdowns(
        [sample(0.9, busy=["gpu0"]), sample(1.5, busy=["gpu1"]), sample(1.3, busy=both)], THREE
    )
    assert [row.factor for row in rows] == [1.0, 1.5, 1.5]


def test_a_table_is_a_law_that_the_platform_file_takes():
    samples = [sample(1.3, own="compute"), sample(1.7, own="memory")]
    rows = [row.section() for row in fit_slowdowns(samples, PLATFORM)]
    text = f"co_run: {{slowdowns: {rows}, source: guess}}\nlinks:\n".replace("'", '"')
    law = read_platform(spoil(("links:\n", text)), "soc.yaml").co_run
    assert [row.factor for row in law.slowdowns] == [1.3, 1.7]


def test_a_file_of_co_runs_is_read_and_its_mistakes_are_told(tmp_path):
    file = tmp_path / "co-runs.csv"
    head = "name,processor,busy,class,busy_class,moved_bytes,alone_s,factor,spread,rounds\n"
    file.write_text(head + "memory,cpu,gpu,memory,memory,67108864,0.003,1.5,0.01,7\n")
    (row,) = read_co_run_samples(file)
    assert (row.busy, row.operator_class, row.busy_class, row.factor) == (
        ("gpu",), "memory", "memory", 1.5,
    )  # fmt: skip
    file.write_text(head + "x,cpu,cpu,memory,warm,1,0,1.5,,7\n")
    with pytest.raises(CostError) as caught:
        read_co_run_samples(file)
    for sentence in (
        "busy names 'cpu' itself",
        "busy_class is 'warm' but must be one of compute, memory",
        "alone_s is '0' but must be a positive finite number",
    ):
        assert sentence in str(caught.value)


def test_processors_that_the_platform_does_not_have_are_named():
    with pytest.raises(CostError, match="does not have: npu; it has cpu, gpu"):
        fit_slowdowns([sample(1.0, busy=["npu"])], PLATFORM)
