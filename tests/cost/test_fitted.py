from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.fitted import ALL_MOVES, ALL_PRODUCTS, fit_profile, kinds_of
from parapipe.cost.profile import Measurement, Profile, shipped_profiles
from parapipe.cost.signature import Signature

WORK = st.integers(0, 10**11)


def measurement(kind, operator_class, macs, size_bytes, time_s, *, kernel="", output="8x8x8"):
    signature = Signature(kind, kernel, kernel and "1x1", "", f"{macs}x{size_bytes}", output, "f")
    return Measurement(
        signature, operator_class, macs, size_bytes, "cpu", 1e9, time_s, 1, 0, "timed"
    )


@pytest.fixture(scope="module")
def shipped():
    (profile,) = shipped_profiles("amlogic-a311d")
    return profile, fit_profile(profile)


def test_the_times_of_a_linear_machine_are_found_exactly():
    def time_s(macs, size_bytes):
        return 1e-4 + macs / 5e9 + size_bytes / 2e9

    sizes = [(10**6, 10**5), (10**7, 10**5), (10**7, 10**6), (10**8, 10**7), (10**9, 10**6)]
    rows = [measurement("Conv", "conv1x1", m, b, time_s(m, b), kernel="1x1") for m, b in sizes]
    fit = fit_profile(Profile("mine", tuple(rows))).fits["cpu", "f", "conv1x1"]
    assert fit.coefficients[:3] == pytest.approx((1e-4, 2e-10, 5e-10))
    assert fit.largest_error < 1e-9
    assert fit.signatures == 5


def test_a_kind_with_few_signatures_takes_the_wider_fit_scaled():
    relus = [
        measurement("Relu", "elementwise", 0, b, 1e-5 + b / 1e9)
        for b in (10**4, 10**5, 10**6, 10**7)
    ]
    slow = measurement("Softmax", "softmax", 0, 10**5, 3e-4)
    fits = fit_profile(Profile("mine", (*relus, slow))).fits
    wide = fits["cpu", "f", ALL_MOVES]
    fit = fits["cpu", "f", "Softmax"]
    assert fit.time(slow.signature, 0, 10**5).value == pytest.approx(3e-4)
    assert _ratio(fit) == pytest.approx(_ratio(wide))


def _ratio(fit):
    return fit.coefficients.size_bytes / fit.coefficients.operators


def test_an_operator_far_smaller_than_any_measured_takes_a_launch_at_least():
    sizes = (10**4, 10**5, 10**6, 10**7)
    relus = [measurement("Relu", "elementwise", 0, b, 2e-5 + b / 1e9) for b in sizes]
    concats = [measurement("Concat", "concat", 0, b * 100, b * 1e-7) for b in sizes]
    fits = fit_profile(Profile("mine", (*relus, *concats))).fits
    fit = fits["cpu", "f", "Concat"]
    assert fit.coefficients.operators == pytest.approx(0, abs=1e-9)
    assert fits["cpu", "f", "Relu"].launch_s == fit.launch_s
    assert 1e-5 < fit.launch_s <= min(m.time_s for m in relus)
    assert fit.time(concats[0].signature, 0, 100).value == fit.launch_s
    assert fit.time(concats[0].signature, 0, 10**7).value == pytest.approx(1e-2)


def test_a_launch_takes_no_longer_than_the_shortest_measured_operator(shipped):
    profile, model = shipped
    for processor in profile.processors:
        shortest_s = min(m.time_s for m in profile.measurements if m.processor == processor)
        launches = {fit.launch_s for fit in model.fits.values() if fit.processor == processor}
        assert len(launches) == 1
        assert 1e-5 < launches.pop() <= shortest_s


def test_a_time_is_extrapolated_where_the_operator_is_smaller_or_larger_than_those_measured():
    sizes = [(10**6, 10**5), (10**7, 10**5), (10**7, 10**6), (10**8, 10**7)]
    rows = [measurement("Conv", "conv1x1", m, b, 1e-4 + m / 5e9, kernel="1x1") for m, b in sizes]
    fit = fit_profile(Profile("mine", tuple(rows))).fits["cpu", "f", "conv1x1"]
    signature = rows[0].signature
    assert not fit.extrapolates(signature, 10**6, 10**5)
    assert not fit.extrapolates(signature, 10**8, 10**7)
    for macs, size_bytes in ((10**6 - 1, 10**5), (10**8 + 1, 10**6), (10**7, 10**5 - 1)):
        assert fit.extrapolates(signature, macs, size_bytes)
    assert fit.extrapolates(signature, 10**7, 10**7 + 1)


def test_a_pool_is_priced_by_what_its_windows_read():
    def pool(side, window):
        reads = side * side * window * window
        return measurement(
            "MaxPool", "pool", 0, 10**6, reads / 1e9, kernel=f"{window}x{window}",
            output=f"1x{side}x{side}",
        )  # fmt: skip

    rows = tuple(pool(side, window) for side in (10, 100, 300) for window in (2, 3))
    fit = fit_profile(Profile("mine", rows)).fits["cpu", "f", "MaxPool"]
    assert fit.coefficients.steps == pytest.approx(1e-9)
    assert fit.largest_error < 1e-6


def test_the_finest_kind_that_was_fitted_counts(shipped):
    _, model = shipped
    conv = Signature("Conv", "3x3", "2x2", "", "8x8x8", "8x4x4", "float32")
    assert kinds_of(conv, "conv3x3", 9) == ("conv3x3 strided", "conv3x3", ALL_PRODUCTS)
    assert model.lookup("big", conv, "conv3x3", 9).kind == "conv3x3 strided"
    product = replace(conv, type="MatMul", kernel="", strides="")
    assert model.lookup("big", product, "other", 9).kind == ALL_PRODUCTS
    move = replace(conv, type="Transpose", kernel="", strides="")
    assert model.lookup("big", move, "move", 0).kind == ALL_MOVES
    assert model.lookup("npu", conv, "conv3x3", 9) is None


@pytest.mark.parametrize(
    ("output", "kind"), [("1000", "gemm"), ("1x1000", "gemm"), ("2x1000", "conv1x1")]
)
def test_a_product_of_several_rows_is_taken_for_a_convolution_by_one_pixel(shipped, output, kind):
    _, model = shipped
    product = Signature("MatMul", "", "", "", "8", output, "float32")
    assert model.lookup("big", product, "gemm", 9).kind == kind


@given(work=st.tuples(WORK, WORK, WORK, WORK))
def test_more_work_is_never_cheaper_and_no_time_is_negative(shipped, work):
    macs, size_bytes, more_macs, more_bytes = work
    _, model = shipped
    for fit in model.fits.values():
        signature = Signature(fit.kind, "", "", "", "1", "64x14x14", "float32")
        time_s = fit.time(signature, 1 + macs, size_bytes).value
        assert time_s >= fit.launch_s
        assert fit.time(signature, 1 + macs + more_macs, size_bytes + more_bytes).value >= time_s


@given(st.data())
def test_near_a_measured_operator_more_work_is_never_cheaper_either(shipped, data):
    profile, model = shipped
    m = data.draw(st.sampled_from(profile.measurements))
    fit = model.lookup(m.processor, m.signature, m.operator_class, m.macs)
    ratios = data.draw(st.lists(st.floats(1, 1.3), min_size=4, max_size=4))
    macs, size_bytes = m.macs / 1.15 * ratios[0], m.size_bytes / 1.15 * ratios[1]
    time_s = fit.time(m.signature, macs, size_bytes).value
    assert fit.time(m.signature, macs * ratios[2], size_bytes * ratios[3]).value >= time_s


def test_operators_measured_with_their_activation_count_only_where_there_are_too_few_without():
    sizes = (10**4, 10**5, 10**6, 10**7, 10**8)
    alone = [measurement("Relu", "elementwise", 0, b, b / 1e9) for b in sizes]
    joint = [replace(m, then="Add", time_s=3 * m.time_s) for m in alone]
    fit = fit_profile(Profile("mine", (*alone, *joint))).fits["cpu", "f", "Relu"]
    assert fit.coefficients.size_bytes == pytest.approx(1e-9)
    fit = fit_profile(Profile("mine", tuple(joint))).fits["cpu", "f", "Relu"]
    assert fit.coefficients.size_bytes == pytest.approx(3e-9)


def test_a_fit_of_one_data_type_prices_no_other(shipped):
    _, model = shipped
    relu = Signature("Relu", "", "", "", "8x4x4", "8x4x4", "float32")
    assert model.lookup("big", relu, "elementwise", 0).dtype == "float32"
    assert model.lookup("big", replace(relu, dtype="int8"), "elementwise", 0) is None


def test_every_fit_takes_time_for_what_it_was_fitted_to(shipped):
    profile, model = shipped
    for m in profile.measurements:
        fit = model.lookup(m.processor, m.signature, m.operator_class, m.macs)
        assert fit.time(m.signature, m.macs, m.size_bytes).value > 0


def test_the_convolutions_of_the_board_are_met_within_a_fifth(shipped):
    _, model = shipped
    errors = {(f.processor, f.kind): f.mean_error for f in model.fits.values()}
    for processor in ("big", "little", "gpu"):
        for kind in ("conv1x1", "conv3x3 plain", "conv3x3 strided", "conv-other", "depthwise"):
            assert errors[processor, kind] < 0.2
