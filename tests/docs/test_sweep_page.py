"""docs/sweep.md shows what happens."""

from pathlib import Path

import pytest
import yaml

from parapipe.sweeps.document import SweepFile
from tests.cli.test_readme import blocks, check_console

pytestmark = pytest.mark.usefixtures("shared_cache")
TEXT = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_the_examples_print_what_stands_there(tmp_path):
    check_console(TEXT, tmp_path)


def test_the_file_is_one_that_is_read():
    (file,) = blocks("yaml", TEXT)
    assert SweepFile.model_validate(yaml.safe_load(file)).platforms[1] == "boards/ours.yaml"
