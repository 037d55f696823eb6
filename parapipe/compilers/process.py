"""Runs a tool in a process of its own, in a folder of its own, until its time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from parapipe.compilers.contract import CompileError, Environment

LOG = "log.txt"
_LAST_LINES = 3


def run_tool(
    tool: str, arguments: Sequence[str], environment: Environment, folder: Path, limit_s: float
) -> Path:
    """Run a script in the environment of a tool; return the file of what it printed.

    Parameters
    ----------
    tool
        Name of the compiler, for messages.
    arguments
        What the interpreter is given.
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
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [str(environment.python), *arguments],
                cwd=folder,
                env={**_own_variables(), **environment.variables},
                stdin=subprocess.DEVNULL,
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
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise CompileError(
                f"the compiler '{tool}' took more than {limit_s:g} s and was ended; give it more "
                "time by `--compile-time`, or split the segment",
                "timeout",
            ) from None
        finally:
            _end_all(process)
    if code < 0:
        raise CompileError(
            f"the compiler '{tool}' was killed by {signal.Signals(-code).name}; give it more "
            f"memory, or split the segment{_last_words(log)}",
            "killed",
        )
    if code:
        raise CompileError(
            f"the compiler '{tool}' ended with the error code {code}{_last_words(log)}", "crashed"
        )
    return log


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


def _last_words(log: Path) -> str:
    """Return the end of what a tool printed, for a message."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    last = " | ".join([line for line in lines if line][-_LAST_LINES:])
    return f": {last}" if last else ""
