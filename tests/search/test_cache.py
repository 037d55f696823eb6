"""Schedules kept between runs: whatever becomes of the file, a run gets through."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.files.user_folders import cache_folder
from parapipe.problems import cache as cache_module
from parapipe.problems.cache import ASIDE, NAME, Cache
from parapipe.solvers.schedule import Transfer
from tests.cases.full_disk import files_of_at_most
from tests.cases.solve_cases import alone_schedule, schedule_of_text, text_of_schedule

SCHEMA = "CREATE TABLE schedules (key TEXT PRIMARY KEY, digest TEXT, used_s REAL, schedule TEXT)"
SCHEDULE = text_of_schedule(alone_schedule(0.1 + 0.2))


@pytest.fixture
def notes():
    return []


@pytest.fixture
def opened(tmp_path, notes):
    """Open the cache of this test; close it again at the end."""
    every = []

    def open_it(folder=None):
        every.append(Cache(folder or tmp_path, notes.append))
        return every[-1]

    yield open_it
    for each in every:
        each.close()


def filled(opened, count=200):
    with opened() as cache:
        for i in range(count):
            cache.put(f"key{i}", text_of_schedule(alone_schedule(float(i + 1))))


def works(cache) -> bool:
    cache.put("new", SCHEDULE)
    return cache.get(["new"]) == {"new": SCHEDULE}


@given(
    seconds=st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    bound=st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    solver=st.text(),
)
def test_a_schedule_comes_back_as_it_was_to_the_last_bit(
    tmp_path_factory, seconds, bound, solver
) -> None:
    schedule = alone_schedule(seconds)
    certificate = replace(schedule.certificate, bound_s=bound, solver=solver)
    schedule = replace(schedule, certificate=certificate)
    folder = tmp_path_factory.mktemp("cache")
    with Cache(folder, pytest.fail) as cache:
        cache.put("key", text_of_schedule(schedule))
    with Cache(folder, pytest.fail) as cache:
        assert schedule_of_text(cache.get(["other", "key"])["key"]) == schedule


def test_transfers_come_back_with_their_schedule(opened) -> None:
    moved = (Transfer(0, 1, 0.1, 0.1 + 0.2), Transfer(3, 0, 1.0, 1.0))
    schedule = replace(alone_schedule(1.0), transfers=moved)
    cache = opened()
    cache.put("key", text_of_schedule(schedule))
    assert schedule_of_text(cache.get(["key"])["key"]) == schedule


def test_a_key_keeps_the_last_schedule(opened) -> None:
    cache = opened()
    cache.put("key", text_of_schedule(alone_schedule(1.0)))
    cache.put("key", SCHEDULE)
    assert cache.get(["key"]) == {"key": SCHEDULE}


def test_more_keys_than_one_query_takes_are_all_found(opened) -> None:
    filled(opened, 1200)
    assert len(opened().get([f"key{i}" for i in range(2000)])) == 1200


def test_a_dropped_schedule_is_gone(opened) -> None:
    filled(opened, 3)
    cache = opened()
    cache.drop(["key1"])
    assert set(cache.get(["key0", "key1", "key2"])) == {"key0", "key2"}


@pytest.mark.parametrize("column", ["schedule", "digest"])
def test_a_row_that_was_changed_is_dropped(opened, tmp_path, notes, column) -> None:
    filled(opened, 2)
    with sqlite3.connect(tmp_path / NAME) as connection:
        change = f"UPDATE schedules SET {column} = replace({column}, '1', '2') WHERE key = 'key0'"
        connection.execute(change)
    connection.close()
    cache = opened()
    assert set(cache.get(["key0", "key1"])) == {"key1"}
    with sqlite3.connect(tmp_path / NAME) as connection:
        assert connection.execute("SELECT key FROM schedules").fetchall() == [("key1",)]
    connection.close()
    assert notes == []


def test_the_file_holds_plain_json(opened, tmp_path) -> None:
    filled(opened, 1)
    with sqlite3.connect(tmp_path / NAME) as connection:
        ((text,),) = connection.execute("SELECT schedule FROM schedules")
    connection.close()
    assert text == (
        '{"schedules":[{"processor":[0],"start_s":[0.0],"end_s":[1.0],'
        '"certificate":{"proves":"makespan","objective_s":1.0,"bound_s":1.0,"proven":true,'
        '"wall_s":0.25,"seed":7,"solver":"by hand 1.0","energy":null},"transfers":[]}],'
        '"resolution":null,"timed_out":false}'
    )


# Files that are wrong


@pytest.mark.parametrize("size", [100, 5000, 50_000])
def test_a_file_that_is_no_database_is_moved_aside_and_a_new_one_begun(
    opened, tmp_path, notes, size
) -> None:
    rubbish = random.Random(size).randbytes(size)
    (tmp_path / NAME).write_bytes(rubbish)
    assert works(opened())
    (note,) = notes
    assert str(tmp_path / NAME) in note
    assert str(tmp_path / ASIDE) in note
    assert (tmp_path / ASIDE).read_bytes() == rubbish
    assert works(opened())
    assert len(notes) == 1


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE recipes (name TEXT)"],
        ["CREATE TABLE recipes (name TEXT)", "PRAGMA user_version = 1"],
        [f"PRAGMA application_id = {cache_module.PARAPIPE}", "PRAGMA user_version = 1"],
        [SCHEMA, f"PRAGMA application_id = {cache_module.PARAPIPE}",
         "PRAGMA user_version = 99"],
    ],
)  # fmt: skip
def test_a_database_of_others_is_moved_aside_whole(opened, tmp_path, notes, statements) -> None:
    with sqlite3.connect(tmp_path / NAME) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    assert works(opened())
    assert len(notes) == 1
    assert (tmp_path / ASIDE).read_bytes() == before


@pytest.mark.parametrize("seed", range(6))
def test_a_file_with_damaged_pages_never_stops_a_run(opened, tmp_path, seed) -> None:
    filled(opened)
    content = bytearray((tmp_path / NAME).read_bytes())
    rng = random.Random(seed)
    for _ in range(4):
        first = rng.randrange(100, len(content) - 4096)
        content[first : first + 4096] = rng.randbytes(4096)
    (tmp_path / NAME).write_bytes(content)
    cache = opened()
    found = cache.get([f"key{i}" for i in range(200)])
    assert all(schedule_of_text(found[key]) == alone_schedule(float(key[3:]) + 1) for key in found)
    assert works(cache)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_off_never_stops_a_run(opened, tmp_path, share) -> None:
    filled(opened)
    content = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(content[: int(len(content) * share)])
    cache = opened()
    cache.get([f"key{i}" for i in range(200)])
    assert works(cache)


def test_a_new_file_that_another_process_has_begun_is_not_moved_aside(
    opened, tmp_path, notes
) -> None:
    filled(opened)
    cache = opened()
    replacement = tmp_path / "new"
    with opened(replacement) as other:
        other.put("key", SCHEDULE)
    (replacement / NAME).replace(tmp_path / NAME)
    cache._set_aside("is damaged")
    assert not (tmp_path / ASIDE).exists()
    assert cache.get(["key"]) == {"key": SCHEDULE}
    assert notes == []


# Places that cannot be used


@pytest.mark.parametrize("place", ["file", "file/inside", "/proc/no/such/place"])
def test_without_a_place_it_says_so_once_and_keeps_nothing(opened, tmp_path, notes, place) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = opened(tmp_path / place)
    assert not works(cache)
    (note,) = notes
    assert place in note
    assert "not kept" in note
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_in_place_of_the_file_is_left_alone(opened, tmp_path, notes) -> None:
    (tmp_path / NAME).mkdir()
    assert not works(opened())
    assert len(notes) == 1
    assert (tmp_path / NAME).is_dir()


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch, notes) -> None:
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("PARAPIPE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with Cache(None, notes.append) as cache:
        assert not works(cache)
    (note,) = notes
    assert "PARAPIPE_CACHE" in note


def test_a_full_disk_is_told_once(opened, notes) -> None:
    cache = opened()
    with files_of_at_most(100_000):
        for i in range(500):
            cache.put(f"key{i}", SCHEDULE)
    (note,) = notes
    assert note.endswith(f"{NAME} cannot be used (disk I/O error)")


def test_a_file_that_cannot_be_written_answers_and_says_once_that_it_keeps_nothing(
    opened, notes
) -> None:
    filled(opened, 2)
    cache = opened()
    with files_of_at_most(0):
        assert set(cache.get(["key0", "key1"])) == {"key0", "key1"}
        cache.put("new", SCHEDULE)
        cache.put("newer", SCHEDULE)
    assert len(notes) == 1


def test_a_file_that_another_process_never_lets_go_of_is_given_up(
    opened, tmp_path, notes, monkeypatch
) -> None:
    filled(opened, 1)
    monkeypatch.setattr(cache_module, "LOCK_WAIT_S", 0.01)
    cache = opened()
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        assert cache.get(["key0"]) == {}
        cache.put("key1", SCHEDULE)
    finally:
        other.close()
    (note,) = notes
    assert "locked" in note


def test_the_users_folder_is_the_one_of_the_environment(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("PARAPIPE_CACHE")
        else:
            monkeypatch.setenv("PARAPIPE_CACHE", unset)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache_folder() == tmp_path / "xdg" / "parapipe"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / "home" / ".cache" / "parapipe"


# Size


def test_beyond_its_size_it_forgets_what_was_used_least_recently(
    opened, tmp_path, monkeypatch
) -> None:
    filled(opened, 1000)
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("UPDATE schedules SET used_s = 1000 + CAST(substr(key, 4) AS INTEGER)")
    connection.close()
    with opened() as cache:  # an old one that is used again is not old any more
        assert set(cache.get(["key0"])) == {"key0"}
    monkeypatch.setattr(cache_module, "SIZE_LIMIT_BYTES", 200_000)
    with opened() as cache:
        left = cache.get([f"key{i}" for i in range(1000)])
    assert (tmp_path / NAME).stat().st_size <= 200_000
    newest = {f"key{i}" for i in range(1000 - len(left) + 1, 1000)}
    assert set(left) == newest | {"key0"}
    assert len(left) > 200


# Several processes, and sudden ends

WRITER = """
import sys
from pathlib import Path
from tests.cases.full_disk import files_of_at_most
from tests.cases.solve_cases import alone_schedule, text_of_schedule
from parapipe.problems.cache import Cache

def complain(note):
    sys.exit(note)

with Cache(Path(sys.argv[1]), complain) as cache:
    for i in range(int(sys.argv[3])):
        cache.put(f"{sys.argv[2]}{i}", text_of_schedule(alone_schedule(i + 1.0)))
        print(i, flush=True)
"""


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)


def test_processes_that_write_at_once_lose_nothing(opened, tmp_path) -> None:
    writers = [writer(tmp_path, name, 100) for name in "abc"]
    for each in writers:
        each.communicate()
    assert [each.returncode for each in writers] == [0, 0, 0]
    assert len(opened().get([f"{name}{i}" for name in "abc" for i in range(100)])) == 300


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_a_process_killed_while_it_writes_loses_nothing_it_has_put(
    opened, tmp_path, notes, lines
) -> None:
    with writer(tmp_path, "a", 1_000_000) as killed:
        for _ in range(lines):
            killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
    cache = opened()
    assert len(cache.get([f"a{i}" for i in range(lines)])) == lines
    assert works(cache)
    with sqlite3.connect(tmp_path / NAME) as connection:
        (check,) = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    assert check == ("ok",)
    assert notes == []
