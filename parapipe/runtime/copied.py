"""What stands in an exported folder beside the segments, so that it runs by itself."""

from __future__ import annotations

from pathlib import Path

PACKAGE = "parapipe_runtime"
RUN = f'''"""Run this folder's plan with ONNX Runtime: python3 run.py --help"""

import sys

from {PACKAGE}.command import main

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
    return {"run.py": RUN.encode(), **files}
