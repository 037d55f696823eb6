"""When long work ends with what it has found, and when it looks at that on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from time import perf_counter
from typing import TypeVar

from parapipe.processes.memory_limit import MemoryLimit, limit_of

Item = TypeVar("Item")

LOOK_S = 3.0  # before the first look at what is known so far
LOOK_SHARE = 1 / 3  # of the time so far, which a look may take
NEXT_LOOK_SHARE = (
    1 / 8
)  # of the time so far that goes by before the next look, if there is a deadline
LEAST_S = 1.0  # between two looks
PLANS_SHARE = 0.1  # of a budget, for draws and plans of what was found
PLANS_S = 1.0  # of it besides, but not more than half in all
ARENAS_SHARE = 0.5  # of that, for smaller arenas than the first ones of all plans
PATIENCE = 2  # times what a look has taken goes by at least before the next one


def search_s(budget_s: float | None) -> float:
    """Return the seconds from the first one on after which searches end; infinite if never.

    Reading and pricing the model are among them.
    """
    if budget_s is None:
        return inf
    return max(budget_s / 2, budget_s * (1 - PLANS_SHARE) - PLANS_S)


def arena_effort_s(budget_s: float | None, plans: int) -> float:
    """Return the seconds of work that may go into smaller arenas of each plan; infinite if any."""
    if budget_s is None:
        return inf
    return ARENAS_SHARE * (budget_s - search_s(budget_s)) / plans


class OverError(Exception):
    """Work has met its deadline; never seen by a user."""


@dataclass(slots=True)
class Deadline:
    """A moment after which work ends, or before it if it is interrupted.

    Until then, work looks now and then at what is known: what would come of it if it ended soon.
    When it does so depends on the time that has gone by alone, not on how much is left: work with
    more time does all that work with less does, and in the same order.

    Parameters
    ----------
    seconds
        From now on.
    interruptible
        Whether there is something to end with: then an interruption (Ctrl-C) is such a moment
        instead of an error.
    clock
        Seconds that go by.
    look_s
        From now on: when the next look comes.
    memory
        Work also ends when this limit is reached, as soon as there is something to end with.
    """

    seconds: float = inf
    interruptible: bool = False
    clock: Callable[[], float] = perf_counter
    look_s: float = LOOK_S
    memory: MemoryLimit | None = None
    interrupted: bool = field(default=False, init=False)
    _began_s: float = field(init=False)
    _before_s: float = field(default=0.0, init=False)
    _from_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._began_s = self.clock()

    def start_exploring(self) -> None:
        """Count the exploration from now on; if nothing but an interruption ends it, looks too."""
        self._before_s = self.gone_s
        if self.seconds == inf:
            self.look_s += self._before_s

    @property
    def gone_s(self) -> float:
        """Seconds that have gone by."""
        return self.clock() - self._began_s

    @property
    def explored_s(self) -> float:
        """Seconds that the exploration has taken so far."""
        return self.gone_s - self._before_s

    @property
    def left_s(self) -> float:
        """Seconds left, not less than 0."""
        ended = self.interrupted or self.short_of_memory
        return 0.0 if ended else max(0.0, self.seconds - self.gone_s)

    @property
    def short_of_memory(self) -> bool:
        """Whether work is to end because it has come near the limit of its memory."""
        return self.interruptible and self.memory is not None and self.memory.reached

    @property
    def look_due(self) -> bool:
        """Whether the next look has come; never once work is to end."""
        return self.gone_s >= self.look_s and not self.over

    @property
    def over(self) -> bool:
        """Whether work is to end."""
        return self.left_s <= 0

    def of(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items until work is to end."""
        return takewhile(lambda _: not self.over, items)

    def check(self) -> None:
        """Raise an OverError if work is to end."""
        if self.over:
            raise OverError

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield all items; OverError if work is to end before."""
        for item in items:
            self.check()
            yield item

    @contextmanager
    def look(self) -> Iterator[None]:
        """Let a look in here end after a share of the time so far; then choose when the next is.

        Without a deadline, all time doubles until then: an interruption is rare.
        """
        seconds, began_s = self.seconds, self.gone_s
        share = NEXT_LOOK_SHARE if seconds < inf else 1.0
        self.seconds = min(seconds, (1 + LOOK_SHARE) * began_s)
        try:
            with suppress(OverError):
                yield
        finally:
            self.seconds = seconds
            gone_s = self.gone_s
            self.look_s = gone_s + max(LEAST_S, PATIENCE * (gone_s - began_s), share * gone_s)

    @contextmanager
    def earlier(self, share: float) -> Iterator[None]:
        """Let work in here end while a share of the time is left for what comes behind it."""
        seconds = self.seconds
        self.seconds = self._from_s + (seconds - self._from_s) * (1 - share)
        try:
            with suppress(OverError):
                yield
        finally:
            self.seconds = seconds

    @contextmanager
    def shared(self, share: float) -> Iterator[None]:
        """Let work in here take a share of the time that is left when it begins."""
        seconds, from_s = self.seconds, self._from_s
        self._from_s = self.gone_s
        self.seconds = seconds if seconds == inf else self._from_s + share * self.left_s
        try:
            yield
        finally:
            self.seconds, self._from_s = seconds, from_s

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the time that goes by in here not count."""
        gone_s = self.gone_s
        try:
            yield
        finally:
            self._began_s += self.gone_s - gone_s

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Take an interruption of what is done in here for the deadline, where that is allowed."""
        try:
            yield
        except KeyboardInterrupt:
            if not self.interruptible:
                raise
            self.interrupted = True


def search_deadline(budget_s: float | None, limit_bytes: float | None) -> Deadline:
    """Return when searches end that begin now.

    Parameters
    ----------
    budget_s
        Of the command; no limit if None.
    limit_bytes
        Of memory; a quarter of the machine's if None.
    """
    return Deadline(search_s(budget_s), memory=MemoryLimit(limit_of(limit_bytes)))
