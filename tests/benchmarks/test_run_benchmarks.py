"""The benchmarks of runs compute what they say; nothing here measures time."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import run_equality, run_overhead
from benchmarks.run_cases import QUIET, Burst, Case
from benchmarks.run_page import page, rank_correlation, rmspe
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder


def case(others):
    found = Case("net", "one session", "threads: 1", "", None, {}, run=lambda: Burst(0, 0, {}, 0))
    found.bursts += [Burst(n + 1.0, n + 2.0, {"": 1.0}, share) for n, share in enumerate(others)]
    return found


def test_errors_are_relative_to_what_was_measured():
    assert rmspe([1.1, 0.9], [1.0, 1.0]) == pytest.approx(0.1)
    assert rmspe([1.0, 4.0], [2.0, 4.0]) == pytest.approx(0.5 / 2**0.5)


def test_ranks_are_compared_and_not_values():
    assert rank_correlation([1, 2, 3], [10, 20, 1000]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)


def test_quiet_bursts_count_where_there_are_three():
    found = case([0.0, QUIET, 0.5, 0.01, 0.9])
    assert [burst.waited for burst in found.counted] == [0.0, 0.01, QUIET]
    assert found.record()["period_s"] == 2


def test_the_quietest_three_count_where_fewer_are_quiet():
    assert [burst.waited for burst in case([0.9, 0.3, 0.01, 0.6]).counted] == [0.01, 0.3, 0.6]


def test_a_page_tells_errors_and_ratios():
    alone = {
        "network": "net", "configuration": "one session", "kind": "", "stages": "",
        "predicted_period_s": None, "sustained_period_s": None, "predicted_latency_s": None,
        "period_s": 0.1, "work_period_s": 0.1, "latency_s": 0.1, "work_latency_s": 0.1,
        "bursts": 3, "waited": 0.0, "segment_period_s": None,
    }  # fmt: skip
    plan = alone | {
        "configuration": "c1", "kind": "sequential", "stages": "cpu0[1]",
        "predicted_period_s": 0.1, "sustained_period_s": 0.1, "predicted_latency_s": 0.1,
        "segment_period_s": 0.1,
    }  # fmt: skip
    split = plan | {"kind": "pipe-only", "stages": "cpu0[1] │ cpu1[2]", "period_s": 0.05}
    text = page([alone, alone | {"period_s": 0.08}, plan, split], {"CPU": "some"})
    (speeds,) = (line for line in text.splitlines() if line.startswith("| net | measured"))
    assert [cell.strip() for cell in speeds.split("|")[3:-1]] == [
        "10.00", "12.50", "10.00", "20.00", "cpu0[1] │ cpu1[2]", "2.00", "1.25"
    ]  # fmt: skip


def test_a_difference_is_a_share_of_the_largest_number():
    expected = {"y": np.array([0.0, -4.0]), "z": np.array([0.0])}
    found = {"y": np.array([0.1, -4.0]), "z": np.array([0.0])}
    assert run_equality.error(found, expected) == pytest.approx(0.025)


@pytest.mark.parametrize("processors", [1, 2])
def test_a_chain_of_the_overhead_is_a_chain(processors, tmp_path):
    run_overhead.chain(tmp_path, 5, processors)
    folder = open_folder(Path(tmp_path))
    assert [segment.processor for segment in folder.segments] == [
        f"cpu{n % processors}" for n in range(5)
    ]
    x = np.array([0.3], np.float32)
    (result,) = Executor(folder).run([{"t0": x}])
    for _ in range(5):
        x = 1 / (1 + np.exp(-x))
    assert result["t5"] == pytest.approx(x, rel=1e-5)
