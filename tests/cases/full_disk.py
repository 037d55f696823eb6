"""Disks that are full, and signals that come, at any moment of writing."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parapipe.errors import OutputError
from parapipe.files import atomic

NEED_ROOM = ("mkdir", "rename", "replace", "link", "fsync")
ALL_CALLS = (*NEED_ROOM, "unlink", "rmdir", "exchange")


class Interrupted(BaseException):
    """What a signal raises."""


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """A disk that is full: the kernel refuses to let any file grow beyond the size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def tree(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def each_fault(write: Callable[[], Any]) -> Iterator[tuple[str, int]]:
    """Write again and again: the first system call goes wrong, the second, until none is left.

    Each is yielded after it came, by its kind and number: no room before a call, or an interruption
    before or after it. No room ends in an OutputError, unless the call did not matter.
    """
    kinds: dict[str, tuple[tuple[str, ...], BaseException, bool]] = {
        "no room": (NEED_ROOM, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), False),
        "interrupted before": (ALL_CALLS, Interrupted(), False),
        "interrupted after": (ALL_CALLS, Interrupted(), True),
    }
    for kind, (names, error, after) in kinds.items():
        for number in count():
            with pytest.MonkeyPatch.context() as patch, suppress(Interrupted):
                calls = _fail(patch, names, number, error, after=after)
                _write(write)
            if next(calls) <= number:
                assert number
                break
            yield kind, number


def _write(write: Callable[[], Any]) -> None:
    message = ""
    try:
        write()
    except OutputError as refused:
        message = str(refused)
    assert not message or "No space left on device" in message


def _fail(
    patch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    number: int,
    error: BaseException,
    *,
    after: bool,
) -> Iterator[int]:
    """Let a call go wrong; return the counter of calls."""
    calls = count()

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            wrong = next(calls) == number
            if wrong and not after:
                raise error
            result = call(*arguments, **options)
            if wrong:
                raise error
            return result

        return called

    for name in names:
        place: Any = atomic if name == "exchange" else os
        patch.setattr(place, name, failing(getattr(place, name)))
    return calls
