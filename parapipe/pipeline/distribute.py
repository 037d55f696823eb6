"""Calls of one function, in this process or in others.

Small tasks are answered in this process as long as that is quick, since starting processes costs
about half a second; what is left goes to worker processes, the largest first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Generic, TypeVar

from parapipe.errors import MappingError
from parapipe.files.worker_counts import worker_count
from parapipe.mapping.cp_sat import Stop
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.workers import kept_processes

SMALL = 20  # operators of a problem that is tried in this process
TRIAL_S = 0.5  # before it is judged how long the small problems will take
HAND_OVER_S = 5.0  # what small problems may still take in this process, if others can help
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
        elif small := [task for task in left if size(task) <= SMALL]:
            with ThreadPoolExecutor(jobs) as threads:
                alone_s = HAND_OVER_S if jobs > 1 else ALONE_S
                work.gather(threads, small, alone_s, here=here or answer)
        large = sorted(left, key=lambda task: -size(task))
        if large and not work.deadline.over:
            with kept_processes() as processes:
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
    given: tuple[object, ...]
    record: Callable[[Task, Answer], None]
    deadline: Deadline
    meanwhile: Callable[[], None] | None
    left: dict[Task, None] = field(default_factory=dict)

    @property
    def soon_s(self) -> float:
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
        answer = stop.heeded(here) if here else self.answer
        futures = {executor.submit(answer, task, *self.given): task for task in tasks}
        waiting = set(futures)
        try:
            while waiting and not self.deadline.over:
                for future in _done(waiting, self.soon_s, most_s=most_s):
                    waiting.remove(future)
                    if not future.cancelled() and (made := future.result()) is not None:
                        self.record(futures[future], made)
                        del self.left[futures[future]]
                    if self.soon_s <= 0:
                        break
                if waiting and self.meanwhile and self.deadline.look_due:
                    self.meanwhile()
        finally:
            _cancel(futures)
            if here:
                stop.end(futures)


def _done(
    futures: Collection[Future[Answer | None]], left_s: float, *, most_s: float
) -> Iterator[Future[Answer | None]]:
    """Yield futures as they are done or cancelled, for some seconds.

    Parameters
    ----------
    most_s
        Cancel those that wait if all of them would take longer than that.
    """
    begin_s = perf_counter()
    with suppress(TimeoutError):
        for count, future in enumerate(
            as_completed(futures, None if left_s == inf else left_s), start=1
        ):
            yield future
            elapsed_s, rest = perf_counter() - begin_s, len(futures) - count
            if elapsed_s > TRIAL_S and elapsed_s / count * rest > most_s:
                most_s = inf
                _cancel(futures)


def _cancel(futures: Iterable[Future[Answer | None]]) -> None:
    for future in futures:
        future.cancel()
