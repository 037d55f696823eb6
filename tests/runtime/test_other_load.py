"""How much other programs take, from the kernel's counts."""

import os

import pytest

from parapipe.runtime.machine import OtherLoad, busy_note


def counted(all_s, own_s):
    """A load of which the system says so in ten seconds."""
    counts = iter([(0.0, 0.0), (all_s, own_s)])
    return OtherLoad(counts.__next__, iter([0.0, 10.0]).__next__).share()


def test_what_others_take_is_a_share_of_all_cores():
    cores = os.cpu_count() or 1
    share = counted(3.0 + 0.25 * 10 * cores, 3.0)
    assert share == pytest.approx(0.25)
    assert busy_note(share).startswith("other programs used 25% of this machine meanwhile")


def test_a_little_is_not_worth_a_sentence():
    assert busy_note(counted(5.1, 5.0)) == ""


def test_where_the_kernel_tells_nothing_nothing_is_said():
    assert OtherLoad(lambda: None).share() is None
    assert busy_note(None) == ""


def test_this_machines_counts_can_be_read():
    share = OtherLoad().share()
    assert share is None or 0 <= share <= 1
