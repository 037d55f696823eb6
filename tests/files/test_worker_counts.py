"""How many processes and threads work at the same time is decided in one place."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import parapipe
from parapipe.files.progress import worker_count
from parapipe.search.options import MapOptions

SOURCE = Path(parapipe.__file__).parent
DECIDES = SOURCE / "files" / "progress.py"
OTHER_LOAD = SOURCE / "runtime" / "machine.py"  # a share of the machine, beside a runner
NUMBER = re.compile(r"cpu_count\(|\b(?:num_workers|num_search_workers|jobs)(?:: [^=\n]+)? ?= ?\d")


@pytest.mark.parametrize(
    ("jobs", "tasks", "count"), [(3, None, 3), (3, 2, 2), (1, 5, 1), (4, 0, 1), (2, 2, 2)]
)
def test_there_are_as_many_workers_as_asked_for_and_no_more_than_tasks(jobs, tasks, count) -> None:
    assert worker_count(jobs, tasks=tasks) == count


def test_without_a_number_there_is_a_worker_per_core() -> None:
    assert worker_count(None) == MapOptions().workers == os.cpu_count()
    assert MapOptions(jobs=7).workers == 7


def test_a_number_of_workers_is_seen() -> None:
    assert NUMBER.search("chosen.num_workers = 4")
    assert NUMBER.search("replace(base, jobs=1)")
    assert NUMBER.search("jobs: int = 1")
    assert not NUMBER.search("jobs=ALONE")


def test_no_other_module_says_how_many_there_are() -> None:
    others = set(SOURCE.rglob("*.py")) - {DECIDES, OTHER_LOAD}
    found = {path.name: NUMBER.findall(path.read_text(encoding="utf-8")) for path in others}
    assert {name: numbers for name, numbers in found.items() if numbers} == {}
