"""What stands in an exported folder beside the segments, so that it runs by itself."""

from __future__ import annotations

from pathlib import Path

PACKAGE = "parapipe_runtime"
REQUIREMENTS = ("numpy>=1.26", "onnxruntime>=1.20")
"""As parapipe itself has them, with its extra `run`."""

RUN = f'''"""Run this folder's plan with ONNX Runtime: python3 run.py --help"""

import sys

try:
    from {PACKAGE}.command import main
except ModuleNotFoundError as error:
    if error.name not in ("numpy", "onnxruntime"):
        raise
    sys.exit(
        f"run.py: this Python has no {{error.name}}: install what is needed, as with "
        f"'{{sys.executable}} -m pip install -r requirements.txt'"
    )

if __name__ == "__main__":
    sys.exit(main())
'''


def runner_files() -> dict[str, bytes]:
    """Return the files of the runner, by their place in the folder.

    `run.py` is what is started; the package beside it holds the modules of `parapipe.runtime`,
    which need onnxruntime, numpy and Python 3.10, nothing of parapipe.
    """
    modules = sorted(Path(__file__).parent.glob("*.py"))
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in modules}
    requirements = "".join(f"{each}\n" for each in REQUIREMENTS)
    return {"run.py": RUN.encode(), "requirements.txt": requirements.encode(), **files}
