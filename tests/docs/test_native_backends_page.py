"""docs/native-backends.md says what the runner's sources and the export do."""

import re

import pytest

from docs.packaged_list import MODELS
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
    first, *_ = re.findall(r"(?<=-->\n)\|.*?(?=\n\n|\Z)", TEXT, re.DOTALL)
    cells = "".join(line.split("|")[1] for line in first.splitlines()[2:])
    assert sorted(re.findall(r"`(\w+)`", cells)) == sorted(FORMS)


def test_what_each_back_end_computes_with(script):
    assert script.means("Conv", "onednn") == "function"
    assert script.means("Erf", "onednn") == "loop"
    assert script.means("Erf", "neon") == "-"
    assert script.means("Slice", "plain") == "copy"
    assert script.means("Relu", "plain") == "loop"


def test_what_an_operator_becomes_is_what_computes_it(script):
    assert script.lowered("HardSigmoid", "neon") == "function"
    assert script.lowered("HardSigmoid", "plain") == "loop"  # Mul, Add, Clip
    assert script.lowered("Unsqueeze", "onednn") == "copy"
    assert script.lowered("Erf", "neon") == script.lowered("LSTM", "onednn") == "-"
    assert script.lowered("Erf", "onednn") == "loop"


def test_packaged_models_have_a_row_each_and_so_have_their_operators(script):
    names = [f"{each.package} {each.version}: {each.path.rpartition('/')[2]}" for each in MODELS]
    assert (
        re.findall(r"^\| `(.*?: .*?)` \| \d+ \| (?:\d+ \|  | \| \d+ )", TEXT, re.MULTILINE) == names
    )
    third = re.findall(r"(?<=-->\n)\|.*?(?=\n\n|\Z)", TEXT, re.DOTALL)[2]
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) `(\w+)`", third)}
    assert counts == script.packaged_counts()
    assert len(counts) > 50
