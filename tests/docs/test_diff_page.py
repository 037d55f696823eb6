"""docs/diff.md shows what happens."""

from pathlib import Path

import pytest

from tests.cli.test_readme import check_console

pytestmark = pytest.mark.usefixtures("shared_cache")
TEXT = (Path(__file__).parents[2] / "docs" / "diff.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_the_examples_print_what_stands_there(tmp_path):
    check_console(TEXT, tmp_path)
