"""What a killed run leaves unfinished is cleared away by a later one, and nothing else is."""

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from parapipe.errors import OutputError
from parapipe.files.atomic import write_folder
from parapipe.files.locked_folders import LockedFolder, clear_abandoned
from tests.cases.full_disk import files_of_at_most

HOLD = """
import sys, time
from pathlib import Path
from parapipe.files.locked_folders import LockedFolder
held = LockedFolder(Path(sys.argv[1]))
(held.path / "0").write_text("half")
print("held", flush=True)
{then}
"""


def begin(folder: Path, then: str) -> subprocess.Popen[str]:
    """Start a process that works in a locked folder; return when it has one."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(then=then), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


CLEAR = """
import sys
from pathlib import Path
from parapipe.files.locked_folders import clear_abandoned
while True:
    clear_abandoned(Path(sys.argv[1]))
"""


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_folder_is_there_as_long_as_its_context(tmp_path) -> None:
    with LockedFolder(tmp_path) as folder:
        (folder.path / "deep").mkdir()
        assert entries(tmp_path) == [folder.path]
    assert entries(tmp_path) == []
    folder.remove()


def _open(folder: Path) -> None:
    (folder / "file").write_bytes(bytes(2000))


def _whole(folder: Path) -> None:
    write_folder(folder, {Path("file"): bytes(2000)})


@pytest.mark.parametrize("write", [_open, _whole])
def test_temporary_files_that_find_no_room_are_told_by_their_folder(
    tmp_path, write, monkeypatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = f"^{re.escape(str(tmp_path))}: has no room for temporary files .*TMPDIR$"
    with files_of_at_most(1000), pytest.raises(OutputError, match=told), LockedFolder() as folder:
        write(folder.path)
    assert entries(tmp_path) == []


def test_another_error_is_not_taken_for_a_full_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(FileNotFoundError), LockedFolder() as folder:
        (folder.path / "missing").read_bytes()
    told = "other: cannot be written"
    with files_of_at_most(1000), pytest.raises(OutputError, match=told), LockedFolder():
        _whole(tmp_path / "other")


def test_a_folder_goes_when_python_ends(tmp_path) -> None:
    with begin(tmp_path, "sys.exit(3)") as process:
        assert process.wait() == 3
    assert entries(tmp_path) == []


def test_what_another_process_works_in_is_left_alone_until_that_is_killed(tmp_path) -> None:
    with begin(tmp_path, "time.sleep(600)") as process:
        clear_abandoned(tmp_path)
        (folder,) = entries(tmp_path)
        assert entries(folder) == [folder / "0"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert entries(tmp_path) == [folder]
    clear_abandoned(tmp_path)
    assert entries(tmp_path) == []


def test_only_folders_of_parapipes_own_names_are_cleared(tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    kept = [
        tmp_path / "parapipe-out",
        tmp_path / ".parapipe-mine.part",
        tmp_path / ".parapipe-0123456789abcdef.part.old",
    ]
    for path in kept:
        path.mkdir()
    link = tmp_path / ".parapipe-0123456789abcdef.part"
    link.symlink_to(tmp_path / "elsewhere")
    file = tmp_path / ".parapipe-fedcba9876543210.part"
    file.write_text("no folder")
    clear_abandoned(tmp_path)
    assert entries(tmp_path) == sorted([tmp_path / "elsewhere", *kept, link, file])


def test_a_folder_that_is_not_there_needs_no_clearing(tmp_path) -> None:
    clear_abandoned(tmp_path / "no")


def test_writing_a_folder_clears_what_a_killed_run_left_in_it(tmp_path) -> None:
    with begin(tmp_path, "time.sleep(600)") as process:
        process.send_signal(signal.SIGKILL)
    write_folder(tmp_path, {Path("front.json"): b"{}"})
    assert entries(tmp_path) == [tmp_path / "front.json"]


def test_a_new_folder_is_not_taken_for_an_abandoned_one_while_others_clear(tmp_path) -> None:
    clearing = [subprocess.Popen([sys.executable, "-c", CLEAR, str(tmp_path)]) for _ in range(2)]
    try:
        # A killed run's folder is gone once they are at it.
        begin(tmp_path, "sys.stdout.flush(); import os; os._exit(1)").communicate()
        while entries(tmp_path):
            assert all(process.poll() is None for process in clearing)
        for _ in range(500):
            with LockedFolder(tmp_path) as folder:
                (folder.path / "half").write_text("done")
    finally:
        for process in clearing:
            process.kill()
            process.wait()
