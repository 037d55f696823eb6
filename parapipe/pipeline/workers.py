"""Worker processes behind the `concurrent.futures.Executor` interface.

Why not `ProcessPoolExecutor`: the processes that it spawns run the user's script once more, which
a script without `if __name__ == "__main__"` does not survive; those that it forks can hang where
there are threads; they print a traceback each on Ctrl-C, and outlive a parent that was killed.

These are plain Python processes, each the leader of a session of its own, so that Ctrl-C in a
terminal doesn't reach them, and that ending one ends what it has started, a solver for instance.
When their parent ends, however it does, so do they.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from struct import Struct
from tempfile import TemporaryFile
from threading import Thread
from types import TracebackType
from typing import IO, Any, ParamSpec, TypeVar

from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch

LENGTH = Struct(">Q")
P = ParamSpec("P")
T = TypeVar("T")
_Call = tuple[Future[Any], bytes]


class WorkerProcesses(Executor):
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
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._workers: list[_Worker] = []
        self._threads: list[Thread] = []
        self._ended = False
        # what a solver leaves there when it is ended at once goes with it
        clear_abandoned_scratch()
        self._scratch = LockedFolder()
        try:
            for _ in range(count):
                self._workers.append(_Worker(str(self._scratch.path)))
        except BaseException:
            self.kill()
            raise
        self._threads = [
            Thread(target=self._serve, args=(worker,), daemon=True) for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function in one of the processes; what it is given and returns is pickled."""
        if self._ended:
            raise RuntimeError("these workers take no calls any more")
        future: Future[T] = Future()
        self._calls.put((future, pickle.dumps((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end once they have answered all calls."""
        if cancel_futures:
            self._drop(None)
        if not self._ended:
            self._ended = True
            for _ in self._threads:
                self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()
            self._scratch.remove()

    def kill(self) -> None:
        """End the processes at once, and whatever they have started; open calls fail."""
        self._ended = True
        self._drop(BrokenExecutor("the workers were ended"))
        for worker in self._workers:
            worker.kill()
        self._scratch.remove()
        for _ in self._threads:
            self._calls.put(None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.kill()

    def _serve(self, worker: _Worker) -> None:
        """Pass calls to one process, and its answers on."""
        while (call := self._calls.get()) is not None:
            future, content = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result, error = worker.ask(content)
            except (OSError, EOFError) as lost:
                broken = BrokenExecutor(f"{worker.obituary()}")
                broken.__cause__ = lost
                future.set_exception(broken)
                self._drop(broken)  # there may be no other worker to answer them
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        worker.dismiss()

    def _drop(self, error: Exception | None) -> None:
        """Take all open calls from the queue; they fail, or are cancelled if there is no error."""
        with suppress(Empty):
            while True:
                call = self._calls.get_nowait()
                if call is None:  # the workers' farewell, behind which there are no calls
                    self._calls.put(None)
                    return
                if error is None:
                    call[0].cancel()
                elif call[0].set_running_or_notify_cancel():
                    call[0].set_exception(error)


class _Worker:
    """One process, seen from its parent.

    Parameters
    ----------
    scratch
        Folder for its temporary files.
    """

    def __init__(self, scratch: str) -> None:
        # as a process of `multiprocessing` gets it, but without running the parent's script
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from {__name__} import answer_calls; answer_calls()"
        )
        self._said = TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "TMPDIR": scratch},
            start_new_session=True,
        )

    def ask(self, content: bytes) -> tuple[Any, Exception | None]:
        """Make a call; return its result or its error. OSError or EOFError if the worker ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _send(self._process.stdin, content)
        result, error = pickle.loads(_receive(self._process.stdout))
        return result, error

    def dismiss(self) -> None:
        """Let it end, and wait until it has."""
        assert self._process.stdin is not None
        with suppress(OSError):
            _send(self._process.stdin, b"")
        self._process.wait()
        self._close()

    def kill(self) -> None:
        """End it and all it has started."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def obituary(self) -> str:
        """Say how it ended; it has, or is about to."""
        code = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        cause = f"by signal {-code}" if code < 0 else f"with code {code}"
        last = f": {lines[-1]}" if lines else ""
        self._close()
        return f"a worker process ended {cause}{last}"

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def answer_calls() -> None:
    """Answer the calls that come by standard input, until there are no more; a worker's whole life.

    An input that ends without the farewell of an empty call means that the parent is gone.
    """
    calls = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no path of the user's
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what a solver prints is no answer
    inbox: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(calls, inbox), daemon=True).start()
    while content := inbox.get():
        _send(answers, _answer(content))


def _listen(calls: IO[bytes], inbox: SimpleQueue[bytes]) -> None:
    """Hear that the parent is gone even while a call is being answered."""
    with suppress(EOFError, OSError):
        while True:
            content = _receive(calls)
            inbox.put(content)
            if not content:
                return
    os.killpg(0, signal.SIGKILL)  # the session is this worker's own


def _answer(content: bytes) -> bytes:
    try:
        fn, args, kwargs = pickle.loads(content)
        return pickle.dumps((fn(*args, **kwargs), None))
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)
        except Exception:  # noqa: BLE001 - whatever keeps it from being passed on
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer


def _send(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(LENGTH.pack(len(content)) + content)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """Read one message; EOFError if there is none."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return content
