"""Builds the native runner on this machine: once for each state of its sources and compiler."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from subprocess import PIPE, STDOUT
from time import monotonic

from parapipe.errors import RuntimeMissingError
from parapipe.files.progress import Progress, Tell
from parapipe.files.shipped import data_folder
from parapipe.files.user_folders import cache_folder
from parapipe.plan.schema import Processor
from parapipe.targets.native.backends import BackendName, backend_of

PROGRAM = "parapipe-native"
DEBIAN_PACKAGES = "cmake g++ make nlohmann-json3-dev"
ONEDNN = "onednn-devel-cpu-gomp==2023.2.0"
_JOBS_AT_MOST = 4
_ERROR_LINES = 3
_ARM = ("aarch64", "arm64")
_PERCENT = re.compile(r"\[ *(\d+)%\]")  # what CMake begins lines of a build with


@dataclass(frozen=True, slots=True)
class _Library:
    """What a back end needs: CMake's option for it, and what to install."""

    option: str
    packages: str


_LIBRARIES: Mapping[BackendName, _Library] = {
    "onednn": _Library("PARAPIPE_ONEDNN", f"oneDNN: python -m pip install {ONEDNN}"),
    "xnnpack": _Library("PARAPIPE_XNNPACK", "XNNPACK: libxnnpack-dev libpthreadpool-dev"),
    "neon": _Library("PARAPIPE_NEON", "ARM Compute Library: libarm-compute-dev"),
}
BACKEND_OPTIONS: Mapping[BackendName, str] = {
    **{name: library.option for name, library in _LIBRARIES.items()},
    "opencl": "PARAPIPE_OPENCL",
}
"""What switches a back end on in CMake."""


def backend_here(processor: Processor) -> BackendName:
    """Return what computes a processor on a CPU of this machine.

    That is what its `backend` names, or else, or if that does not run here, oneDNN on x86-64 and
    ARM Compute Library on Arm.
    """
    usual: BackendName = "neon" if platform.machine() in _ARM else "onednn"
    named = backend_of(processor.model_copy(update={"kind": "cpu"}))
    return named if named in (usual, "xnnpack", "plain") else usual


def built_runner(*backends: BackendName, progress: Tell | None = None) -> Path:
    """Return the program, which is built if no build of the same sources is there.

    Parameters
    ----------
    backends
        What it must have, beside the runner's own loops. It gets each other one whose library
        CMake finds.
    progress
        Is told how many percent are built.

    Raises
    ------
    RuntimeMissingError
        If a compiler or a library is missing, or the build fails: what to install.
    """
    sources = data_folder("runtimes") / "native"
    needed = sorted({each for each in backends if each in _LIBRARIES})
    cmake, compiler = _tool("cmake", needed), _tool(os.environ.get("CXX", "c++"), needed)
    prefixes = [str(Path(sys.prefix)), *filter(None, [os.environ.get("CMAKE_PREFIX_PATH")])]
    key = hashlib.sha256()
    for part in (*_source_parts(sources), _version(compiler), *prefixes):
        key.update(part.encode())
        key.update(b"\0")
    folder = cache_folder() / "native" / key.hexdigest()[:16]
    program = folder / PROGRAM
    with _locked(folder):
        if not {"plain", *needed} <= _backends_in(program):
            _build(sources, folder, cmake, needed, ";".join(prefixes), progress=progress)
    return program


def _backends_in(program: Path) -> set[str]:
    """Return the back ends that a program says it has: none if it cannot be started."""
    try:
        done = subprocess.run([program, "--backends"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return set()
    return set(done.stdout.split())


def _source_parts(sources: Path) -> Iterator[str]:
    files = (sources / "CMakeLists.txt", *sorted((sources / "src").rglob("*.?pp")))
    for file in files:
        yield str(file.relative_to(sources))
        yield file.read_text()


def _tool(name: str, backends: Sequence[BackendName]) -> str:
    beside = Path(sys.executable).with_name(name)  # a package of the same environment may have it
    found = shutil.which(name) or (str(beside) if beside.exists() else None)
    if found is None:
        raise RuntimeMissingError(
            f"the native runner has to be built, and '{name}' is missing: "
            f"install {_packages(backends)}"
        )
    return found


def _packages(backends: Sequence[BackendName]) -> str:
    libraries = (_LIBRARIES[each].packages for each in backends)
    return "; ".join((f"{DEBIAN_PACKAGES} (as Debian calls them)", *libraries))


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


def _build(
    sources: Path, folder: Path, cmake: str, backends: Sequence[BackendName], prefixes: str, *,
    progress: Tell | None,
) -> None:  # fmt: skip
    work = folder / "build"
    shutil.rmtree(work, ignore_errors=True)
    switches = [f"-D{_LIBRARIES[each].option}=ON" for each in backends]
    jobs = min(_JOBS_AT_MOST, len(os.sched_getaffinity(0)))
    for words in (
        [cmake, "-S", str(sources), "-B", str(work), f"-DCMAKE_PREFIX_PATH={prefixes}", *switches],
        [cmake, "--build", str(work), "--parallel", str(jobs), "--target", PROGRAM],
    ):
        code, output = _run_build(words, progress)
        if code:
            (folder / "build.log").write_text(output)
            raise RuntimeMissingError(
                f"the native runner cannot be built: {_first_error(output)}; install "
                f"{_packages(backends)}; all that was said is in {folder / 'build.log'}"
            )
    (work / PROGRAM).replace(folder / PROGRAM)
    shutil.rmtree(work, ignore_errors=True)


def _run_build(words: Sequence[str], progress: Tell | None) -> tuple[int, str]:
    """Return the exit code of a build and all that it says, and hand on the percent it states."""
    begin_s, lines = monotonic(), []
    with subprocess.Popen(words, stdout=PIPE, stderr=STDOUT, text=True) as build:
        for line in build.stdout or ():
            lines.append(line)
            if progress and (stated := _PERCENT.match(line)):
                passed_s = monotonic() - begin_s
                progress(Progress(int(stated[1]), 100, 0.0, passed_s, phase="building"))
    return build.returncode, "".join(lines)


def _first_error(text: str) -> str:
    """Return what a build says first that is an error, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if "rror" in line), max(len(lines) - 1, 0))
    return " ".join(lines[first : first + _ERROR_LINES]).rstrip(".")
