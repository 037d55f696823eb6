"""The tasks of a sweep, and who answers them: processes of this machine, or a Dask cluster.

A task whose worker process ends before it has answered is done again, on another one. If that
happens too often, it is the task that ends them, for want of memory for instance.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from parapipe.api.load import ZOO
from parapipe.errors import ModelError, ParapipeError, SweepError
from parapipe.files.locked_folders import LockedFolder
from parapipe.files.progress import ALONE, worker_count
from parapipe.processes.workers import WorkerProcesses
from parapipe.search.options import MapOptions
from parapipe.version import __version__


@dataclass(frozen=True, slots=True)
class SweepTask:
    """A model on a platform, with options that have a name.

    Parameters
    ----------
    name
        Of this task alone, and of its folder.
    digest
        SHA-256 of all that the front depends on: files, options, the version of parapipe.
    """

    name: str
    model: str
    platform: str
    variant: str
    options: MapOptions
    digest: str = ""


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """What came of a task.

    Parameters
    ----------
    files
        Those of the front's folder, by their paths in it, each compressed by zlib.
    error
        Why there is no front; empty if there is one.
    notes
        What `map` has noted.
    version
        That of parapipe in the process that answered.
    """

    files: Mapping[str, bytes]
    error: str = ""
    notes: tuple[str, ...] = ()
    version: str = __version__

    def unpacked(self) -> Iterator[tuple[Path, bytes]]:
        """Yield the files, by their paths in the front's folder."""
        for path, packed in self.files.items():
            yield Path(path), zlib.decompress(packed)


def solve_task(task: SweepTask) -> SweepAnswer:
    """Map a task's model; called in a process of this machine or of another one."""
    from parapipe.api.map import map

    notes: list[str] = []
    try:
        front = map(task.model, task.platform, options=task.options, note=notes.append)
        with LockedFolder() as scratch:
            packed = {
                path.relative_to(scratch.path).as_posix(): zlib.compress(path.read_bytes())
                for path in front.write(scratch.path, jobs=ALONE)
            }
    except ParapipeError as error:
        why = "; ".join([str(error), *getattr(error, "mistakes", ())])
        return SweepAnswer({}, why, tuple(notes))
    except Exception as error:  # noqa: BLE001 - the other tasks go on
        why = f"this is a mistake in parapipe ({type(error).__name__}: {error}); please report it"
        return SweepAnswer({}, why, tuple(notes))
    return SweepAnswer(packed, "", tuple(notes))


def with_digests(tasks: Sequence[SweepTask]) -> list[SweepTask]:
    """Return the tasks with their digests; each file is read once.

    A model that cannot be read is no error yet: it is that of its tasks.

    Raises
    ------
    PlatformError, CostError, OSError
        A platform's file, a profile or rules cannot be read.
    """
    models = {each: _model_digest(each) for each in dict.fromkeys(t.model for t in tasks)}
    used = {(t.platform, tuple(map(str, t.options.profiles)), t.options.rules) for t in tasks}
    boards = {each: _board_digest(*each) for each in used}
    return [
        replace(
            task,
            digest=_digest(
                __version__,
                task.name,
                task.model,
                models[task.model],
                boards[task.platform, tuple(map(str, task.options.profiles)), task.options.rules],
                task.options.where(lambda option: option.changes_results),
            ),
        )
        for task in tasks
    ]


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _model_digest(model: str) -> str:
    from parapipe.graph.onnx_import import open_model
    from parapipe.zoo.registry import model_and_digest

    try:
        if model.startswith(ZOO):
            return model_and_digest(model.removeprefix(ZOO))[1]
        source = open_model(Path(model), digests=True)[1]
    except ModelError:
        return ""
    return _digest(source.sha256, dict(source.external))


def _board_digest(platform: str, profiles: Sequence[str], rules: str | Path | None) -> str:
    """Return the digest of a platform, its profiles and rules."""
    from parapipe.cost.profile import chosen_profiles
    from parapipe.platform.load import file_of, load_platform, platform_text

    name = load_platform(platform).profile_name
    used = chosen_profiles(profiles, beside=platform, platform=name) or ()
    files = [each.path for each in used] + ([] if rules is None else [str(rules)])
    digests = [sha256(Path(path).read_bytes()).hexdigest() for path in files]
    return _digest(platform, platform_text(file_of(platform)), digests)


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
            futures = {workers.submit(solve_task, task): task for task in left.values()}
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
                    answer = _lost_answer(str(error))
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
    distributed = _dask()
    with _client(scheduler) as client:

        def submit(task: SweepTask) -> Any:  # noqa: ANN401 - Dask has few types
            key = f"{task.name}-{task.digest}-{lost[task.name]}"
            return client.submit(solve_task, task, key=key)

        futures = {submit(task): task for task in tasks}
        ended: Any = distributed.as_completed(list(futures))
        for future in ended:
            task = futures.pop(future)
            try:
                answer = future.result()
            except distributed.KilledWorker as error:
                lost[task.name] += 1
                if lost[task.name] < MOST_LOST:
                    resubmitted = submit(task)
                    futures[resubmitted] = task
                    ended.add(resubmitted)
                    continue
                answer = _lost_answer(str(error))
            future.release()
            yield task, answer


def _lost_answer(why: str) -> SweepAnswer:
    return SweepAnswer({}, f"its worker has ended {MOST_LOST} times, the last time so: {why}")


def _dask() -> Any:  # noqa: ANN401 - a module
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
    client_of = _dask().Client
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
