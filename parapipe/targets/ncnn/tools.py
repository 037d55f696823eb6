"""Where pnnx and ncnn are installed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from parapipe.errors import ExportError

INSTALL = "pip install --no-deps pnnx && pip install ncnn"


@dataclass(frozen=True, slots=True)
class Tools:
    """What converts segments, and what runs them.

    Parameters
    ----------
    pnnx
        The converter, a program.
    ncnn
        Version of the package.
    """

    pnnx: Path
    ncnn: str


def find_tools() -> Tools:
    """Return where they are.

    pnnx is the program in the package of that name, which is not imported, since that would import
    PyTorch; or the one in the search path.

    Raises
    ------
    ExportError
        If one is not installed.
    """
    pnnx = _pnnx()
    try:
        ncnn = version("ncnn")
    except PackageNotFoundError:
        ncnn = ""
    missing = [name for name, there in (("pnnx", pnnx), ("ncnn", ncnn)) if not there]
    if pnnx is None or missing:
        are = "are" if len(missing) > 1 else "is"
        raise ExportError(
            f"{' and '.join(missing)} {are} not installed, and the target ncnn converts and checks "
            f"segments with pnnx and ncnn: {INSTALL}"
        )
    return Tools(pnnx, ncnn)


def _pnnx() -> Path | None:
    spec = find_spec("pnnx")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (program := Path(folder) / "pnnx").is_file():
            return program
    found = shutil.which("pnnx")
    return Path(found) if found else None
