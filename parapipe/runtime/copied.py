"""What stands in an exported folder beside the segments, so that it runs by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from parapipe.files.script import start_script

PACKAGE = "parapipe_runtime"
NUMPY = "numpy>=1.26"
REQUIREMENTS = (NUMPY, "onnxruntime>=1.20")
"""As parapipe itself has them, with its extra `run`."""


def runner_files(requirements: Sequence[str] = REQUIREMENTS) -> dict[str, bytes]:
    """Return the files of the runner, by their place in the folder.

    Parameters
    ----------
    requirements
        Packages that the folder needs, as pip takes them.

    `run.py` is what is started; the package beside it holds the modules of `parapipe.runtime`,
    which need Python 3.10, numpy and what runs the segments, nothing of parapipe.
    """
    here = Path(__file__)
    modules = sorted(path for path in here.parent.glob("*.py") if path.name != here.name)
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in modules}
    lines = "".join(f"{each}\n" for each in requirements)
    description = "Run this folder's plan: python3 run.py --help"
    run = start_script("run.py", description, f"{PACKAGE}.command", "-r requirements.txt")
    return {"run.py": run, "requirements.txt": lines.encode(), **files}
