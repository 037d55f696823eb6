"""docs/sweep.md shows what happens."""

import subprocess
from pathlib import Path

import yaml

from parapipe.formats.sweep_file import SweepFile
from tests.cli.test_readme import blocks, environment, matches, steps

TEXT = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")


def test_the_examples_print_what_stands_there(tmp_path):
    for block in blocks("console", TEXT):
        for command, shown in steps(block):
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment(), text=True, check=False,
                capture_output=True, encoding="utf-8",
            )  # fmt: skip
            assert done.returncode == 0, f"$ {command}\n{done.stderr}"
            assert matches(shown, done.stdout), f"$ {command}\n{done.stdout}\n{done.stderr}"


def test_the_file_is_one_that_is_read():
    (file,) = blocks("yaml", TEXT)
    assert SweepFile.model_validate(yaml.safe_load(file)).platforms[1] == "boards/ours.yaml"
