"""docs/accuracy-of-fits.md: its tables are those of the record beside the profile."""

from tests.cases.pages import DOCS, script_of

TEXT = (DOCS / "accuracy-of-fits.md").read_text(encoding="utf-8")


def test_the_tables_of_errors_are_what_the_script_writes():
    script = script_of("accuracy_of_fits")
    assert script.page(TEXT, script.tables()) == TEXT
    assert TEXT.count("| Inception-v4 |") == 1
