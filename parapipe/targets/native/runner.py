"""Builds the native runner on this machine: once for each state of its sources and compiler."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

from parapipe.errors import RuntimeMissingError
from parapipe.files.shipped import data_folder
from parapipe.files.user_folders import cache_folder
from parapipe.targets.native.backends import BackendName

PROGRAM = "parapipe-native"
DEBIAN_PACKAGES = "cmake g++ make nlohmann-json3-dev"
ONEDNN = "onednn-devel-cpu-gomp==2023.2.0"
_JOBS_AT_MOST = 4
_ERROR_LINES = 3
_OPTIONS = {"onednn": "PARAPIPE_ONEDNN", "neon": "PARAPIPE_NEON", "opencl": "PARAPIPE_OPENCL"}


def backend_here() -> BackendName:
    """Return the back end that runs CPUs like this machine's: oneDNN, or ARM Compute Library."""
    return "neon" if platform.machine() in ("aarch64", "arm64") else "onednn"


def built_runner(backend: BackendName) -> Path:
    """Return the program, which is built if no build of the same sources is there.

    Parameters
    ----------
    backend
        The library that it is to have, beside the runner's own loops.

    Raises
    ------
    RuntimeMissingError
        If a compiler or a library is missing, or the build fails: what to install.
    """
    sources = data_folder("runtimes") / "native"
    cmake, compiler = _tool("cmake"), _tool(os.environ.get("CXX", "c++"))
    prefixes = [str(Path(sys.prefix)), *filter(None, [os.environ.get("CMAKE_PREFIX_PATH")])]
    key = hashlib.sha256()
    for part in (*_source_parts(sources), _version(compiler), backend, *prefixes):
        key.update(part.encode())
        key.update(b"\0")
    folder = cache_folder() / "native" / key.hexdigest()[:16]
    program = folder / PROGRAM
    with _locked(folder):
        if not program.exists():
            _build(sources, folder, cmake, backend, ";".join(prefixes))
    return program


def _source_parts(sources: Path) -> Iterator[str]:
    files = (sources / "CMakeLists.txt", *sorted((sources / "src").rglob("*.?pp")))
    for file in files:
        yield str(file.relative_to(sources))
        yield file.read_text()


def _tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)  # a package of the same environment may have it
    found = shutil.which(name) or (str(beside) if beside.exists() else None)
    if found is None:
        raise RuntimeMissingError(
            f"the native runner has to be built, and '{name}' is missing: install {_packages()}"
        )
    return found


def _packages() -> str:
    return (
        f"{DEBIAN_PACKAGES} (as Debian calls them), and on x86-64 oneDNN: python -m pip install "
        f"{ONEDNN}"
    )


def _version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from building the same at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        flock(file, LOCK_EX)
        yield


def _build(sources: Path, folder: Path, cmake: str, backend: BackendName, prefixes: str) -> None:
    work = folder / "build"
    shutil.rmtree(work, ignore_errors=True)
    switches = [
        f"-D{option}={'ON' if name == backend else 'OFF'}" for name, option in _OPTIONS.items()
    ]
    jobs = min(_JOBS_AT_MOST, len(os.sched_getaffinity(0)))
    for words in (
        [cmake, "-S", str(sources), "-B", str(work), f"-DCMAKE_PREFIX_PATH={prefixes}", *switches],
        [cmake, "--build", str(work), "--parallel", str(jobs), "--target", PROGRAM],
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            (folder / "build.log").write_text(done.stdout + done.stderr)
            raise RuntimeMissingError(
                f"the native runner cannot be built: {_first_error(done.stdout + done.stderr)}; "
                f"install {_packages()}; all that was said is in {folder / 'build.log'}"
            )
    (work / PROGRAM).replace(folder / PROGRAM)
    shutil.rmtree(work, ignore_errors=True)


def _first_error(text: str) -> str:
    """Return what a build says first that is an error, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if "rror" in line), max(len(lines) - 1, 0))
    return " ".join(lines[first : first + _ERROR_LINES]).rstrip(".")
