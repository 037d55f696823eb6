"""docs/accuracy-of-fits.md: its tables are those of the record beside the profile."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "accuracy-of-fits.md").read_text(encoding="utf-8")


def test_the_tables_of_errors_are_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("accuracy_page", DOCS / "accuracy_of_fits.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.page(TEXT, script.tables()) == TEXT
    assert TEXT.count("| Inception-v4 |") == 1
