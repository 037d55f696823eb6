"""Runs a tool in a process of its own, in a folder of its own, until its time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from parapipe.compilers import watched
from parapipe.compilers.contract import CompileError, Environment

LOG = "log.txt"
_LAST_LINES = 3
_LAST_BYTES = 1 << 16


def run_tool(
    tool: str, script: Path, environment: Environment, folder: Path, limit_s: float
) -> Path:
    """Run a script in the environment of a tool; return the file of what it printed.

    It and all that it has started end with this process, and with an exception that is raised here,
    as by Ctrl-C.

    Parameters
    ----------
    tool
        Name of the compiler, for messages.
    script
        A Python file that imports nothing of parapipe.
    folder
        Working directory.
    limit_s
        Seconds after which it and all its children are killed.

    Raises
    ------
    CompileError
        If it cannot be started, ends with an error, is killed or takes too long.
    """
    log = folder / LOG
    process: subprocess.Popen[bytes] | None = None
    try:
        process = _start(tool, script, environment, log)
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"the compiler '{tool}' took more than {limit_s:g} s and was ended; give it more time "
            "by `--compile-time`, or cut the segment",
            "timeout",
        ) from None
    finally:
        if process is not None:
            _end_all(process)
    if code < 0:
        raise CompileError(
            f"the compiler '{tool}' was killed by {signal.Signals(-code).name}; give it more "
            f"memory, or cut the segment{_last_words(log)}",
            "killed",
        )
    if code:
        raise CompileError(
            f"the compiler '{tool}' ended with the error code {code}{_last_words(log)}", "crashed"
        )
    return log


def _start(tool: str, script: Path, environment: Environment, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:  # tools write to it in several ways, each with its own position
        try:
            return subprocess.Popen(
                [str(environment.python), "-I", str(Path(watched.__file__)), str(script)],
                cwd=log.parent,
                env={**_own_variables(), **environment.variables, "TMPDIR": str(log.parent)},
                stdin=subprocess.PIPE,  # see watched.py
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all it starts can be ended with it
            )
        except OSError as error:
            raise CompileError(
                f"the compiler '{tool}' cannot be started with {environment.python} ({error}); "
                f"name another Python by `parapipe compilers use {tool} --python PATH`",
                "missing",
            ) from error


def _own_variables() -> dict[str, str]:
    """Return this process's environment, without what would lead to its own packages."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    own.pop("VIRTUAL_ENV", None)
    folder = str(Path(sys.executable).parent)
    paths = own.get("PATH", os.defpath).split(os.pathsep)
    return {**own, "PATH": os.pathsep.join(each for each in paths if each != folder)}


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a tool and all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _last_words(log: Path) -> str:
    """Return the end of what a tool printed, for a message."""
    with log.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _LAST_BYTES, 0))
        text = file.read().decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines()]
    last = " | ".join([line for line in lines if line][-_LAST_LINES:])
    return f": {last}" if last else ""
