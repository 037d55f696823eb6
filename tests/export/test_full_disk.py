"""On a full disk an export says so, leaves nothing behind, and keeps what was there."""

from __future__ import annotations

import shutil

import pytest

import parapipe
from parapipe.errors import OutputError
from tests.cases.full_disk import each_fault, files_of_at_most, tree

# arm-co-up takes four networks only, and writes by what perfetto writes by.
TARGETS = sorted({*parapipe.export_targets()} - {"arm-co-up"})


@pytest.fixture
def plan(branchy_folder):
    return branchy_folder / "plans" / "c01.json"


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("earlier", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_no_room_or_a_signal_at_any_call_leaves_what_was_there_or_the_whole_export(
    plan, tmp_path, target, earlier
) -> None:
    def export():
        parapipe.export_plan(plan, target, tmp_path / "out")

    export()
    whole = tree(tmp_path)
    for kind, call in each_fault(export):
        now = tree(tmp_path)
        assert now == whole if earlier else now in ({}, whole), (kind, call)
        if not earlier:
            remove(tmp_path / "out")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("earlier", [False, True])
def test_files_that_do_not_fit_are_told_and_nothing_is_left(
    plan, tmp_path, target, earlier
) -> None:
    if earlier:
        parapipe.export_plan(plan, target, tmp_path / "out")
    before = tree(tmp_path)
    largest = 0
    while message := export(plan, target, tmp_path / "out", largest):
        assert "out: cannot be written (File too large)" in message
        assert tree(tmp_path) == before
        largest = 3 * largest + 1
    assert largest


def export(plan, target, place, largest) -> str:
    """Export while no file can be larger; return why that failed, or nothing."""
    try:
        with files_of_at_most(largest):
            parapipe.export_plan(plan, target, place)
    except OutputError as error:
        return str(error)
    return ""
