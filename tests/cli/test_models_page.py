"""docs/models.md: tables are what its script writes, commands print what it shows."""

import re
import shlex

import pytest

from parapipe.zoo.registry import examples
from tests.cases.pages import DOCS, script_of

TEXT = (DOCS / "models.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    return script_of("models")


def test_the_tables_are_what_the_script_writes(script):
    assert script.page(TEXT, script.tables()) == TEXT


def test_every_model_of_the_zoo_stands_in_both_tables():
    rows = re.findall(r"^\| `(\S+)` \|", TEXT, re.MULTILINE)
    assert rows == [*examples(), *examples()]


def test_every_model_cites_its_source():
    assert re.findall(r"^\| `\S+` \| [^|]+ \|\s*\|$", TEXT, re.MULTILINE) == []


def test_the_commands_print_what_stands_there(parapipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    _, *parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        ended = parapipe(*shlex.split(command)[1:])
        pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
        assert re.fullmatch(pattern, (ended.out + ended.err).strip(), re.DOTALL), ended
