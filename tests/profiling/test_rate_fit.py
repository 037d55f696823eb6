"""Rates from whole networks: known ones come back, and a prior counts by its deviation."""

from math import exp, log

import pytest

from parapipe.platform.fields import OPERATOR_CLASSES
from parapipe.profiling.rate_fit import (
    CLASS,
    NOISE,
    SPEED,
    STREAM,
    NetworkWork,
    Part,
    Rates,
    fit_rates,
)

ONE = dict.fromkeys(OPERATOR_CLASSES, 1.0)
NO_LAUNCH = Rates(0.0, ONE, ONE)


def of(*parts):
    return NetworkWork(tuple(Part(*part) for part in parts))


def test_a_network_takes_launches_and_the_longer_of_computing_and_moving():
    rates = Rates(0.5, {**ONE, "conv3x3": 2.0}, {**ONE, "pool": 0.25})
    network = of(("conv3x3", 6.0, 1.0), ("conv3x3", 1.0, 4.0), ("pool", 0.0, 1.0))
    assert rates.time_s(network) == 3 * 0.5 + 3.0 + 4.0 + 4.0
    assert rates.time_s(NetworkWork(network.parts, fixed_s=7.0)) == 12.5 + 7.0


def test_networks_that_take_what_the_prior_says_leave_it_as_it_is():
    networks = [of(("conv1x1", 3.0, 1.0), ("pool", 0.0, 2.0)), of(("gemm", 0.1, 5.0))]
    prior = Rates(0.1, {**ONE, "conv1x1": 0.5}, {**ONE, "gemm": 0.2})
    fit = fit_rates(networks, [prior.time_s(each) for each in networks], prior)
    assert fit.launch_s == pytest.approx(0.1, rel=1e-9)
    assert fit.compute == pytest.approx(prior.compute, rel=1e-9)
    assert fit.bandwidth == pytest.approx(prior.bandwidth, rel=1e-9)


def test_one_class_shares_a_deviation_out_by_the_variances():
    # ln T − ln t = −(speed + own): the posterior mean of a sum of two normal factors and noise
    fit = fit_rates([of(("conv3x3", 4.0, 0.0))], [2.0], NO_LAUNCH)
    together = SPEED**2 + CLASS**2
    told = log(4.0 / 2.0) * together / (together + NOISE**2)
    assert fit.compute["conv3x3"] == pytest.approx(exp(told), rel=1e-6)
    only_speed = told * SPEED**2 / together
    assert fit.compute["conv1x1"] == pytest.approx(exp(only_speed), rel=1e-6)
    assert fit.bandwidth["pool"] == pytest.approx(exp(only_speed), rel=1e-6)
    assert fit.bandwidth["gemm"] == pytest.approx(1.0)


def test_a_product_that_waits_for_the_memory_says_nothing_of_the_clock():
    fit = fit_rates([of(("gemm", 0.1, 4.0))], [8.0], NO_LAUNCH)
    told = log(4.0 / 8.0) * STREAM**2 / (STREAM**2 + NOISE**2)
    assert fit.bandwidth["gemm"] == pytest.approx(exp(told), rel=1e-6)
    assert fit.compute == pytest.approx(ONE)
    assert fit.bandwidth["elementwise"] == pytest.approx(1.0)


def test_known_rates_come_back_from_networks_that_tell_them_apart():
    true = Rates(
        1e-4,
        {**ONE, **dict.fromkeys(("conv1x1", "conv3x3", "conv-other", "depthwise"), 0.4)},
        {**ONE, "gemm": 0.7, **dict.fromkeys(("pool", "norm", "elementwise", "concat"), 0.4)},
    )
    networks = [
        of(("conv1x1", 0.9, 0.1), ("pool", 0.0, 0.2)),
        of(("conv3x3", 2.0, 0.1), ("elementwise", 0.0, 0.5)),
        of(("gemm", 0.01, 0.8)),
        of(("conv1x1", 0.2, 0.0), ("gemm", 0.01, 0.3)),
    ]
    fit = fit_rates(networks, [true.time_s(each) for each in networks], Rates(1e-4, ONE, ONE))
    for network in networks:
        assert fit.time_s(network) == pytest.approx(true.time_s(network), rel=0.005)
    assert fit.compute["conv3x3"] == pytest.approx(0.4, rel=0.01)
    assert fit.bandwidth["gemm"] == pytest.approx(0.7, rel=0.01)


def test_where_moving_bounds_a_convolution_its_compute_rate_stays():
    fit = fit_rates([of(("conv1x1", 1.0, 4.0))], [5.0], NO_LAUNCH)
    assert fit.compute == pytest.approx(ONE)
    assert fit.bandwidth == pytest.approx(ONE)
