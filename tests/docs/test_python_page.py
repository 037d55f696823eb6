"""docs/python.md: every public function stands there with every parameter."""

import inspect
import re

import pytest

import parapipe
from tests.cases.pages import DOCS, script_of

TEXT = (DOCS / "python.md").read_text(encoding="utf-8")
VERBS = [n for n in parapipe.__all__ if inspect.isfunction(getattr(parapipe, n))]


def test_the_tables_are_what_the_script_writes():
    script = script_of("python")
    assert script.page(TEXT) == TEXT


@pytest.mark.parametrize("name", VERBS)
def test_every_parameter_stands_in_the_table_of_its_function(name):
    section = TEXT.partition(f"\n### `{name}`\n")[2].partition("\n### ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert listed == list(inspect.signature(getattr(parapipe, name)).parameters)
