from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.board_fits import PowerSample, fit_power, read_power_samples
from parapipe.errors import CostError

HEADER = "processor,frequency_hz,voltage_v,power_w,idle_power_w,utilisation,network\n"
POINTS = ((0.5e9, 0.8), (1e9, 0.9), (1.5e9, 1.0), (2e9, 1.2))


def samples(alpha, beta, *, processor="big", points=POINTS, idle_w=2.0):
    return [
        PowerSample(processor, f, v, idle_w + alpha * v * v * f * u + beta * v, idle_w, u, network)
        for f, v in points for network, u in (("one", 1.0), ("two", 0.5))
    ]  # fmt: skip


@given(alpha=st.floats(1e-11, 1e-8), beta=st.floats(1e-3, 2))
def test_the_coefficients_of_a_processor_that_keeps_the_equation_are_found(alpha, beta):
    (fit,) = fit_power(samples(alpha, beta))
    assert (fit.alpha_w_per_v2_hz, fit.beta_w_per_v) == pytest.approx((alpha, beta), rel=1e-4)
    assert fit.errors.largest < 1e-5
    assert (fit.samples, fit.operating_points, fit.left_out) == (8, 4, "network")
    assert fit.left_out_errors.largest < 1e-5
    assert fit.power_w(1e9, 0.9) == pytest.approx(alpha * 0.81e9 + beta * 0.9)


def test_each_processor_has_a_fit_of_its_own():
    fits = fit_power([*samples(1e-9, 0.2), *samples(3e-9, 0.4, processor="gpu")])
    assert [(f.processor, round(f.beta_w_per_v, 3)) for f in fits] == [("big", 0.2), ("gpu", 0.4)]


def test_a_coefficient_is_never_negative():
    falling = [PowerSample("big", f, v, 3 / v, 0.0) for f, v in POINTS]
    (fit,) = fit_power(falling)
    assert fit.alpha_w_per_v2_hz == 0
    assert fit.beta_w_per_v > 0


def test_the_error_of_a_network_left_out_knows_nothing_of_it():
    group = samples(1e-9, 0.2)
    other = [replace(s, power_w=2 * s.power_w - s.idle_power_w) for s in group[1::2]]
    (fit,) = fit_power([*group[::2], *other])
    # Each half predicts the other exactly wrong: by a half, and by twice.
    assert fit.left_out == "network"
    assert fit.left_out_errors.largest == pytest.approx(1, rel=1e-3)
    assert fit.left_out_errors.median == pytest.approx(0.75, rel=1e-3)


def test_without_networks_operating_points_are_left_out():
    (fit,) = fit_power([replace(s, network="") for s in samples(1e-9, 0.2)])
    assert fit.left_out == "operating point"


def test_two_samples_fit_but_leave_nothing_to_leave_out():
    (fit,) = fit_power([replace(s, network="") for s in samples(1e-9, 0.2, points=POINTS[:1])])
    assert (fit.left_out, fit.left_out_errors) == ("", None)


def test_as_many_samples_as_coefficients_say_nothing_of_the_error():
    group = [s for s in samples(1e-9, 0.2) if s.network == "one"]
    assert fit_power(group[:2])[0].errors is None
    assert fit_power([*group[:2], *group[:2]])[0].errors is None
    assert fit_power(group[:3])[0].errors.largest < 1e-5


def test_samples_that_tell_nothing_apart_are_refused_all_at_once():
    alike = [s for s in samples(1e-9, 0.2, points=POINTS[:1]) if s.network == "one"]
    low = [replace(s, processor="gpu", power_w=2.0) for s in samples(1e-9, 0.2)]
    with pytest.raises(CostError) as error:
        fit_power([*alike, *low])
    assert "'big' has samples that do not tell static from dynamic power" in str(error.value)
    assert "'gpu' has 8 samples not above idle, one of 2 W with 2 W at rest" in str(error.value)


def test_samples_are_read_with_or_without_the_last_two_columns(tmp_path):
    path = tmp_path / "samples.csv"
    path.write_text(f"{HEADER}big,1e9,0.9,3.5,2.0,,\nbig,2e9,1.2,6.5,2.0,0.5,one\n")
    first, second = read_power_samples(path)
    assert first == PowerSample("big", 1e9, 0.9, 3.5, 2.0)
    assert (second.utilisation, second.network) == (0.5, "one")
    path.write_text("processor,frequency_hz,voltage_v,power_w,idle_power_w\nbig,1e9,0.9,3.5,2.0\n")
    assert read_power_samples(path) == (first,)


def test_all_mistakes_of_a_table_of_samples_are_told_at_once(tmp_path):
    path = tmp_path / "samples.csv"
    path.write_text(f"{HEADER}big,1e9,0,3.5,2.0,,\n,1e9,1,3.5,2.0,1.5,\n")
    with pytest.raises(CostError) as error:
        read_power_samples(path)
    for told in (
        f"{path}:2: voltage_v is '0' but must be a positive finite number",
        f"{path}:3: processor is empty",
        f"{path}:3: utilisation is 1.5 but must be at most 1",
    ):
        assert told in str(error.value)
    path.write_text(HEADER)
    with pytest.raises(CostError, match=r"holds no sample; add a line for each measurement"):
        read_power_samples(path)
