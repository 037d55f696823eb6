"""Links fitted to timed transfers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.board_fits import TransferSample, fit_transfers, read_transfer_samples
from parapipe.errors import CostError

MEASURED = Path(__file__).parents[2] / "profiles/rockchip-rk3399pro/measured/transfers.csv"


def timed(size_bytes, time_s, clocks=(1e9, 1e9), network="", pair=("a", "b")):
    return TransferSample(*pair, size_bytes, time_s, *clocks, network)


@given(latency_s=st.floats(1e-5, 1e-2), bandwidth=st.floats(1e6, 1e10))
def test_a_link_is_found_exactly_where_nothing_disturbs(latency_s, bandwidth):
    sizes = (1_000, 100_000, 1_000_000, 10_000_000)
    (fit,) = fit_transfers([timed(size, latency_s + size / bandwidth) for size in sizes])
    for size in sizes:
        found_s = fit.latency_s + size / fit.bandwidth_bytes_per_s
        assert found_s == pytest.approx(latency_s + size / bandwidth, rel=1e-6)
    assert fit.largest_error < 1e-6
    assert fit.left_out_error is None
    assert fit.speed_up == 1


@given(st.lists(st.tuples(st.integers(1, 10**8), st.floats(1e-6, 1)), min_size=2, max_size=9,
                unique_by=lambda sample: sample[0]))  # fmt: skip
def test_no_link_takes_negative_time_and_more_bytes_are_never_cheaper(samples):
    (fit,) = fit_transfers([timed(*sample) for sample in samples])
    assert fit.latency_s >= 0
    assert fit.bandwidth_bytes_per_s is None or fit.bandwidth_bytes_per_s > 0


def test_links_are_scaled_to_the_highest_clocks_by_one_tensor_timed_at_all():
    low, high = (4e8, 4e8), (1.6e9, 4e8)
    found = fit_transfers(
        [
            *(timed(size, 1e-3 + size / 1e8, low) for size in (10**4, 10**5, 10**6)),
            timed(0, 20e-3, low),
            timed(0, 10e-3, high),
            *(timed(size, 2e-3 + size / 1e8, low, pair=("b", "a")) for size in (10**4, 10**6)),
        ]
    )
    assert [(fit.speed_up, fit.speed_up_known) for fit in found] == [(0.5, True), (0.5, False)]
    assert found[0].latency_s == pytest.approx(0.5e-3)
    assert found[0].bandwidth_bytes_per_s == pytest.approx(2e8)
    assert found[1].latency_s == pytest.approx(1e-3)


def test_networks_are_left_out_in_turn():
    samples = [timed(10**n, 1e-3 + 10**n / 1e8, network="one") for n in (4, 5, 6)]
    samples += [timed(10**n, 2 * (1e-3 + 10**n / 1e8), network="two") for n in (4, 5, 6)]
    (fit,) = fit_transfers(samples)
    # the one predicts the other as half, the other the one as twice its time
    assert fit.left_out_error == pytest.approx(0.75)


def test_pairs_with_one_size_only_are_all_named():
    samples = [timed(1000, 1e-3), timed(1000, 2e-3), timed(0, 1e-3, pair=("b", "c"))]
    with pytest.raises(CostError, match="'a' to 'b', 'b' to 'c' lack two sizes"):
        fit_transfers(samples)


def test_mistakes_of_a_table_are_told_with_their_lines(tmp_path):
    path = tmp_path / "transfers.csv"
    path.write_text("from,to,size_bytes,time_s\na,b,100,0\na,b,x,1e-3\n")
    with pytest.raises(CostError) as caught:
        read_transfer_samples(path)
    assert "transfers.csv:2" in str(caught.value)
    assert "transfers.csv:3" in str(caught.value)


def test_the_shipped_links_are_those_of_the_measurements():
    from parapipe.platform.load import load_platform

    fits = {(f.sender, f.receiver): f for f in fit_transfers(read_transfer_samples(MEASURED))}
    for link in load_platform("rockchip-rk3399pro").links:
        fit = fits[link.sender, link.receiver]
        assert fit.latency_s == pytest.approx(link.latency_s, rel=0.09)
        assert fit.bandwidth_bytes_per_s == pytest.approx(link.bandwidth_bytes_per_s, rel=0.13)
