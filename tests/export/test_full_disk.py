"""On a full disk an export says so, leaves nothing behind, and keeps what was there."""

from __future__ import annotations

import os
import shutil

import pytest

import parapipe
from parapipe.errors import OutputError
from parapipe.zoo.registry import write
from tests.cases.armcl_plans import plan_for
from tests.cases.full_disk import each_fault, files_of_at_most, tree
from tests.cases.genai_folder import write_genai_folder, write_plans
from tests.cases.rknn_plans import rknn_plan, toolkit

TARGETS = sorted({*parapipe.export_targets()} - {"ncnn"})
"""All targets but the one whose converter is installed by `make test-ncnn` only."""
MANY_FILES = ("cpp", "cuda")
"""Targets whose folders hold the sources of the runner."""


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A plan of one of the four networks that arm-co-up takes, and its model."""
    path = tmp_path_factory.mktemp("known") / "alexnet.onnx"
    write("alexnet", path, weightless=True)
    return plan_for(path, "gpu-alone"), path


@pytest.fixture(scope="module")
def for_npus(tmp_path_factory):
    """A plan with NPUs and its model, after an export: what the compiler makes is in the cache."""
    folder = tmp_path_factory.mktemp("npus")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARAPIPE_COMPILER_RKNN", str(toolkit(folder)))
        patch.setenv("PARAPIPE_CACHE", str(folder / "cache"))
        plan, path = rknn_plan(folder)
        parapipe.export_plan(plan, "rknn", folder / "earlier", model=path)
        yield plan, path


@pytest.fixture(scope="module")
def of_a_decoder(tmp_path_factory):
    """A plan of a decoder in a folder of GenAI."""
    folder = tmp_path_factory.mktemp("decoder")
    write_genai_folder(folder)
    return write_plans(folder)[1], None


FIXTURES = {"rknn": "for_npus", "genai": "of_a_decoder"}


@pytest.fixture
def plan(branchy_folder, known, target, request):
    """A plan that the target can run, and where its model is, if it does not say."""
    if target in FIXTURES:
        return request.getfixturevalue(FIXTURES[target])
    return known if target == "arm-co-up" else (branchy_folder / "plans" / "c01.json", None)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "target", [pytest.param(t, marks=[pytest.mark.nightly] * (t in MANY_FILES)) for t in TARGETS]
)
@pytest.mark.parametrize("earlier", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_no_room_or_a_signal_at_any_call_leaves_what_was_there_or_the_whole_export(
    plan, tmp_path, target, earlier
) -> None:
    def export():
        parapipe.export_plan(plan[0], target, tmp_path / "out", model=plan[1])

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
        parapipe.export_plan(plan[0], target, tmp_path / "out", model=plan[1])
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
            parapipe.export_plan(plan[0], target, place, model=plan[1])
    except OutputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("target", ["arm-co-up"])
def test_a_script_is_never_there_without_the_right_to_run_it(plan, tmp_path, target) -> None:
    out = tmp_path / "out"
    for fault in each_fault(lambda: parapipe.export_plan(plan[0], target, out, model=plan[1])):
        assert not out.exists() or os.access(out, os.X_OK), fault
        remove(out)
