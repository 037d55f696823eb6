"""What stands in an exported folder beside the segments, so that it runs by itself."""

from __future__ import annotations

from pathlib import Path

from parapipe.files.script import start_script

PACKAGE = "parapipe_runtime"
REQUIREMENTS = ("numpy>=1.26", "onnxruntime>=1.20")
"""As parapipe itself has them, with its extra `run`."""


def runner_files(*further: str) -> dict[str, bytes]:
    """Return the files of the runner, by their place in the folder.

    Parameters
    ----------
    further
        Requirements beside `REQUIREMENTS`, as pip takes them.

    `run.py` is what is started; the package beside it holds the modules of `parapipe.runtime`,
    which need onnxruntime, numpy and Python 3.10, nothing of parapipe.
    """
    here = Path(__file__)
    modules = sorted(path for path in here.parent.glob("*.py") if path.name != here.name)
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in modules}
    requirements = "".join(f"{each}\n" for each in (*REQUIREMENTS, *further))
    description = "Run this folder's plan: python3 run.py --help"
    run = start_script("run.py", description, f"{PACKAGE}.command", "-r requirements.txt")
    return {"run.py": run, "requirements.txt": requirements.encode(), **files}
