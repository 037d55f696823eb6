"""docs/python.md: every public function stands there with every parameter."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import parapipe

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "python.md").read_text(encoding="utf-8")
VERBS = [n for n in parapipe.__all__ if inspect.isfunction(getattr(parapipe, n))]


def test_the_tables_are_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("python_page", DOCS / "python.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.page(TEXT) == TEXT


@pytest.mark.parametrize("name", VERBS)
def test_every_parameter_stands_in_the_table_of_its_function(name):
    section = TEXT.partition(f"\n### `{name}`\n")[2].partition("\n### ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert listed == list(inspect.signature(getattr(parapipe, name)).parameters)
