"""Calls of one function, in this process or in others.

Small ones are done in this process as long as that is quick, since starting processes costs about
half a second; what is left goes to worker processes, the largest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor, as_completed
from time import perf_counter
from typing import Generic, TypeVar

from parapipe.errors import MappingError
from parapipe.pipeline.workers import WorkerProcesses

SMALL = 20  # operators of a problem that is tried in this process
TRIAL_S = 0.5  # before it is judged how long the small problems will take
HAND_OVER_S = 2.0  # what small problems may still take in this process

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def distribute(
    answer: Callable[..., Answer],
    tasks: Sequence[Task],
    record: Callable[[Task, Answer], None],
    *,
    given: tuple[object, ...] = (),
    size: Callable[[Task], int],
    jobs: int,
    executor: Executor | None = None,
) -> None:
    """Answer tasks, no two of them equal, and record each answer in this thread as it comes.

    Parameters
    ----------
    answer
        Called with a task and what is `given`; all of them cross to other processes.
    size
        Number of a task's operators.
    jobs
        Tasks worked on at the same time.
    executor
        Answers all, in place of this process and its workers; it stays open.

    Raises
    ------
    MappingError
        A worker process ends before it has answered. What `answer` raises passes through.
    """
    work = _Work(answer, given, record, dict.fromkeys(tasks))
    if executor is not None:
        work.gather(executor, list(work.left))
        return
    small = [task for task in work.left if size(task) <= SMALL]
    if small:
        with ThreadPoolExecutor(jobs) as threads:
            work.gather(threads, small, hand_over=True)
    large = sorted(work.left, key=lambda task: -size(task))
    if large:
        with WorkerProcesses(min(jobs, len(large))) as processes:
            work.gather(processes, large)


class _Work(Generic[Task, Answer]):
    """Tasks that have no answer yet, in the order in which they were given."""

    def __init__(
        self,
        answer: Callable[..., Answer],
        given: tuple[object, ...],
        record: Callable[[Task, Answer], None],
        left: dict[Task, None],
    ) -> None:
        self.answer = answer
        self.given = given
        self.record = record
        self.left = left

    def gather(self, executor: Executor, tasks: Sequence[Task], *, hand_over: bool = False) -> None:
        """Let an executor answer tasks.

        Parameters
        ----------
        hand_over
            Return before all are answered if that takes long enough to start processes for them.
        """
        futures = {executor.submit(self.answer, task, *self.given): task for task in tasks}
        begin_s, before = perf_counter(), len(self.left)
        try:
            for future in as_completed(futures):
                self._take(futures[future], future.result())
                done = before - len(self.left)
                if hand_over and _is_slow(perf_counter() - begin_s, done, len(tasks) - done):
                    break
            for future in as_completed([future for future in futures if not future.cancel()]):
                self._take(futures[future], future.result())
        except BrokenExecutor as error:
            raise MappingError(
                f"subgraphs could not be solved: {error}; if memory ran short, try fewer --jobs"
            ) from error
        finally:
            for future in futures:
                future.cancel()

    def _take(self, task: Task, answer: Answer) -> None:
        if task in self.left:
            del self.left[task]
            self.record(task, answer)


def _is_slow(elapsed_s: float, done: int, left: int) -> bool:
    return elapsed_s > TRIAL_S and elapsed_s / done * left > HAND_OVER_S
