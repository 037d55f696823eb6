"""docs/native-backends.md says what the runner's sources and the export do."""

import re

import pytest

from parapipe.targets.native.library_plan import FORMS
from tests.cases.pages import DOCS, script_of

TEXT = (DOCS / "native-backends.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    return script_of("native_backends")


def test_the_tables_are_what_the_script_writes(script):
    """Mend with `python -m docs.native_backends`."""
    assert script.page(TEXT, script.tables()) == TEXT


def test_every_type_of_the_format_has_a_place():
    first, _ = re.findall(r"(?<=-->\n)\|.*?(?=\n\n|\Z)", TEXT, re.DOTALL)
    cells = "".join(line.split("|")[1] for line in first.splitlines()[2:])
    assert sorted(re.findall(r"`(\w+)`", cells)) == sorted(FORMS)


def test_what_each_back_end_computes_with(script):
    assert script.means("Conv", "onednn") == "function"
    assert script.means("Erf", "onednn") == "loop"
    assert script.means("Erf", "neon") == "-"
    assert script.means("Slice", "plain") == "copy"
    assert script.means("Relu", "plain") == "loop"
