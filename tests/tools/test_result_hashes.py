"""Hashes of results: the same bytes give none that differs, and another front is noticed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import parapipe
from tools.result_hashes import CASES, LEFT_OUT, compare, unused

ROOT = Path(parapipe.__file__).parents[1]
SCRIPT = Path(__file__).parents[2] / "tools" / "result_hashes.py"
QUICK = CASES[0].name


def script(*words, **variables):
    """Run the script; return its exit code and what it prints."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *words],
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0 or done.stdout, done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(scope="module")
def hashes(tmp_path_factory):
    """The hashes of one case, written by the script."""
    path = tmp_path_factory.mktemp("hashes") / "hashes.json"
    assert script("--write", path, "--only", QUICK) == (0, [])
    return path


@pytest.fixture
def checkout(tmp_path):
    """Another checkout of parapipe, with what it is shipped with."""
    for name in ("parapipe", "platforms", "profiles"):
        leave = shutil.ignore_patterns("__pycache__", "measured")
        shutil.copytree(ROOT / name, tmp_path / "checkout" / name, ignore=leave)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "checkout" / "pyproject.toml")
    return tmp_path / "checkout"


def test_the_cases_use_every_option_of_map_and_every_word_that_one_takes():
    assert [*unused(CASES)] == []


@pytest.mark.parametrize(
    ("case", "lost"),
    [("draws", "--robust"), ("costs", "--rules"), ("peft", "--mapper peft"), ("dvfs", "--dvfs")],
)
def test_an_option_that_no_case_uses_is_named(case, lost):
    assert lost in unused(each for each in CASES if each.name != case)


def test_each_case_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES)


def test_no_case_uses_what_is_said_to_be_left_out():
    assert not {word for case in CASES for word in case.words} & LEFT_OUT.keys()


def test_a_document_that_differs_is_new_or_is_gone_is_named():
    stored = {"a": {"front.json": "1", "plans/c01.json": "2", "plans/c02.json": "3"}}
    made = {"a": {"front.json": "0", "plans/c01.json": "2", "plans/c03.json": "3"}, "b": {}}
    assert compare(stored, made) == [
        "a: front.json differs",
        "a: plans/c02.json is no longer there",
        "a: plans/c03.json is new",
        "b: not in the file",
    ]


def test_front_and_plans_are_hashed_and_the_log_of_wall_times_is_not(hashes):
    documents = json.loads(hashes.read_text())["cases"][QUICK]
    assert {"front.json", "front.csv", "plans/c01.json", "standard output"} <= documents.keys()
    assert "solve_log.json" not in documents


def test_another_checkout_with_another_order_of_sets_gives_the_same_bytes(hashes, checkout):
    told = script("--check", hashes, "--only", QUICK, PYTHONPATH=str(checkout), PYTHONHASHSEED="7")
    assert told == (0, ["1 case, 0 differences"])


def test_a_changed_front_is_noticed(hashes, checkout):
    board = checkout / "platforms" / "bst-a1000.yaml"
    text = board.read_text()
    board.write_text(text.replace("latency_s: 137e-6", "latency_s: 138e-6"))
    assert board.read_text() != text
    code, told = script("--check", hashes, "--only", QUICK, PYTHONPATH=str(checkout))
    assert code == 1
    assert f"{QUICK}: front.json differs" in told


@pytest.mark.nightly
def test_all_cases_give_the_same_bytes_in_another_order_of_sets(tmp_path):
    path = tmp_path / "hashes.json"
    script("--write", path, PYTHONHASHSEED="1")
    told = script("--check", path, PYTHONHASHSEED="2")
    assert told == (0, [f"{len(CASES)} cases, 0 differences"])
