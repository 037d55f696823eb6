"""Who answers the tasks of a sweep: processes of this machine, or a Dask cluster.

A task whose worker process ends before it has answered is done again, on another one. If that
happens too often, it is the task that ends them, for want of memory for instance.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, as_completed
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from parapipe.api.sweep_tasks import SweepAnswer, SweepTask, answered
from parapipe.errors import SweepError
from parapipe.files.worker_counts import worker_count
from parapipe.pipeline.workers import WorkerProcesses

MOST_LOST = 5
"""Times that a worker may end at one task."""
CONNECT_S = 30.0
Answers = Iterator[tuple[SweepTask, SweepAnswer]]


def local_answers(tasks: Sequence[SweepTask], jobs: int | None) -> Answers:
    """Yield each task with its answer as they come, from processes of this machine."""
    left = {task.name: task for task in tasks}
    lost: Counter[str] = Counter()
    while left:
        with WorkerProcesses(worker_count(jobs, tasks=len(left))) as workers:
            futures = {workers.submit(answered, task): task for task in left.values()}
            for future in as_completed(futures):
                task = futures[future]
                try:
                    answer = future.result()
                except BrokenExecutor as error:
                    if error.__cause__ is None:  # it was never begun, since another one was lost
                        continue
                    lost[task.name] += 1
                    if lost[task.name] < MOST_LOST:
                        continue
                    answer = _given_up(str(error))
                del left[task.name]
                yield task, answer


def dask_answers(tasks: Sequence[SweepTask], scheduler: str) -> Answers:
    """Yield each task with its answer as they come, from the workers of a Dask scheduler.

    Raises
    ------
    SweepError
        Dask is not installed, or the scheduler cannot be reached.
    """
    lost: Counter[str] = Counter()
    distributed = _distributed()
    with _client(scheduler) as client:

        def handed(task: SweepTask) -> Any:  # noqa: ANN401 - Dask has few types
            return client.submit(answered, task, key=f"{task.name}-{task.digest}-{lost[task.name]}")

        futures = {handed(task): task for task in tasks}
        ended: Any = distributed.as_completed(list(futures))
        for future in ended:
            task = futures.pop(future)
            try:
                answer = future.result()
            except distributed.KilledWorker as error:
                lost[task.name] += 1
                if lost[task.name] < MOST_LOST:
                    again = handed(task)
                    futures[again] = task
                    ended.add(again)
                    continue
                answer = _given_up(str(error))
            future.release()
            yield task, answer


def _given_up(why: str) -> SweepAnswer:
    return SweepAnswer({}, f"its worker has ended {MOST_LOST} times, the last time so: {why}")


def _distributed() -> Any:  # noqa: ANN401 - a module
    """Return Dask's package, which is not always there."""
    try:
        return import_module("distributed")
    except ImportError:
        raise SweepError(
            "a scheduler needs Dask: install it with pip install 'parapipe[sweep]'"
        ) from None


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    """Yield a client of a scheduler, and close it."""
    client_of = _distributed().Client
    try:
        with _without_log():
            client: Any = client_of(scheduler, timeout=CONNECT_S)
    except Exception as error:  # noqa: BLE001 - whatever the bytes of another program lead Dask to
        reason = " ".join(f"{error}".replace("`", "'").split()) or type(error).__name__
        raise SweepError(
            f"the Dask scheduler at '{scheduler}' cannot be reached, or is none ({reason}); give "
            "its address, as in tcp://10.0.0.5:8786"
        ) from None
    with client:
        yield client


@contextmanager
def _without_log() -> Iterator[None]:
    """Keep Dask from logging the traceback of an error that is raised as well."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
