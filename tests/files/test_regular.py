"""Whatever reads a file refuses a pipe at once, in place of waiting for it."""

import os
import socket
from pathlib import Path

import pytest

import parapipe
from parapipe.cli.command_line import run
from parapipe.files.shipped import require_regular

SAYS = "it is a pipe or a device, and must be a file"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_files_and_links_to_them_are_regular(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    (tmp_path / "link").symlink_to(file)
    require_regular(file)
    require_regular(tmp_path / "link")


def test_devices_and_sockets_are_not(tmp_path):
    with pytest.raises(OSError, match=SAYS):
        require_regular(Path("/dev/zero"))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match=SAYS):
            require_regular(tmp_path / "s")


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "{pipe}"],
        ["inspect", "zoo:alexnet", "--platform", "{pipe}"],
        ["inspect", "zoo:alexnet", "--rules", "{pipe}"],
        ["map", "zoo:alexnet", "--platform", "amlogic-a311d", "--profile", "{pipe}"],
        ["verify", "{pipe}"],
        ["export", "{pipe}", "--to", "arm-co-up"],
    ],
)
def test_a_pipe_is_refused_wherever_a_file_is_read(arguments, pipe, capsys):
    assert run([each.format(pipe=pipe) for each in arguments]) == 1
    assert SAYS in capsys.readouterr().err


def test_so_is_one_that_holds_frames_or_predictions(pipe, tmp_path):
    from parapipe.errors import ComparisonError

    with pytest.raises(ComparisonError, match=SAYS):
        parapipe.compare(pipe, pipe)
