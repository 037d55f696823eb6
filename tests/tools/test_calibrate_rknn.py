"""The fit of Rockchip's cycles to its published rates."""

from __future__ import annotations

from statistics import median

import pytest

from tools.calibrate_rknn import PAGE, Network, fit, fits_of, platform_of, read_networks, tables


def test_a_fit_finds_the_coefficients_that_times_were_made_with() -> None:
    # factor 2, start 100 µs, share 0.5, at 1 GHz, in ms: 2 + 0.1 + 1, 4 + 0.2 + 0, 6 + 0.5 + 2,
    # 1 + 0 + 1
    works = [(1_000_000, 1, 2e-3), (2_000_000, 2, 0.0), (3_000_000, 5, 4e-3), (500_000, 0, 2e-3)]
    times_s = [3.1e-3, 4.2e-3, 8.5e-3, 2e-3]
    networks = [
        Network(str(i), "chip", 1 / time_s, *work, 2 * time_s, 3 * time_s)
        for i, (work, time_s) in enumerate(zip(works, times_s, strict=True))
    ]
    fitted = fit(networks, 1e9)
    assert fitted.coefficients == pytest.approx((2, 1e-4, 0.5))
    assert fitted.left_out == pytest.approx([0] * 4, abs=1e-9)
    assert fitted.nominal == pytest.approx([1] * 4)
    assert fitted.one_rate == pytest.approx([2] * 4)


def test_the_catalogue_has_the_coefficients_of_the_fit() -> None:
    for target, fitted in fits_of(read_networks()).items():
        (stated,) = {each.compiled for each in platform_of(target).processors if each.compiled}
        factor, start_s, share = fitted.coefficients
        assert stated.cycle_factor == pytest.approx(factor, abs=5e-4)
        assert stated.row_start_s == pytest.approx(start_s, abs=5e-8)
        assert stated.own_share == pytest.approx(share, abs=5e-4)


ALONE_IN_ITS_ROWS = "RetinaFace_mobile320"
"""On the RK3562, no other network shows how long rows that are not priced take."""


def test_networks_left_out_are_met_better_than_by_one_nominal_rate() -> None:
    for target, fitted in fits_of(read_networks()).items():
        left_out, one_rate = ([*map(abs, each)] for each in (fitted.left_out, fitted.one_rate))
        assert len(left_out) >= 7
        assert median(left_out) <= 0.10 < median(one_rate)
        assert max(one_rate) > 0.35
        pairs = zip(fitted.networks, left_out, strict=True)
        beyond = [each.network for each, error in pairs if error > 0.35]
        assert beyond == ([ALONE_IN_ITS_ROWS] if target == "rk3562" else [])


def test_rates_of_classes_are_nearer_to_published_times_than_one_rate() -> None:
    for fitted in fits_of(read_networks()).values():
        nominal, one_rate = ([*map(abs, each)] for each in (fitted.nominal, fitted.one_rate))
        assert median(nominal) < median(one_rate) / 2
        assert max(nominal) < max(one_rate)


def test_the_page_has_the_tables_of_the_fit() -> None:
    assert tables(fits_of(read_networks())) in PAGE.read_text(encoding="utf-8")
