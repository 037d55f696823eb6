"""Work that other processes help with: many items where that takes long, or a single call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Generic, TypeVar

from parapipe.pipeline.workers import KeptProcesses, processes_at_hand

ALONE_S = 0.1
"""Before processes are started: until then it is seen how long the rest will take."""
WORTH_S = 1.5
"""Of work that is left, for each process that helps: three times as long as it takes to start,"""
WORTH_RUNNING_S = 0.15
"""and for each that has been started before."""
SHARES = 3
"""Of each other process: those that it has not begun when this one is through come back."""
ASK_S = 0.05
"""How often a process that waits for another one asks whether to go on."""

Item = TypeVar("Item")
Made = TypeVar("Made")


def shared_work(
    make: Callable[[Iterable[Item]], Iterable[Made]], items: Sequence[Item], jobs: int
) -> Iterator[tuple[int, Made]]:
    """Yield numbers of items and what is made of them, in any order, each when it is there.

    This process begins alone. Others help where what is left would take long, if all of it took as
    long as the longest so far: those of `kept_processes`, or some for this call.

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
    processes = processes_at_hand()
    running = processes.count if processes and processes.count <= others else 0
    began_s = last_s = perf_counter()
    with ExitStack() as opened:
        while left or asked:
            for number, made in _own(make, items, left):
                yield number, made
                now_s = perf_counter()
                if number:  # with the first, what all need may have been made
                    longest_s = max(longest_s, now_s - last_s)
                last_s = now_s
                helping = min(others, len(left), _worth(longest_s * len(left), running))
                if helping > 0 and (running or now_s - began_s > ALONE_S):
                    processes = processes or opened.enter_context(KeptProcesses())
                    if processes.count > others:
                        processes.end()
                    opened.callback(_end_unless_done, processes, asked)
                    asked.extend(_asked(make, items, left, helping, processes))
                    others = 0
            if asked and asked[-1].future.cancel():
                left.extend(asked.pop().numbers)
            elif asked:
                share = asked[0]
                try:
                    yield from zip(share.numbers, share.future.result(), strict=True)
                except BrokenExecutor:  # it was ended, for lack of memory perhaps
                    left.extend(share.numbers)
                asked.popleft()


@contextmanager
def made_beside(
    make: Callable[[], Iterable[Made]],
    *,
    here: Callable[[], Iterable[Made]],
    over: Callable[[], bool],
) -> Iterator[Iterator[Made]]:
    """Let another process make something from now on, where there is one; yield what comes of it.

    Leaving the context ends the process if it is still at it.

    Parameters
    ----------
    make
        Crosses to the other process.
    here
        Makes the same in this process, in case that no other one can be started, or it ends.
    over
        Whether to do without it.
    """
    future, processes = None, processes_at_hand()
    if processes:
        with suppress(OSError):
            future = processes.running(1).submit(_list, make)
    if not (future and processes):
        yield iter(here())
        return
    try:
        yield _awaited(future, here, over)
    finally:
        if not future.done():
            processes.end()


def _awaited(
    future: Future[list[Made]], here: Callable[[], Iterable[Made]], over: Callable[[], bool]
) -> Iterator[Made]:
    """Yield what another process makes; nothing once it is over."""
    while not future.done() and not over():
        wait([future], ASK_S)
    if future.done():
        try:
            yield from future.result()
        except BrokenExecutor:
            yield from here()


def _worth(left_s: float, running: int) -> int:
    """Return how many processes are worth while for so much work, if some have been started."""
    return max(int(left_s / WORTH_S), min(running, int(left_s / WORTH_RUNNING_S)))


def _end_unless_done(processes: KeptProcesses, asked: Iterable[_Share[Made]]) -> None:
    """End processes if nobody waits for what they do."""
    if any(not share.future.done() for share in asked):
        processes.end()


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
    kept: KeptProcesses,
) -> Iterator[_Share[Made]]:
    """Ask other processes for shares of what is left, where processes can be started."""
    try:
        processes = kept.running(others)
    except OSError:
        return
    own, *shares = ([*left][first :: others + 1] for first in range(others + 1))
    left.clear()
    left.extend(own)
    for share in shares:
        for first in range(SHARES):
            if numbers := share[first::SHARES]:
                given = [items[number] for number in numbers]
                future = processes.submit(_list, partial(make, given))
                yield _Share(numbers, future)


def _list(make: Callable[[], Iterable[Made]]) -> list[Made]:
    return list(make())
