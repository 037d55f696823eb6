"""When long work ends with what it has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import perf_counter


class OverError(Exception):
    """Work has met its deadline; never seen by a user."""


@dataclass(slots=True)
class Deadline:
    """A moment after which work ends, or before it if it is interrupted.

    Parameters
    ----------
    seconds
        From now on.
    interruptible
        Whether there is something to end with: then an interruption (Ctrl-C) is such a moment
        instead of an error.
    clock
        Seconds that go by.
    """

    seconds: float = inf
    interruptible: bool = False
    clock: Callable[[], float] = perf_counter
    interrupted: bool = field(default=False, init=False)
    _began_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_s = self.clock()

    @property
    def left_s(self) -> float:
        """Seconds left, not less than 0."""
        return 0.0 if self.interrupted else max(0.0, self.seconds - (self.clock() - self._began_s))

    @property
    def over(self) -> bool:
        """Whether work is to end."""
        return self.left_s <= 0

    def check(self) -> None:
        """Raise an OverError if work is to end."""
        if self.over:
            raise OverError

    @contextmanager
    def sooner(self, share: float) -> Iterator[None]:
        """Let what is done in here end after a share of the time that is left."""
        seconds = self.seconds
        self.seconds = min(seconds, self.clock() - self._began_s + share * self.left_s)
        try:
            yield
        finally:
            self.seconds = seconds

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Take an interruption of what is done in here for the deadline, where that is allowed."""
        try:
            yield
        except KeyboardInterrupt:
            if not self.interruptible:
                raise
            self.interrupted = True
