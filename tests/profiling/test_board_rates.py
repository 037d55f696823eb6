"""What classes reach on measured boards: worked out by hand from a few rows, and by kind."""

import pytest

from parapipe.cost.profile import shipped_profiles
from parapipe.platform.fields import OPERATOR_CLASSES
from parapipe.platform.load import load_platform
from parapipe.profiling.board_rates import BOARDS, KindRates, kind_rates, peak_of


def test_a_share_of_the_peak_is_multiply_accumulates_over_seconds_without_launches():
    (profile,) = shipped_profiles("amlogic-a311d")
    rows = [
        m
        for m in profile.measurements
        if (m.processor, m.frequency_hz, m.operator_class) == ("gpu", 800e6, "conv3x3")
    ]
    peak = 2 * 24 * 800e6 * 0.38  # two cores of 24 a cycle, of which 38 % are reached
    time_s = sum(max(m.time_s - 57e-6, 0.1 * m.time_s) for m in rows)
    share = sum(m.macs for m in rows) / time_s / peak
    found = kind_rates("gpu", ["a311d"])
    assert found.share_of_peak["conv3x3"] == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_both_boards_agree_on_each_class_within_a_factor_of_two(kind):
    one, other = (kind_rates(kind, [chip]) for chip in BOARDS)
    for field in ("share_of_peak", "bytes_per_mac", "bytes_per_s"):
        first, second = getattr(one, field), getattr(other, field)
        assert first.keys() == second.keys()
        assert all(0.5 < first[name] / second[name] < 2 for name in first)


def test_both_boards_together_are_the_mean_over_their_processors():
    one, other = (kind_rates("gpu", [chip]).bytes_per_s["gemm"] for chip in BOARDS)
    assert kind_rates("gpu").bytes_per_s["gemm"] == pytest.approx((one * other) ** 0.5)
    little_big, rest = (kind_rates("cpu", [chip]).bytes_per_mac["pool"] for chip in BOARDS)
    assert kind_rates("cpu").bytes_per_mac["pool"] == pytest.approx((little_big * rest) ** 0.5)


@pytest.mark.parametrize("kind", ["npu", "dsp"])
def test_kinds_that_no_board_measured_have_no_rates(kind):
    assert kind_rates(kind) is None


def test_ratios_of_a_processor_follow_from_its_peak_and_bandwidth():
    rates = KindRates({"conv1x1": 0.5}, {"elementwise": 0.25, "pool": 0.1}, {"gemm": 2e9})
    processor = load_platform("amlogic-a311d").processors[0]
    peak, bandwidth = peak_of(processor), processor.memory.bandwidth_bytes_per_s
    ratios = rates.of(processor)
    assert peak == processor.peak.macs_per_s["float32"]
    assert ratios.launch_s == processor.launch.overhead_s
    assert ratios.compute["conv1x1"] == ratios.compute["matmul"] == 0.5  # like one another
    assert ratios.bandwidth["pool"] == pytest.approx(0.1 * peak / bandwidth)
    assert ratios.bandwidth["move"] == pytest.approx(0.25 * peak / bandwidth)  # as element-wise
    assert ratios.bandwidth["gemm"] == pytest.approx(2e9 / bandwidth)
    assert ratios.compute.keys() == ratios.bandwidth.keys() == set(OPERATOR_CLASSES)
