"""docs/chips.md: its tables are what its script writes."""

import pytest

from parapipe.platform.catalogue import catalogue
from tests.cases.pages import DOCS, script_of

TEXT = (DOCS / "chips.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    return script_of("chips")


def test_the_tables_are_what_the_script_writes(script):
    assert script.page(TEXT, script.tables()) == TEXT


def test_every_entry_of_the_catalogue_stands_on_the_page():
    for table in (catalogue().chips, catalogue().parts, catalogue().memories):
        assert all(f"| `{name}` |" in TEXT for name in table)
    assert all(f"| {name} |" in TEXT for name in (*catalogue().sources, *catalogue().kinds))


def test_nominal_times_are_within_a_factor_of_two_and_a_tenth_of_measured_ones(script):
    rows = script.tables()["measured"].splitlines()[2:]
    ratios = [float(cell) for row in rows for cell in row.split("|")[2:-1]]
    assert len(ratios) == 24
    assert 1 / 2.1 < min(ratios) < max(ratios) < 2.1
