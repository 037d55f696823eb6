"""docs/packaged_runs.py says how far predictions are off, and why."""

from __future__ import annotations

import pytest

from docs.packaged_runs import error, reason, section

EXACT = {"period": (2e-3, 2e-3), "period work": (2e-3, 2e-3)}
EXACT |= {"latency": (4e-3, 4e-3), "latency work": (4e-3, 4e-3)}
ROW = EXACT | {"plan": "cpu0 │ cpu1", "others": 0.01}


def test_an_error_is_predicted_over_measured() -> None:
    assert error((3.0, 2.0)) == pytest.approx(0.5)
    assert error((1.0, 2.0)) == pytest.approx(-0.5)


def test_a_good_prediction_needs_no_reason() -> None:
    assert reason(ROW) == "–"
    assert reason(ROW | {"period": (1.081e-3, 1e-3)}) != "–"
    assert reason(ROW | {"period": (1.079e-3, 1e-3)}) == "–"


def test_the_larger_part_of_an_error_is_its_reason() -> None:
    quick = ROW | {"period": (2e-3, 1.5e-3), "period work": (2e-3, 1.6e-3)}
    assert reason(quick) == "period: segments take 20% less than when profiled"
    slow = ROW | {"latency": (4e-3, 5e-3), "latency work": (4e-3, 4.9e-3)}
    assert reason(slow) == "latency: segments take 22% more than when profiled"
    besides = ROW | {"period": (2e-3, 2.3e-3), "period work": (2e-3, 2.1e-3)}
    assert reason(besides) == "period: 200 µs a frame besides the segments' work"


def test_the_section_has_medians_and_a_line_for_each_plan() -> None:
    worse = ROW | {"period": (2e-3, 1.6e-3), "others": 0.2}
    told = section({"a/m.onnx": [ROW, worse]}, "one core")
    assert "2 plans of 1 models: period 12.5%, latency 0.0%, both 0.0%." in told
    assert "at most 20% of the machine" in told
    lines = [line for line in told.splitlines() if line.startswith("| `m.onnx`")]
    assert lines[0] == (
        "| `m.onnx` | cpu0 │ cpu1 | 2.00 | 2.00 | +0.0% | 4.00 | 4.00 | +0.0% | – |"
    )
    assert "| 2.00 | 1.60 | +25.0% |" in lines[1]
