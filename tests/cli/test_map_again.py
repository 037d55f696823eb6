"""`parapipe map` twice: the same bytes, and nothing solved again that an earlier run has solved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MAP = ("map", "zoo:googlenet", "--platform", "amlogic-a311d")
BRANCHY = "zoo:squeezenet"
DETERMINISTIC = ("--seed", "1", "--deterministic")


def files(folder: Path) -> dict[str, bytes]:
    """What is the same each time: all but wall times."""
    names = [folder / "front.json", folder / "front.csv", *(folder / "plans").iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in names}


def cached(folder: Path) -> list[bool]:
    """Of each problem that a mapper was asked; chains on one processor need none."""
    entries = json.loads((folder / "solve_log.json").read_text())
    return [entry["cached"] for entry in entries if entry["wall_s"]]


@pytest.mark.nightly
@pytest.mark.parametrize("mapper", ["auto", "fine"])
def test_a_deterministic_run_gives_the_same_bytes_whatever_the_jobs_and_the_cache(
    parapipe, tmp_path, mapper
) -> None:
    same = (*MAP, *DETERMINISTIC, "--mapper", mapper, "--resolution", "0.2")
    same += ("--energy-resolution", "0.5")
    ways = {
        "anew": ("--jobs", "1", "--no-cache"),
        "filling the cache": ("--jobs", "2"),
        "from the cache": ("--jobs", "1"),
    }
    for way, options in ways.items():
        assert parapipe(*same, *options, "--out", tmp_path / way).code == 0
    expected = files(tmp_path / "anew")
    assert len(expected) > 10
    for way in ways:
        assert files(tmp_path / way) == expected
    assert not any(cached(tmp_path / "anew"))
    assert not any(cached(tmp_path / "filling the cache"))
    assert all(cached(tmp_path / "from the cache"))
    options = json.loads(expected["front.json"])["options"]
    assert (options["mapper"], options["seed"], options["deterministic"]) == (mapper, 1, True)


@pytest.mark.nightly
def test_solved_subgraphs_are_kept_in_the_folder_that_is_named(parapipe, tmp_path) -> None:
    model, out, kept = BRANCHY, tmp_path / "out", tmp_path / "kept"
    for known in (False, True):
        ended = parapipe("map", model, *MAP[2:], "--out", out, "--cache", kept)
        assert (ended.code, ended.err) == (0, "")
        assert set(cached(out)) == {known}
    assert kept.is_dir()


def test_without_a_cache_nothing_is_kept(parapipe, small_model, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path / "kept"))
    for _ in range(2):
        ended = parapipe("map", small_model(), *MAP[2:], "--out", tmp_path / "out", "--no-cache")
        assert ended.code == 0
        assert not any(cached(tmp_path / "out"))
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("given", ["by option", "by environment"])
def test_a_cache_that_cannot_be_used_is_told_in_a_line_and_the_front_is_found_all_the_same(
    parapipe, small_model, tmp_path, monkeypatch, given
) -> None:
    (tmp_path / "file").write_text("in the way")
    options = ("--cache", tmp_path / "file") if given == "by option" else ()
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path / "file"))
    ended = parapipe("map", small_model(), *MAP[2:], "--json", *options)
    assert ended.code == 0
    assert json.loads(ended.out)["configurations"]
    (line,) = ended.err.splitlines()
    assert line.startswith("parapipe: note: solved subgraphs are not kept")
    assert str(tmp_path / "file") in line


@pytest.mark.nightly
def test_a_cache_that_is_damaged_is_told_in_a_line_and_begun_anew(parapipe, tmp_path) -> None:
    kept = tmp_path / "kept"
    ended = parapipe("map", BRANCHY, *MAP[2:], "--out", tmp_path / "out", "--cache", kept)
    (file,) = kept.glob("*.sqlite")
    file.write_bytes(b"no database" * 100)
    for told in (1, 0):
        ended = parapipe("map", BRANCHY, *MAP[2:], "--out", tmp_path / "out", "--cache", kept)
        assert ended.code == 0
        assert len(ended.err.splitlines()) == told
    assert set(cached(tmp_path / "out")) == {True}


@pytest.mark.nightly
def test_a_deterministic_run_says_if_a_mapper_that_stops_by_the_clock_ran_out_of_time(
    parapipe,
) -> None:
    hurried = (*MAP, "--deterministic", "--time-limit", "1e-9", "--json", "--mapper")
    ended = parapipe(*hurried, "fine_milp")
    assert ended.code == 0
    (line,) = ended.err.splitlines()
    assert "the mapper 'fine_milp' stops by the clock: another run may differ" in line
    assert parapipe(*hurried, "coarse").err == ""
