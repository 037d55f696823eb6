"""docs/armcl-operators.md says what the export does."""

import importlib.util
import re
from pathlib import Path

import pytest

from parapipe.export.armcl.registry import RULES
from parapipe.zoo.registry import examples

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "armcl-operators.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("armcl_page", DOCS / "armcl_operators.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_what_the_script_writes(script):
    """Mend with `python docs/armcl_operators.py`."""
    assert script.page(TEXT, script.tables()) == TEXT


def test_every_operator_and_every_network_has_a_place():
    first, second = re.findall(r"(?<=-->\n)\|.*?(?=\n\n|\Z)", TEXT, re.DOTALL)
    cells = "".join(line.split("|")[1] for line in first.splitlines()[2:])
    assert sorted(re.findall(r"`(\w+)`", cells)) == sorted(RULES)
    assert re.findall(r"^\| `(\S+)` \|", second, re.MULTILINE) == [*examples()]
