"""docs/imports.md: commands print what it shows, and its table has the formats that are read."""

import re
import shlex
import shutil

from parapipe.cli.command_line import run
from parapipe.imports.registry import FORMATS
from tests.cases.pages import DOCS
from tests.cli.test_readme import blocks, matches, steps
from tests.imports.conftest import FILES

PAGE = (DOCS / "imports.md").read_text(encoding="utf-8")


def test_the_page_lists_the_formats_that_are_read():
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", PAGE, re.MULTILINE)
    assert rows == [(name, title) for name, (title, _) in FORMATS.items()]


def test_the_commands_print_what_the_page_shows(tmp_path, monkeypatch, capsys):
    shutil.copy(FILES / "onnxruntime.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    for command, shown in (step for block in blocks("console", PAGE) for step in steps(block)):
        assert run(shlex.split(command)[1:]) == 0
        printed = capsys.readouterr().out
        assert matches(shown, printed), f"$ {command}\n{printed}"
