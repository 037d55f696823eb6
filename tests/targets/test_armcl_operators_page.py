"""docs/armcl-operators.md says what the export does."""

import re

import pytest

from parapipe.targets.native.build import RULES
from parapipe.zoo.registry import examples
from tests.cases.pages import DOCS, script_of

TEXT = (DOCS / "armcl-operators.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    return script_of("armcl_operators")


def test_the_tables_are_what_the_script_writes(script):
    """Mend with `python docs/armcl_operators.py`."""
    assert script.page(TEXT, script.tables()) == TEXT


def test_every_operator_and_every_network_has_a_place():
    first, second = re.findall(r"(?<=-->\n)\|.*?(?=\n\n|\Z)", TEXT, re.DOTALL)
    cells = "".join(line.split("|")[1] for line in first.splitlines()[2:])
    assert sorted(re.findall(r"`(\w+)`", cells)) == sorted(RULES)
    assert re.findall(r"^\| `(\S+)` \|", second, re.MULTILINE) == [*examples()]
