"""How much other programs take, from the kernel's counts."""

import os

import pytest

from parapipe.runtime import other_load
from parapipe.runtime.other_load import OtherLoad, busy_note


@pytest.fixture
def counts(monkeypatch):
    """Seconds of all programs, seconds of this one, and the clock; set by the test."""
    now = {"all": 0.0, "own": 0.0, "clock": 0.0}
    monkeypatch.setattr(other_load, "_busy_s", lambda: (now["all"], now["own"]))
    monkeypatch.setattr(other_load, "perf_counter", lambda: now["clock"])
    return now


def test_what_others_take_is_a_share_of_all_cores(counts):
    cores = os.cpu_count() or 1
    others = OtherLoad()
    counts |= {"all": 3.0 + 0.25 * 10 * cores, "own": 3.0, "clock": 10.0}
    assert others.share() == pytest.approx(0.25)
    assert busy_note(others.share()).startswith("other programs took 25% of this machine meanwhile")


def test_a_little_is_not_worth_a_sentence(counts):
    others = OtherLoad()
    counts |= {"all": 5.1, "own": 5.0, "clock": 10.0}
    assert busy_note(others.share()) == ""


def test_where_the_kernel_tells_nothing_nothing_is_said(monkeypatch):
    monkeypatch.setattr(other_load, "_busy_s", lambda: None)
    assert OtherLoad().share() is None
    assert busy_note(None) == ""


def test_this_machines_counts_can_be_read():
    share = OtherLoad().share()
    assert share is None or 0 <= share <= 1
