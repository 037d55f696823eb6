from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.signature import CACHED, Signature, amounts_of


def conv(output, *, attributes="", kind="Conv"):
    return Signature(kind, "3x3", "1x1", attributes, "8x4x4", output, "float32")


def test_a_convolution_unfolds_its_input_once_for_all_channels():
    amounts = amounts_of(conv("16x4x4"), 16 * 16 * 72, 1000)
    assert amounts == (1, 16 * 16 * 72, 1000, 16 * 72, 16 * 16, 72, 0)


def test_each_group_of_a_convolution_unfolds_its_own_input():
    amounts = amounts_of(conv("16x4x4", attributes="dilations=2x2 group=4"), 16 * 16 * 18, 1000)
    assert amounts.columns == 16 * 18 * 4


def test_the_channels_of_a_product_of_matrices_stand_last():
    signature = Signature("MatMul", "", "", "", "8x32 32x4", "8x4", "float32")
    assert amounts_of(signature, 8 * 4 * 32, 1000).columns == 8 * 32


def test_what_multiplies_nothing_moves_and_reads_windows_only():
    assert amounts_of(conv("8x2x2", kind="MaxPool"), 0, 1000) == (1, 8 * 4 * 9, 1000, 0, 0, 0, 0)


def test_constants_beyond_the_cache_are_fetched_again():
    fits = amounts_of(conv("1024x1x1"), 128 * 1024, 1)
    assert CACHED == 128 * 1024
    assert fits.spilled == 0
    assert amounts_of(conv("1024x1x1"), 2 * 128 * 1024, 1).spilled == 128 * 1024


@given(*[st.integers(1, 10**10)] * 4)
def test_no_amount_falls_when_work_rises(macs, size_bytes, more_macs, more_bytes):
    less = amounts_of(conv("64x7x7"), macs, size_bytes)
    more = amounts_of(conv("64x7x7"), macs + more_macs, size_bytes + more_bytes)
    assert all(a <= b * (1 + 1e-12) for a, b in zip(less, more, strict=True))
