"""What `benchmarks.strategies_here` runs: plans on cores of this machine, with strategies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from threading import Semaphore

from benchmarks.split_here import cut_plan
from parapipe.api.load import load_model, split_file
from parapipe.api.running import write_run_folders
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.plan.schema import Plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import Folder, open_folder
from parapipe.runtime.frames import Frame, random_frames
from parapipe.strategies.cut import Cut, pieces_of
from parapipe.strategies.registry import PLAN, strategy
from parapipe.strategies.strategy_executor import NOT_SPLIT, StrategyExecutor

EDGE = 3  # frames at each end of a saturated run in which not all processors are busy
CORES = sorted(os.sched_getaffinity(0))


def on_cores(folder: Folder, cores: Sequence[int]) -> Folder:
    """Return a folder whose processors have one core each; those without a core are left out."""
    taken = dict(zip((each.name for each in folder.processors), cores, strict=False))
    moved = folder.on_cores({name: (core,) for name, core in taken.items()})
    first = moved.processors[0].name
    return replace(
        moved,
        processors=tuple(each for each in moved.processors if each.name in taken),
        segments=tuple(
            each if each.processor in taken else replace(each, processor=first)
            for each in moved.segments
        ),
        channels=tuple(
            each if each.processor in taken else replace(each, processor=first)
            for each in moved.channels
        ),
    )


def folder_of_parts(
    model: Path, rule: str, parts: int, platform: Path, place: Path, *, cut: Cut | None
) -> Folder:
    """Write a network with its operators cut into parts, and these put together to pieces."""
    place.mkdir(parents=True)
    with ExitStack() as opened:
        file = model
        if parts > 1:
            split = split_file(model, model.stem, [f"*:{rule}={parts}"], "fused", external=True)
            file = opened.enter_context(split)
        plan = cut_plan(load_model(file, note=lambda _: None), platform, None, parts)
        write_session_folder(plan, file, place, single=True, pieces=pieces_of(plan, cut))
    return open_folder(place)


def executor_of(
    folder: Folder,
    decides: str | type,
    *,
    batch: int = 1,
    sized: Mapping[int, Folder] = NOT_SPLIT,
    queue: int | None = None,
) -> Executor:
    """Return a folder that is open and measured, to be run with a strategy."""
    name, found = strategy(decides)
    if name == PLAN:
        return Executor(folder, queue=queue)
    executor = StrategyExecutor(folder, found, name, batch=batch, sized=sized, queue=queue)
    executor.measure(random_frames(folder, 2))
    return executor


def batch_executor(
    plan: Plan, model: Path, decides: type, place: Path, *, single: bool = False
) -> Executor:
    """Return a plan of batches that is open, for a strategy that may split them."""
    place.mkdir(parents=True)
    cores = {each.name: (core,) for each, core in zip(plan.processors, CORES, strict=False)}
    folders = write_run_folders(plan, model, decides, place, cores=cores, single=single)
    return executor_of(folders.full, decides, batch=folders.batch, sized=folders.sized)


def latency_s(executor: Executor, frames: Sequence[Frame], count: int) -> float:
    """Return the median time of frames of which each waits for the one before to be through."""
    free = Semaphore()

    def waiting() -> Iterator[Frame]:
        for number in range(count):
            free.acquire()
            yield frames[number % len(frames)]

    for _ in executor.run(waiting()):
        free.release()
    return median(each.done_s - each.admitted_s for each in executor.record.frames)


def period_s(executor: Executor, frames: Sequence[Frame], count: int) -> float:
    """Return the time between frames that are admitted as fast as they are taken.

    Processors that work on a frame each may always be done at about the same time: so it is what so
    many frames take together, by their number.
    """
    for _ in executor.run(frames[number % len(frames)] for number in range(count)):
        pass
    done_s = sorted(each.done_s for each in executor.record.frames)
    done_s = done_s[EDGE:-EDGE] if len(done_s) > 4 * EDGE else done_s
    together = len(executor.folder.processors)
    return fmean(b - a for a, b in zip(done_s, done_s[together:], strict=False)) / together


@dataclass(slots=True)
class Measured:
    """Something measured in turn with others, round after round."""

    name: str
    executor: Executor
    frames: Sequence[Frame]
    count: int
    latencies_s: list[float]
    periods_s: list[float]

    @classmethod
    def of(cls, name: str, executor: Executor, count: int) -> Measured:
        """Return one that has not been measured."""
        return cls(name, executor, list(random_frames(executor.folder, 4)), count, [], [])

    def measure(self, *, latency: bool = True, period: bool = True) -> None:
        """Measure it once more."""
        if latency:
            self.latencies_s.append(latency_s(self.executor, self.frames, self.count))
        if period:
            self.periods_s.append(period_s(self.executor, self.frames, self.count))

    @property
    def latency_s(self) -> float:
        """Median of the rounds."""
        return median(self.latencies_s)

    @property
    def period_s(self) -> float:
        """Median of the rounds."""
        return median(self.periods_s)


def parallel_fraction(gain: float, cores: int) -> float:
    """Return p_e by Karp and Flatt, of a gain over one core."""
    return 1 - (1 / gain - 1 / cores) / (1 - 1 / cores)
