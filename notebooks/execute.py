"""Runs notebooks top to bottom and keeps what they show: python notebooks/execute.py [PATH]."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
TIMEOUT_S = 600
PICTURES = "module://matplotlib_inline.backend_inline"  # in the notebook, wherever this is run


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook as it is once every cell has run, in a folder that it may write to.

    Raises
    ------
    CellExecutionError
        A cell fails; the message shows it.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "MPLBACKEND": PICTURES})
    return notebook


def main(paths: list[Path]) -> None:
    """Execute each and write it back."""
    for path in paths or sorted(FOLDER.glob("*.ipynb")):
        with TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
        sys.stdout.write(f"executed {path}\n")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
