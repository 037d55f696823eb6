"""The same done to many items: by this process and, where that takes long, by others, too."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar

from parapipe.pipeline.workers import WorkerProcesses

ALONE_S = 0.1
"""Before it is judged how long the rest will take."""
WORTH_S = 1.5
"""Of work that is left, for each process that helps: three times as long as it takes to start."""
SHARES = 3
"""Of each other process: those that it has not begun when this one is through come back."""

Item = TypeVar("Item")
Made = TypeVar("Made")


def shared_work(
    make: Callable[[Iterable[Item]], Iterable[Made]], items: Sequence[Item], jobs: int
) -> Iterator[tuple[int, Made]]:
    """Yield numbers of items and what is made of them, in any order, each when it is there.

    This process begins alone. Others help once what is left would take long, if all of it took as
    long as the longest so far.

    Parameters
    ----------
    make
        Makes something of each item, in their order, the same in any process. It asks for an item
        when it has yielded what it makes of the one before.
    jobs
        Processes at most, this one included.
    """
    left = deque(range(len(items)))
    asked: deque[_Share[Made]] = deque()
    others, longest_s = jobs - 1, 0.0
    began_s = last_s = perf_counter()
    with ExitStack() as opened:
        while left or asked:
            for number, made in _own(make, items, left):
                yield number, made
                now_s = perf_counter()
                if number:  # with the first, what all need may have been made
                    longest_s = max(longest_s, now_s - last_s)
                last_s = now_s
                worth = min(others, int(longest_s * len(left) / WORTH_S), len(left))
                if worth > 0 and now_s - began_s > ALONE_S:
                    asked.extend(_asked(make, items, left, worth, opened))
                    others = 0
            if asked and asked[-1].future.cancel():
                left.extend(asked.pop().numbers)
            elif asked:
                share = asked.popleft()
                try:
                    yield from zip(share.numbers, share.future.result(), strict=True)
                except BrokenExecutor:  # it was ended, for lack of memory perhaps
                    left.extend(share.numbers)


@dataclass(frozen=True, slots=True)
class _Share(Generic[Made]):
    """What another process was asked for."""

    numbers: Sequence[int]
    future: Future[list[Made]]


def _own(
    make: Callable[[Iterable[Item]], Iterable[Made]], items: Sequence[Item], left: deque[int]
) -> Iterator[tuple[int, Made]]:
    """Yield what this process makes of what is left, until nothing is."""
    begun = -1

    def taken() -> Iterator[Item]:
        nonlocal begun
        while left:
            begun = left.popleft()
            yield items[begun]

    for made in make(taken()):
        yield begun, made


def _asked(
    make: Callable[[Iterable[Item]], Iterable[Made]],
    items: Sequence[Item],
    left: deque[int],
    others: int,
    opened: ExitStack,
) -> Iterator[_Share[Made]]:
    """Ask other processes for shares of what is left, where processes can be started."""
    try:
        processes = opened.enter_context(WorkerProcesses(others))
    except OSError:
        return
    own, *shares = ([*left][first :: others + 1] for first in range(others + 1))
    left.clear()
    left.extend(own)
    for share in shares:
        for first in range(SHARES):
            if numbers := share[first::SHARES]:
                future = processes.submit(_all, make, [items[number] for number in numbers])
                yield _Share(numbers, future)


def _all(make: Callable[[Iterable[Item]], Iterable[Made]], items: Iterable[Item]) -> list[Made]:
    return list(make(items))
