"""A run that is asked to end, by Ctrl-C or otherwise: one line, its exit code, nothing left behind.

The first signal raises `Stopped` in the main thread, so that every context on the way out can clear
up; it is no `KeyboardInterrupt`, of which libraries think that it is theirs. If that takes longer
than a moment, because a thread cannot be ended for one, the process ends without waiting for it.
So it does while modules are imported: compiled ones that are left half-way may crash it later.
The next signal ends it at once: what is then left, a later run clears away.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # `typing` takes time to load
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import NoReturn

WORDS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated, for its terminal is gone",
}
GRACE_S = 1.0  # to clear up in good order
FIRST_EXIT_CODE = 128  # plus the signal's number, as shells count it


class Stopped(BaseException):
    """A signal came that asks to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def mind_signals() -> None:
    """From now on a signal raises `Stopped`; those that are ignored stay so."""
    _set_handler(_stop)
    sys.unraisablehook = _unraisable
    atexit.register(_ignore)  # the first that is registered is the last that runs


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Yield what is to be called once there is something to end with.

    From then on, in this context, the first Ctrl-C raises `KeyboardInterrupt`.
    """
    earlier = signal.getsignal(signal.SIGINT)

    def begin() -> None:
        if signal.getsignal(signal.SIGINT) is _stop:
            signal.signal(signal.SIGINT, _interrupt)

    try:
        yield begin
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, earlier)


def stop_minding() -> None:
    """From now on a signal changes nothing, unless Python takes longer than a moment to end.

    All work is done then, and its results are written.
    """
    _set_handler(_end_soon)


def leave(number: int) -> NoReturn:
    """Say in one line what happened, and exit."""
    from threading import active_count  # not before signals are minded

    signal.setitimer(signal.ITIMER_REAL, 0)
    if active_count() > 1:  # Python would wait for what threads are solving
        _leave_threads(number)
    _write_line(number)
    sys.exit(FIRST_EXIT_CODE + number)


def _leave_threads(number: int) -> NoReturn:
    """Exit while threads run, without the solvers and temporary folders they have."""
    _write_line(number)
    _end_children()
    atexit._run_exitfuncs()  # removes temporary folders
    os._exit(FIRST_EXIT_CODE + number)


def _set_handler(handler: signal._HANDLER) -> None:
    for number in WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    _set_handler(_end)
    _leave_after_grace(number)
    if _imports(frame):
        _leave_threads(number)
    raise Stopped(number)


def _leave_after_grace(number: int) -> None:
    signal.signal(signal.SIGALRM, lambda *_: _leave_threads(number))
    signal.setitimer(signal.ITIMER_REAL, GRACE_S)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, _stop)
    if _imports(frame):
        _stop(number, frame)
    raise KeyboardInterrupt


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported by what a signal interrupts."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _end_soon(number: int, frame: FrameType | None) -> None:
    _set_handler(_end)
    _leave_after_grace(number)


def _ignore() -> None:
    """Ignore signals while Python takes itself apart; it would let them kill it without a word."""
    _set_handler(signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    _write_line(number)
    os._exit(FIRST_EXIT_CODE + number)


def _write_line(number: int) -> None:
    with suppress(OSError):
        os.write(2, f"parapipe: {WORDS[signal.Signals(number)]}\n".encode())


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Signal again if Python could not pass `Stopped` on, as from a finalizer."""
    if isinstance(lost.exc_value, Stopped):
        from threading import Timer, get_ident

        _set_handler(_stop)
        Timer(0.01, signal.pthread_kill, [get_ident(), lost.exc_value.number]).start()
    else:
        sys.__unraisablehook__(lost)


def _end_children() -> None:
    """End the processes that this one has started and theirs, where the system lists them.

    It imports nothing: what it would import may be what a signal has interrupted half-way.
    """
    with suppress(OSError):
        for task in os.scandir("/proc/self/task"):
            _end_children_of(task)


def _end_children_of(task: os.DirEntry[str]) -> None:
    with suppress(OSError), open(f"{task.path}/children", "rb") as file:  # noqa: PTH123 - see above
        for child in map(int, file.read().split()):
            with suppress(OSError):
                end = os.killpg if os.getpgid(child) == child else os.kill
                end(child, signal.SIGKILL)
