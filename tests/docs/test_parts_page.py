"""docs/parts.md says what is split, and its example is what happens."""

import re
import subprocess

import pytest

from parapipe.parts.run import RULES
from tests.cases.pages import DOCS, script_of
from tests.cli.test_readme import blocks, environment, matches, steps

TEXT = (DOCS / "parts.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    return script_of("parts")


def test_the_tables_are_what_the_script_writes(script):
    """Correct them with `python docs/parts.py`."""
    assert script.page(TEXT, script.tables()) == TEXT


def test_every_type_with_a_rule_stands_in_a_table(script):
    listed = {name for row in (*script.OF_IMAGES, *script.OF_TOKENS, *script.OF_MATRICES)
              for name in row.types}  # fmt: skip
    assert listed == set(RULES[""])
    assert set(RULES["com.microsoft"]) <= set(re.findall(r"`(\w+)`", TEXT))


def test_the_example_prints_what_stands_there(tmp_path):
    (block,) = blocks("console", TEXT)
    for command, shown in steps(block):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment(), text=True, check=False,
            capture_output=True, encoding="utf-8",
        )  # fmt: skip
        assert matches(shown, done.stdout), f"$ {command}\n{done.stdout}\n{done.stderr}"
