"""Worker processes behind the `concurrent.futures.Executor` interface.

Why not `ProcessPoolExecutor`: the processes that it spawns run the user's script once more, which
a script without `if __name__ == "__main__"` does not survive; those that it forks can hang where
there are threads. Why not loky: its workers start in twice the time, and one that is at work when
its parent is killed goes on to the end of its call.

These are plain Python processes, one for each thread of a `ThreadPoolExecutor`, which passes calls
to it. Each leads a session of its own, so that Ctrl-C in a terminal does not reach it, and that
ending it ends what it has started, a solver for instance. When the parent ends, however it does,
the connection to it is closed, and the worker ends its session.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from tempfile import TemporaryFile
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch

P = ParamSpec("P")
T = TypeVar("T")


class WorkerProcesses(ThreadPoolExecutor):
    """Calls of module-level functions, in processes of this Python.

    Leaving its context by an exception, Ctrl-C included, ends them at once.

    Parameters
    ----------
    count
        Number of processes; they start right away.

    Raises
    ------
    OSError
        A process cannot be started.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._workers: list[_Worker] = []
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._broken_by = ""  # why calls cannot be answered any more
        # what a solver leaves there when it is ended at once is removed with it
        clear_abandoned_scratch()
        self._scratch = LockedFolder()
        try:
            for _ in range(count):
                self._workers.append(_Worker(str(self._scratch.path)))
                self._idle.put(self._workers[-1])
        except BaseException:
            self.kill()
            raise

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function in one of the processes; what it is given and returns is pickled."""
        return super().submit(self._send_call, pickle.dumps((fn, args, kwargs)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; end the processes once they have answered, if asked to wait."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                worker.close()
            self._scratch.remove()

    @property
    def usable(self) -> bool:
        """Whether all processes are there to answer calls."""
        return not self._broken_by and all(worker.is_running for worker in self._workers)

    def kill(self) -> None:
        """End the processes at once, and whatever they have started; open calls fail."""
        self._broken_by = self._broken_by or "the workers were ended"
        for worker in self._workers:
            worker.kill()
        self.shutdown()

    def __exit__(self, kind: type[BaseException] | None, *_raised: object) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.kill()

    def _send_call(self, content: bytes) -> Any:  # noqa: ANN401 - the answer of any function
        """Let an idle process answer a call; after one has died, no call is answered."""
        worker = self._idle.get()  # there is one for each thread
        try:
            if self._broken_by:
                raise BrokenExecutor(self._broken_by)
            result, error = worker.send_call(content)
        except (OSError, EOFError) as lost:
            self._broken_by = self._broken_by or worker.describe_end()
            raise BrokenExecutor(self._broken_by) from lost
        finally:
            self._idle.put(worker)
        if error is not None:
            raise error
        return result


class SharedProcesses:
    """Worker processes for several rounds of calls: they start when needed, and stay.

    Leaving its context ends them at once.

    Parameters
    ----------
    module
        What a process that starts ahead imports, since later calls will need it; none starts
        ahead if not given.
    """

    def __init__(self, module: str | None = None) -> None:
        self._module = module
        self._processes: WorkerProcesses | None = None
        self.count = 0
        """Of processes that have been started."""

    def running(self, count: int) -> WorkerProcesses:
        """Return processes, at least so many; OSError if one cannot be started."""
        if not (self._processes and self._processes.usable) or self.count < count:
            self.end()
            self._processes, self.count = WorkerProcesses(count), count
        return self._processes

    def start_ahead(self) -> None:
        """Let a process start while this one works on, if later calls are known to need one."""
        if self._module:
            with suppress(OSError):
                self.running(1).submit(import_module, self._module)

    def end(self) -> None:
        """End them at once; who asks for processes later gets new ones."""
        if self._processes:
            self._processes.kill()
        self._processes, self.count = None, 0

    def __enter__(self) -> SharedProcesses:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()


@contextmanager
def shared_processes(module: str | None = None) -> Iterator[SharedProcesses]:
    """Keep worker processes for all that is called in here; the outermost context ends them.

    Parameters
    ----------
    module
        As for `SharedProcesses`; that of the outermost context counts.
    """
    if outer := _SHARED.get():
        yield outer
        return
    with SharedProcesses(module) as processes:
        token = _SHARED.set(processes)
        try:
            yield processes
        finally:
            _SHARED.reset(token)


def current_processes() -> SharedProcesses | None:
    """Return those of the context, if this is called in one: what a generator may ask for."""
    return _SHARED.get()


_SHARED: ContextVar[SharedProcesses | None] = ContextVar("shared processes", default=None)


class _Worker:
    """One process, seen from its parent.

    Parameters
    ----------
    scratch
        Folder for its temporary files.
    """

    def __init__(self, scratch: str) -> None:
        self._connection, other_end = Pipe()
        self._output = TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        # as a process of `multiprocessing` gets it, but without running the parent's script
        program = (
            f"import gc, sys; gc.set_threshold{gc.get_threshold()}; sys.path[:] = {sys.path!r}; "
            f"from {__name__} import answer_calls; answer_calls({other_end.fileno()})"
        )
        with other_end:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[other_end.fileno()],
                env={**os.environ, "TMPDIR": scratch},
                start_new_session=True,
            )

    def send_call(self, content: bytes) -> tuple[Any, Exception | None]:
        """Make a call; return its result or its error. OSError or EOFError if the worker ended."""
        self._connection.send_bytes(content)
        result, error = pickle.loads(self._connection.recv_bytes())
        return result, error

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it and all it has started."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """End it and close the connection; nobody waits for an answer."""
        self.kill()
        self._connection.close()
        self._output.close()

    def describe_end(self) -> str:
        """Say how it ended; it has, or is about to."""
        code = self._process.wait()
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").splitlines()
        cause = f"by signal {-code}" if code < 0 else f"with code {code}"
        last = f": {lines[-1]}" if lines else ""
        return f"a worker process ended {cause}{last}"


def answer_calls(descriptor: int) -> None:
    """Answer the calls that come through a connection; a worker's whole life."""
    os.set_inheritable(descriptor, False)  # what a call starts must not keep the connection open
    connection = Connection(descriptor)
    calls: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive_calls, args=(connection, calls), daemon=True).start()
    while True:
        connection.send_bytes(_answer_call(calls.get()))


def _receive_calls(connection: Connection[bytes, bytes], calls: SimpleQueue[bytes]) -> None:
    """Notice that the parent has ended even while a call is being answered."""
    with suppress(EOFError, OSError):
        while True:
            calls.put(connection.recv_bytes())
    os.killpg(0, signal.SIGKILL)  # the session is this worker's own


def _answer_call(content: bytes) -> bytes:
    try:
        fn, args, kwargs = pickle.loads(content)
        return pickle.dumps((fn(*args, **kwargs), None))
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        with suppress(Exception):  # whatever keeps it from being passed on
            answer = pickle.dumps((None, error))
            pickle.loads(answer)
            return answer
        return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
