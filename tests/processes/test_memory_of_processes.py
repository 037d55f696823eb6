"""The memory of this machine, what processes take of it, and when work ends for want of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from parapipe.processes.deadline import Deadline, search_deadline
from parapipe.processes.memory_limit import (
    NEAR,
    MemoryLimit,
    limit_of,
    machine_bytes,
    used_bytes,
    workers_within,
)

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
HOLD = "import sys; held = bytearray(b'x') * 80_000_000; print(len(held), flush=True); input()"


def groups(root, line, limits):
    """Write files of control groups below a folder."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line)
    for path, text in limits.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("line", "limits", "most"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max\n"}, PHYSICAL),
        ("0::/a/b\n", {"a/b/memory.max": "5000\n", "memory.max": "9000\n"}, 5000),
        ("0::/a/b\n", {"a/b/memory.max": "9000\n", "a/memory.max": "5000\n"}, 5000),
        ("0::/\n", {"memory.max": "7000\n"}, 7000),
        ("4:memory:/a\n3:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "6000\n"}, 6000),
        ("3:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "6000\n"}, PHYSICAL),
        ("0::/a\n", {"a/memory.max": f"{PHYSICAL + 1}\n"}, PHYSICAL),
    ],
)
def test_a_machine_has_what_its_control_groups_leave(line, limits, most, tmp_path):
    assert machine_bytes(groups(tmp_path, line, limits)) == most


def test_without_control_groups_all_memory_counts(tmp_path):
    assert machine_bytes(tmp_path) == PHYSICAL


def test_the_limit_is_a_quarter_of_the_machine_if_none_is_given():
    assert limit_of(None) == machine_bytes() / 4
    assert limit_of(64e6) == 64e6


def test_what_a_process_and_those_that_it_started_hold_is_counted():
    before = used_bytes()
    held = bytearray(b"x") * 60_000_000
    with_own = used_bytes()
    assert with_own - before > 50e6
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "80000000\n"
        assert used_bytes() - with_own > 75e6
        other.communicate("\n")
    assert len(held) == 60_000_000


def test_a_limit_is_reached_near_it_counted_from_where_it_began():
    taken = [1000.0]
    limit = MemoryLimit(400.0, used=lambda: taken[-1], look_s=0.0)
    taken.append(1000 + NEAR * 400 - 1)
    assert not limit.reached
    taken.append(1000 + NEAR * 400)
    assert limit.reached


def test_a_limit_that_was_reached_stays_so():
    taken = [0.0]
    limit = MemoryLimit(100.0, used=lambda: taken[-1], look_s=0.0)
    taken.append(100.0)
    assert limit.reached
    taken.append(0.0)
    assert limit.reached


def test_the_memory_is_looked_at_now_and_then():
    looks = []
    limit = MemoryLimit(100.0, used=lambda: len(looks.append(0) or looks), look_s=1e9)
    assert not any(limit.reached for _ in range(50))
    assert len(looks) == 2  # before it begins, and once


def test_work_ends_for_want_of_memory_once_there_is_something_to_end_with():
    taken = [0.0]
    deadline = Deadline(memory=MemoryLimit(100.0, used=lambda: taken[-1], look_s=0.0))
    taken.append(100.0)
    assert not deadline.over
    assert not deadline.short_of_memory
    deadline.interruptible = True
    assert deadline.over
    assert deadline.short_of_memory
    assert not deadline.interrupted


def test_a_search_keeps_the_limit_that_is_given():
    assert search_deadline(None, 5e9).memory.limit_bytes == 5e9
    assert search_deadline(60.0, None).memory.limit_bytes == machine_bytes() / 4


@pytest.mark.parametrize(("limit", "most"), [(1.0, 1), (999e6, 1), (1e9, 2), (4e9, 8)])
def test_half_of_a_limit_is_for_workers(limit, most):
    assert workers_within(limit) == most
