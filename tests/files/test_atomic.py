"""A file appears whole or not at all."""

import errno
import os
import signal
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from parapipe.errors import OutputError
from parapipe.files import atomic
from parapipe.files.atomic import atomic_folder, check_folder, write_atomically, write_folder
from tests.cases.full_disk import each_fault, files_of_at_most, tree


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\x00" * 100_000])
def test_the_file_holds_the_bytes_and_has_no_neighbour(tmp_path: Path, content) -> None:
    write_atomically(tmp_path / "a.json", content)
    assert (tmp_path / "a.json").read_bytes() == content
    assert names_in(tmp_path) == ["a.json"]


def test_an_older_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"older and longer")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_the_file_has_the_rights_of_any_other_new_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"a")
    (tmp_path / "b").write_bytes(b"b")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"}
    assert len(modes) == 1


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_name_as_long_as_the_disk_allows_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("a" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_on_a_full_disk_the_older_file_stays_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with files_of_at_most(1000), pytest.raises(OutputError, match=r"a\.json: cannot be written \("):
        write_atomically(path, b"n" * 1001)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["a.json"]


def test_a_file_that_just_fits_is_written(tmp_path: Path) -> None:
    with files_of_at_most(1000):
        write_atomically(tmp_path / "a.json", b"n" * 1000)
    assert (tmp_path / "a.json").stat().st_size == 1000


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a.json", b"new")
    assert names_in(tmp_path) == []


def test_a_name_that_is_too_long_is_said(tmp_path: Path) -> None:
    path = tmp_path / ("a" * (os.pathconf(tmp_path, "PC_NAME_MAX") + 1))
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomically(path, b"new")
    assert names_in(tmp_path) == []


def test_a_missing_folder_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"no/a\.json: cannot be written \(No such file"):
        write_atomically(tmp_path / "no" / "a.json", b"new")
    assert names_in(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="Not a directory"):
        write_atomically(tmp_path / "file" / "a.json", b"new")


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OutputError, match="it is a folder; name another file"):
        write_atomically(tmp_path / "a.json", b"new")


def test_a_device_is_not_replaced() -> None:
    with pytest.raises(OutputError, match="not a regular file"):
        write_atomically(Path("/dev/null"), b"new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_folder_that_takes_no_file_is_said() -> None:
    with pytest.raises(OutputError, match=r"/proc/self/a\.json: cannot be written"):
        write_atomically(Path("/proc/self/a.json"), b"new")


def test_a_folder_is_made_with_all_its_files(tmp_path):
    write_folder(tmp_path / "a" / "b", {Path("x"): b"1", Path("plans") / "y": b"2"})
    assert (tmp_path / "a" / "b" / "x").read_bytes() == b"1"
    assert (tmp_path / "a" / "b" / "plans" / "y").read_bytes() == b"2"
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == ["plans", "x"]


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(OutputError, match=r"/a: is a file, not a folder; name another"):
            write_folder(folder, {Path("x"): b"1"})
        with pytest.raises(OutputError, match=r"/a: is a file, not a folder; name another"):
            check_folder(folder, [Path("x")])
    assert (tmp_path / "a").read_bytes() == b"old"


def test_nothing_is_written_when_the_disk_fills_up_half_way(tmp_path, monkeypatch):
    write_folder(tmp_path / "a", {Path("x"): b"old"})
    written = []

    def full(path, content):
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        path.write_bytes(content)

    monkeypatch.setattr("parapipe.files.atomic._write_through", full)
    for folder in (tmp_path / "a", tmp_path / "new"):
        written.clear()
        with pytest.raises(OutputError, match="No space left on device"):
            write_folder(folder, {Path("x"): b"1", Path("y"): b"2"})
    assert (tmp_path / "a" / "x").read_bytes() == b"old"
    assert [p.name for p in tmp_path.rglob("*")] == ["a", "x"]


def test_a_folder_in_place_of_a_file_is_refused_before_anything_is_replaced(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "b").mkdir()
    for call in (
        lambda: write_folder(tmp_path, {Path("a"): b"1", Path("b"): b"2"}),
        lambda: check_folder(tmp_path, [Path("a"), Path("b")]),
    ):
        with pytest.raises(OutputError, match=r"/b: cannot be written, a folder has that name"):
            call()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a", "b"]


def test_trying_a_folder_leaves_everything_as_it_was(tmp_path):
    check_folder(tmp_path / "a" / "b", [Path("x"), Path("plans") / "y"])
    assert names_in(tmp_path) == []
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OutputError, match=r"/a: is a file"):
        check_folder(tmp_path / "a" / "b", [Path("x")])
    assert names_in(tmp_path) == ["a"]


def test_a_file_that_is_there_may_be_replaced(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    check_folder(tmp_path, [Path("x")])
    assert (tmp_path / "x").read_bytes() == b"old"


def test_a_whole_folder_takes_the_place_of_the_one_that_is_there(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    for content in ("one", "two"):
        with atomic_folder(place) as fresh:
            (fresh / content).write_text(content)
            assert not (place / content).exists()
        assert names_in(place) == [content]
    assert names_in(tmp_path / "a") == ["b"]


def test_a_whole_folder_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), atomic_folder(tmp_path / "a" / "b"):
        raise KeyError
    assert names_in(tmp_path) == []
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").write_text("x")
    with (
        pytest.raises(OutputError, match=r"old: cannot be written \(File too large\)"),
        files_of_at_most(1000),
        atomic_folder(tmp_path / "old") as fresh,
    ):
        (fresh / "large").write_bytes(bytes(2000))
    assert names_in(tmp_path / "old") == ["file"]
    assert names_in(tmp_path) == ["old"]


def test_a_whole_folder_does_not_take_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(OutputError, match="is a file; name a folder"),
        atomic_folder(tmp_path / "file"),
    ):
        pass
    assert (tmp_path / "file").read_text() == "x"


FILES = {Path("x"): b"new", Path("plans") / "y": b"new", Path("z"): b"new"}


def _one_file(place: Path) -> None:
    write_atomically(place.parent / "x", b"new")


def _some_files(place: Path) -> None:
    write_folder(place, FILES)


def _whole(place: Path) -> None:
    with atomic_folder(place) as fresh:
        (fresh / "plans").mkdir()
        for path, content in FILES.items():
            (fresh / path).write_bytes(content)


def _whole_by_renaming(place: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:  # as on a file system that exchanges nothing
        patch.setattr(atomic, "exchange", lambda _one, _other: False)
        _whole(place)


WRITE = [_one_file, _some_files, _whole, _whole_by_renaming]


@pytest.mark.parametrize("write", WRITE)
@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_or_a_signal_at_any_call_leaves_what_was_there_or_all_that_is_new(
    tmp_path, write, earlier
) -> None:
    def prepared(name):
        folder = tmp_path / name
        folder.mkdir()
        if earlier:
            (folder / "x").write_bytes(b"old")
            (folder / "a").mkdir()
            for old in ("x", "old"):
                (folder / "a" / old).write_bytes(b"old")
        return folder

    old = tree(prepared("old"))
    write(prepared("new") / "a")
    new = tree(tmp_path / "new")
    assert old != new
    folders = [prepared("0")]
    for kind, call in each_fault(lambda: write(folders[-1] / "a")):
        assert tree(folders[-1]) in (old, new), (kind, call)
        folders.append(prepared(str(len(folders))))


KILLED = """
import os, signal, sys
from itertools import count
from pathlib import Path
from parapipe.files import atomic

number, calls = int(sys.argv[1]), count()

def killed_at(call):
    def called(*arguments, **options):
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*arguments, **options)
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return called

atomic.exchange = killed_at(atomic.exchange)
for name in ("rename", "replace", "unlink", "rmdir"):
    setattr(os, name, killed_at(getattr(os, name)))
with atomic.atomic_folder(Path("place")) as fresh:
    (fresh / "file").write_text("new")
"""


def test_a_kill_at_any_call_leaves_the_folder_that_was_there_or_the_new_one(tmp_path) -> None:
    path = os.pathsep.join(sys.path)
    for number in count():
        folder = tmp_path / str(number)
        (folder / "place").mkdir(parents=True)
        (folder / "place" / "file").write_text("old")
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(number)],
            cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=False,
        )  # fmt: skip
        assert (folder / "place" / "file").read_text() in ("old", "new"), number
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert number > 2
    assert names_in(folder) == ["place"]


def test_files_that_cannot_be_linked_are_copied_and_put_back(tmp_path, monkeypatch) -> None:
    def refuse(*_names, **_options):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    replace = Path.replace

    def full(path, place):
        if path.name == "1":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(path, place)

    for name in "ab":
        (tmp_path / name).write_bytes(b"old")
    monkeypatch.setattr(atomic.os, "link", refuse)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match="No space left"):
        write_folder(tmp_path, {Path("a"): b"new", Path("b"): b"new", Path("c"): b"new"})
    assert tree(tmp_path) == {"a": b"old", "b": b"old"}


def test_files_that_are_made_one_by_one_are_written_with_the_others_or_not_at_all(tmp_path):
    places = [Path("plans") / name for name in "ab"]
    written = []

    def made(*, broken):
        for name in "ba":  # in any order
            written.append(sorted(each.name for each in tmp_path.rglob("*") if each.is_file()))
            yield Path("plans") / name, name.encode()
        if broken:
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        write_folder(tmp_path / "out", {Path("x"): b"1"}, made(broken=True), places)
    assert not (tmp_path / "out").exists()
    write_folder(tmp_path / "out", {Path("x"): b"1"}, made(broken=False), places)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*")
            if path.is_file()} == {"x": b"1", "a": b"a", "b": b"b"}  # fmt: skip
    assert len(written[-1]) == len(written[-2]) + 1  # the first plan is on the disk by then
