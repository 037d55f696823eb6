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
    assert nominal_time(CPU, Work(10**6, 1000, 1000), "float32").value == pytest.approx(1.01e-3)


def test_bytes_count_where_they_take_longer_than_the_products():
    assert nominal_time(CPU, Work(10, 10**6, 10**6), "float32").value == pytest.approx(2.01e-3)


def test_unknown_work_is_priced_by_its_bytes():
    work = Work(0, 4000, 1000, modelled=False)
    assert nominal_time(CPU, work, "int8").value == pytest.approx(1.5e-5)


def test_a_data_type_without_a_peak_is_told():
    with pytest.raises(CostError, match="processor 'big' states no peak_macs_per_s for int8"):
        nominal_time(CPU, Work(1, 1, 1), "int8")


@given(AMOUNT, AMOUNT, AMOUNT, AMOUNT)
def test_more_work_is_never_cheaper_and_no_time_is_negative(macs, size, more_macs, more_bytes):
    time_s = nominal_time(CPU, Work(macs, size, size), "float32").value
    assert time_s >= CPU.launch.overhead_s >= 0
    more = Work(macs + more_macs, size + more_bytes, size)
    assert nominal_time(CPU, more, "float32").value >= time_s
