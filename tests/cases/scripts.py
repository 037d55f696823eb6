"""Scripts in a Python process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_script(
    script: str, *arguments: object, **environment: object
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, with more environment variables; it may fail, or take minutes."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
    )  # fmt: skip


def printed_by(script: str, *arguments: object, **environment: object) -> list[str]:
    """Return the lines that a script prints; it must not fail."""
    done = run_script(script, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def left_behind_by(script: str, folder: Path) -> list[str]:
    """Return the temporary files that are still there at the end of a script, as it sees them."""
    folder.mkdir()
    look = "import os, tempfile; print(*os.listdir(tempfile.gettempdir()))"
    return printed_by(f"{script}\n{look}", TMPDIR=folder)[-1].split()
