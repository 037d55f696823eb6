"""Every notebook runs top to bottom, shows pictures, and is committed with what it shows."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
sys.path.append(str(NOTEBOOKS))

from execute import executed  # noqa: E402 - from the folder just named

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
# The first measures this machine for a minute; `make test` has its commands in
# test_profile_command, and plug-ins like those of the last two in test_plug_ins. The second maps
# the paper's networks again.
NIGHTLY = (
    "describe_your_board",
    "reproduce_the_paper",
    "write_your_own_mapper",
    "write_your_own_strategy",
)
RUN = [pytest.param(path, marks=[pytest.mark.nightly] * (path.stem in NIGHTLY)) for path in PATHS]


def shown(notebook: nbformat.NotebookNode) -> set[str]:
    """Return the kinds of content that the cells show."""
    return {
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        for kind in output.get("data", ())
    }


def test_there_are_notebooks() -> None:
    assert PATHS


@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_a_notebook_runs_top_to_bottom(path, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOKS.parent))
    work = tmp_path / "work"
    work.mkdir()
    assert "image/png" in shown(executed(path, work))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_what_it_shows(path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert "image/png" in shown(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
    text = path.read_text(encoding="utf-8")
    assert str(Path.home()) not in text
    assert "/tmp/" not in text
