"""Work in other processes: calls of one function, in this process or in others.

Small tasks are answered in this process as long as that is quick, since starting processes costs
about half a second; what is left goes to worker processes, the largest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import perf_counter
from typing import Generic, TypeVar

from parapipe.errors import MappingError
from parapipe.files.progress import worker_count
from parapipe.processes.deadline import Deadline
from parapipe.processes.workers import SharedProcesses, current_processes, shared_processes
from parapipe.solvers.cp_sat import Stop

SMALL_PROBLEM = 20  # operators of a problem that is tried in this process
TRIAL_S = 0.5  # before it is judged how long the small problems will take
HAND_OVER_S = 5.0  # what small problems may still take in this process, if others can help
MEMORY_S = 0.5  # how often who waits looks at the memory
ALONE_S = 20.0  # and if not: a process of its own then only ends at once when asked to

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def distribute(
    answer: Callable[..., Answer],
    tasks: Sequence[Task],
    record: Callable[[Task, Answer], None],
    *,
    given: tuple[object, ...] = (),
    here: Callable[..., Answer | None] | None = None,
    size: Callable[[Task], int],
    jobs: int,
    executor: Executor | None = None,
    deadline: Deadline | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Answer tasks, no two of them equal, and record each answer in this thread as it comes.

    Parameters
    ----------
    answer
        Called with a task and what is `given`; all of them cross to other processes.
    here
        Called in place of it in this process, where CP-SAT alone can be stopped: returns None if
        the deadline leaves a task too little time, which is then for a process that can be ended.
    size
        Number of a task's operators.
    jobs
        Tasks worked on at the same time.
    executor
        Answers all, in place of this process and its workers; it stays open.
    deadline
        When to leave what has not been answered.
    meanwhile
        Called in this thread whenever the deadline says that a look is due, as long as there is
        something to answer; it says so then when the next one is.

    Raises
    ------
    MappingError
        A worker process ends before it has answered. What `answer` raises passes through.
    """
    work = _Distribution(answer, given, record, deadline or Deadline(), meanwhile)
    left = work.left = dict.fromkeys(tasks)
    try:
        if executor is not None:
            work.gather(executor, list(left))
        elif small := [task for task in left if size(task) <= SMALL_PROBLEM]:
            with ThreadPoolExecutor(jobs) as threads:
                alone_s = HAND_OVER_S if jobs > 1 else ALONE_S
                work.gather(threads, small, alone_s, here=here or answer)
        large = sorted(left, key=lambda task: -size(task))
        if large and not work.deadline.over:
            with shared_processes() as processes:
                try:
                    work.gather(processes.running(worker_count(jobs, tasks=len(large))), large)
                finally:
                    if left:  # what they are at, if anything, is of no use any more
                        processes.end()
    except BrokenExecutor as error:
        raise MappingError(
            f"subgraphs could not be solved: {error}; if memory ran short, try fewer `jobs`"
        ) from error


@dataclass(slots=True)
class _Distribution(Generic[Task, Answer]):
    """Tasks on their way to answers; see `distribute`."""

    answer: Callable[..., Answer]
    arguments: tuple[object, ...]
    record: Callable[[Task, Answer], None]
    deadline: Deadline
    meanwhile: Callable[[], None] | None
    left: dict[Task, None] = field(default_factory=dict)

    @property
    def wait_s(self) -> float:
        """Seconds left to the deadline or to the next look."""
        look_s = self.deadline.look_s - self.deadline.gone_s if self.meanwhile else inf
        return max(0.0, min(self.deadline.left_s, look_s))

    def gather(
        self,
        executor: Executor,
        tasks: Sequence[Task],
        most_s: float = inf,
        *,
        here: Callable[..., Answer | None] | None = None,
    ) -> None:
        """Hand tasks to an executor and record its answers.

        Parameters
        ----------
        most_s
            Seconds that small tasks may take, before those that wait are left to others.
        here
            Called in threads of this process in place of the function that crosses to others.
        """
        stop = Stop()
        answer = stop.stoppable(here) if here else self.answer
        futures = {executor.submit(answer, task, *self.arguments): task for task in tasks}
        waiting = set(futures)
        try:
            while waiting and not self.deadline.over:
                done = _yield_done(waiting, self.wait_s, most_s=most_s, deadline=self.deadline)
                for future in done:
                    waiting.remove(future)
                    if not future.cancelled() and (result := future.result()) is not None:
                        self.record(futures[future], result)
                        del self.left[futures[future]]
                    if self.wait_s <= 0:
                        break
                if waiting and self.meanwhile and self.deadline.look_due:
                    self.meanwhile()
        finally:
            _cancel_all(futures)
            if here:
                stop.end(futures)


def _yield_done(
    futures: Collection[Future[Answer | None]],
    left_s: float,
    *,
    most_s: float,
    deadline: Deadline,
) -> Iterator[Future[Answer | None]]:
    """Yield futures as they are done or cancelled, for some seconds.

    Parameters
    ----------
    most_s
        Cancel those that wait if all of them would take longer than that.
    deadline
        It may come before, for want of memory.
    """
    begin_s, total, waiting = perf_counter(), len(futures), {*futures}
    while waiting:
        wait_s = max(0.0, begin_s + left_s - perf_counter())
        with suppress(TimeoutError):
            for future in as_completed(tuple(waiting), min(wait_s, MEMORY_S)):
                waiting.remove(future)
                yield future
                elapsed_s, count = perf_counter() - begin_s, total - len(waiting)
                if elapsed_s > TRIAL_S and elapsed_s / count * len(waiting) > most_s:
                    most_s = inf
                    _cancel_all(futures)
        if wait_s <= MEMORY_S or deadline.over:
            return


def _cancel_all(futures: Iterable[Future[Answer | None]]) -> None:
    for future in futures:
        future.cancel()


ALONE_AT_FIRST_S = 0.1
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
Result = TypeVar("Result")


def shared_work(
    make: Callable[[Iterable[Item]], Iterable[Result]], items: Sequence[Item], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Yield numbers of items and what is made of them, in any order, each when it is there.

    This process begins alone. Others help where what is left would take long, if all of it took as
    long as the longest so far: those of `shared_processes`, or some for this call.

    Parameters
    ----------
    make
        Makes something of each item, in their order, the same in any process. It asks for an item
        when it has yielded what it makes of the one before.
    jobs
        Processes at most, this one included.
    """
    left = deque(range(len(items)))
    shares: deque[_Share[Result]] = deque()
    others, longest_s = jobs - 1, 0.0
    processes = current_processes()
    running = processes.count if processes and processes.count <= others else 0
    began_s = last_s = perf_counter()
    with ExitStack() as opened:
        while left or shares:
            for number, result in _work_here(make, items, left):
                yield number, result
                now_s = perf_counter()
                if number:  # with the first, what all need may have been made
                    longest_s = max(longest_s, now_s - last_s)
                last_s = now_s
                helping = min(others, len(left), _count_worthwhile(longest_s * len(left), running))
                if helping > 0 and (running or now_s - began_s > ALONE_AT_FIRST_S):
                    processes = processes or opened.enter_context(SharedProcesses())
                    if processes.count > others:
                        processes.end()
                    opened.callback(_end_unless_done, processes, shares)
                    shares.extend(_submit_shares(make, items, left, helping, processes))
                    others = 0
            if shares and shares[-1].future.cancel():
                left.extend(shares.pop().numbers)
            elif shares:
                share = shares[0]
                try:
                    yield from zip(share.numbers, share.future.result(), strict=True)
                except BrokenExecutor:  # it was ended, for lack of memory perhaps
                    left.extend(share.numbers)
                shares.popleft()


@contextmanager
def run_beside(
    make: Callable[[], Iterable[Result]],
    *,
    here: Callable[[], Iterable[Result]],
    over: Callable[[], bool],
) -> Iterator[Iterator[Result]]:
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
    future, processes = None, current_processes()
    if processes:
        with suppress(OSError):
            future = processes.running(1).submit(_list_results, make)
    if not (future and processes):
        yield iter(here())
        return
    try:
        yield _await_results(future, here, over)
    finally:
        if not future.done():
            processes.end()


def _await_results(
    future: Future[list[Result]], here: Callable[[], Iterable[Result]], over: Callable[[], bool]
) -> Iterator[Result]:
    """Yield what another process makes; nothing once it is over."""
    while not future.done() and not over():
        wait([future], ASK_S)
    if future.done():
        try:
            yield from future.result()
        except BrokenExecutor:
            yield from here()


def _count_worthwhile(left_s: float, running: int) -> int:
    """Return how many processes are worth while for so much work, if some have been started."""
    return max(int(left_s / WORTH_S), min(running, int(left_s / WORTH_RUNNING_S)))


def _end_unless_done(processes: SharedProcesses, shares: Iterable[_Share[Result]]) -> None:
    """End processes if nobody waits for what they do."""
    if any(not share.future.done() for share in shares):
        processes.end()


@dataclass(frozen=True, slots=True)
class _Share(Generic[Result]):
    """What another process was asked for."""

    numbers: Sequence[int]
    future: Future[list[Result]]


def _work_here(
    make: Callable[[Iterable[Item]], Iterable[Result]], items: Sequence[Item], left: deque[int]
) -> Iterator[tuple[int, Result]]:
    """Yield what this process makes of what is left, until nothing is."""
    at = -1

    def take() -> Iterator[Item]:
        nonlocal at
        while left:
            at = left.popleft()
            yield items[at]

    for result in make(take()):
        yield at, result


def _submit_shares(
    make: Callable[[Iterable[Item]], Iterable[Result]],
    items: Sequence[Item],
    left: deque[int],
    others: int,
    pool: SharedProcesses,
) -> Iterator[_Share[Result]]:
    """Ask other processes for shares of what is left, where processes can be started."""
    try:
        processes = pool.running(others)
    except OSError:
        return
    own, *shares = ([*left][first :: others + 1] for first in range(others + 1))
    left.clear()
    left.extend(own)
    for share in shares:
        for first in range(SHARES):
            if numbers := share[first::SHARES]:
                some = [items[number] for number in numbers]
                future = processes.submit(_list_results, partial(make, some))
                yield _Share(numbers, future)


def _list_results(make: Callable[[], Iterable[Result]]) -> list[Result]:
    return list(make())
