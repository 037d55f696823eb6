"""The page of the least periods: what it says of two rows."""

from benchmarks.interleaved_bounds import page, received
from tests.cases.occupying_cases import LINK, RECEIVER, fork

ROW = {
    "operators": 20, "stages": 10.0, "given": 20.0, "given bound": 20.2, "given gap": 0.0099,
    "given s": 1.0, "work": 12.5, "work bound": 12.5, "work gap": 0.0, "work s": 2.0,
}  # fmt: skip


def test_the_page_compares_with_stages_and_takes_geometric_means():
    rows = {"amlogic-a311d": {"a": ROW, "b": {**ROW, "given": 5.0}}}
    written = page(rows)
    assert "1.00 × the throughput of stages as given,\n1.25 × as work" in written
    assert (
        "| `a` | 20 | 10 | 20 | 20.2 | 0.99% | 2.00 | 12.5 | 12.5 | 0.00% | 1.25 | 3 |" in written
    )
    assert "bst-a1000" not in written


def test_every_hand_over_becomes_work_of_the_receiver():
    assert received(fork(LINK)).transfer_resource == RECEIVER
