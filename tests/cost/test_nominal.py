import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.clock import nominal_time
from parapipe.errors import CostError
from parapipe.graph.operator_graph import Work
from tests.cases.hand_built import platform, processor

AMOUNT = st.integers(0, 10**12)
(CPU,) = platform(processor("big")).processors


def test_products_count_where_they_take_longer_than_the_bytes():
    assert nominal_time(CPU, Work(10**6, 1000, 1000), "float32", "gemm").value == pytest.approx(
        1.01e-3
    )


def test_bytes_count_where_they_take_longer_than_the_products():
    assert nominal_time(CPU, Work(10, 10**6, 10**6), "float32", "gemm").value == pytest.approx(
        2.01e-3
    )


def test_unknown_work_is_priced_by_its_bytes():
    work = Work(0, 4000, 1000, modelled=False)
    assert nominal_time(CPU, work, "int8", "gemm").value == pytest.approx(1.5e-5)


RATES = {
    "source": "guess",
    "compute": {"conv3x3": 2.0, "default": 0.5},
    "bandwidth": {"conv1x1": 0.25, "default": 1.0},
    "input_channels": 32,
}
(NPU,) = platform(processor("big", rates=RATES)).processors


def test_a_class_has_its_own_compute_rate_and_others_the_default():
    work = Work(10**6, 1000, 1000)  # 1 ms at the peak
    assert nominal_time(NPU, work, "float32", "conv3x3").value == pytest.approx(0.51e-3)
    assert nominal_time(NPU, work, "float32", "gemm").value == pytest.approx(2.01e-3)


def test_a_class_has_its_own_bandwidth_and_others_the_default():
    work = Work(10, 10**6, 10**6)  # 2 ms at the memory's bandwidth
    assert nominal_time(NPU, work, "float32", "conv1x1").value == pytest.approx(8.01e-3)
    assert nominal_time(NPU, work, "float32", "conv3x3").value == pytest.approx(2.01e-3)
    moved = Work(0, 10**6, 10**6)
    assert nominal_time(NPU, moved, "float32", "pool").value == pytest.approx(2.01e-3)


@pytest.mark.parametrize(("channels", "counted"), [(1, 32), (31, 32), (32, 32), (33, 64), (64, 64)])
def test_input_channels_count_in_multiples(channels, counted):
    macs = 10**6 * channels
    time = nominal_time(NPU, Work(macs, 10, 10), "float32", "conv3x3", channels)
    assert time.value == pytest.approx(1e-5 + 10**6 * counted / 2e9)
    # what explains the time computes the same
    assert eval(time.numbers, {"max": max}) == pytest.approx(time.value)


def test_what_is_no_convolution_has_no_channels_to_count():
    time = nominal_time(NPU, Work(10**6, 10, 10), "float32", "depthwise", 0)
    assert time.value == pytest.approx(2.01e-3)


def test_without_rates_channels_are_as_they_are():
    time = nominal_time(CPU, Work(10**6, 10, 10), "float32", "conv3x3", 3)
    assert time.value == pytest.approx(1.01e-3)


def test_a_data_type_without_a_peak_is_told():
    with pytest.raises(CostError, match="processor 'big' states no peak_macs_per_s for int8"):
        nominal_time(CPU, Work(1, 1, 1), "int8", "gemm")


@given(AMOUNT, AMOUNT, AMOUNT, AMOUNT)
def test_more_work_is_never_cheaper_and_no_time_is_negative(macs, size, more_macs, more_bytes):
    time_s = nominal_time(CPU, Work(macs, size, size), "float32", "gemm").value
    assert time_s >= CPU.launch.overhead_s >= 0
    more = Work(macs + more_macs, size + more_bytes, size)
    assert nominal_time(CPU, more, "float32", "gemm").value >= time_s
