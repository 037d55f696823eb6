"""The part of the API that runs plans on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from parapipe.api import load_plan
from parapipe.arguments import check_arguments
from parapipe.errors import ExecutionError
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.loading import located_model

if TYPE_CHECKING:
    from parapipe.formats.run import RunDocument
    from parapipe.front.run import Run
    from parapipe.plan.schema import Plan
    from parapipe.runtime.folder import Folder
    from parapipe.runtime.frames import Frame
    from parapipe.runtime.record import Record

FRAMES = 100
TELL_EVERY_S = 0.1
CLOCK_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Progress:
    """How many frames are through."""

    done: int
    total: int
    elapsed_s: float
    phase: Literal["running"] = "running"
    largest_gap: float = 0.0
    cached: int = 0


def cores_given(values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each processor, from values as big=0,2-3.

    Raises
    ------
    ValueError
        If one is not of this form or names a core twice, or if two of them contradict each other.
    """
    from parapipe.runtime.core_lists import cores_of

    return cores_of(values)


def check_place(path: str | Path) -> None:
    """Refuse a place where a run could write no file, before it runs.

    Raises
    ------
    ExecutionError
        If it is a folder or no regular file, or its folder is missing or may not be written.
    """
    from parapipe.runtime.folder import RunError
    from parapipe.runtime.results import check_place as check

    try:
        check(Path(path))
    except RunError as error:
        raise ExecutionError(str(error)) from error


def run_plan(
    path: str | Path,
    *,
    model: str | Path | None = None,
    frames: int | None = None,
    given: str | Path | None = None,
    warmup: int = 3,
    saturate: bool = False,
    period_s: float | None = None,
    queue: int | None = None,
    cores: Mapping[str, Sequence[int]] | None = None,
    patience_s: float | None = None,
    keep: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Run a plan with ONNX Runtime: a thread for each processor, frames overlapping.

    Parameters
    ----------
    path
        A plan file.
    model
        The ONNX file, or `zoo:NAME`; what the plan names if not given. It must be the very model
        that the plan was made for.
    frames
        How many; as many as `given` holds, or 100, if not given.
    given
        An `.npz` file with an array for each graph input, the first axis that of frames; random
        ones if not given. What is there comes again where more are asked for.
    warmup
        Frames to run before, which count nowhere.
    saturate
        Let frames in as fast as they are taken; otherwise one each period.
    period_s
        Between frames; what the plan predicts if not given.
    queue
        Slots of every channel, two or more, in place of the plan's.
    cores
        By processor, in place of the plan's; a processor that is no CPU is then run as one.
    patience_s
        Give up after so long without progress; a minute, or ten times the predicted latency if that
        is longer, if not given.
    keep
        An `.npz` file for the results, of an unfinished run too.
    progress
        Called now and then, when frames are through.

    Raises
    ------
    PlanError, VerificationError
        It is not a plan, breaks rules, or was made for another model.
    RuntimeMissingError
        ONNX Runtime is not installed.
    ExecutionError
        The plan cannot be run here, or the run ended before its time: where, and why.
    """
    check_arguments("run_plan", {k: v for k, v in locals().items() if v is not None or k == "path"})
    if keep is not None:
        check_place(keep)
    from parapipe.plan.verify import verify_plan
    from parapipe.profiling.providers import onnx_runtime

    plan = load_plan(path)
    verify_plan(plan)
    onnx_runtime()
    from parapipe.front.run import Run
    from parapipe.runtime.executor import Executor
    from parapipe.runtime.folder import RunError
    from parapipe.runtime.frames import frames_in, random_frames, repeated
    from parapipe.runtime.other_load import OtherLoad
    from parapipe.runtime.results import Kept

    clear_abandoned_scratch()
    with LockedFolder() as scratch, located_model(plan, model) as file:
        try:
            folder = _exported(plan, file, scratch.path, cores or {})
            there = frames_in(Path(given), folder) if given is not None else None
            count = frames or (FRAMES if there is None else len(there))

            def some(number: int) -> Iterable[Frame]:
                if there is None:
                    return random_frames(folder, number)
                return repeated(there, number)

            executor = Executor(folder, queue=queue, patience_s=patience_s, remembered=count)
            for _ in executor.run(some(warmup)):
                pass
            pace_s = None if saturate else period_s or plan.predicted.period_s
            others = OtherLoad()
            with (
                Kept(None if keep is None else Path(keep)) as kept,
                closing(executor.run(some(count), period_s=pace_s)) as run,
            ):
                for results in _told(run, count, progress):
                    kept.add(results)
        except RunError as error:
            raise ExecutionError(str(error)) from error
        busy = others.sentence()
        clocks = tuple(_other_clocks(plan, folder))
    notes = (*_substitutes(folder), *folder.shared_cores(), *([busy] if busy else []), *clocks)
    document = _document(plan, folder, executor.record, queue=queue, pace_s=pace_s)
    return Run(document, executor.record, notes)


def _told(
    run: Iterable[Mapping[str, Any]], total: int, progress: Callable[[Progress], None] | None
) -> Iterator[Mapping[str, Any]]:
    begin_s = last_s = monotonic()
    for done, results in enumerate(run, 1):
        yield results
        now_s = monotonic()
        if progress is not None and (done == 1 or now_s - last_s >= TELL_EVERY_S):
            last_s = now_s
            progress(Progress(done, total, now_s - begin_s))


def _exported(plan: Plan, model: Path, place: Path, cores: Mapping[str, Sequence[int]]) -> Folder:
    from parapipe.export.onnxruntime.folder import write_session_folder
    from parapipe.runtime.folder import open_folder

    write_session_folder(plan, model, place)
    folder = open_folder(place).on_cores(cores)
    folder.check_cores()
    return folder


def _document(
    plan: Plan, folder: Folder, record: Record, *, queue: int | None, pace_s: float | None
) -> RunDocument:
    from parapipe.formats.run import run_document
    from parapipe.plan.program import program

    return run_document(
        plan,
        program(plan, unit="segment", queue=queue, moves=False),
        record,
        how="run",
        saturated=pace_s is None,
        pace_s=pace_s,
        members={segment.id: segment.operators for segment in folder.segments},
    )


def _other_clocks(plan: Plan, folder: Folder) -> Iterator[str]:
    """Yield processors whose clock is not that which the plan counts on."""
    from parapipe.profiling.measure import clock_hz

    planned = {each.name: each for each in plan.processors}
    for processor in folder.processors:
        wanted_hz = planned[processor.name].operating_point.frequency_hz
        found_hz = clock_hz(min(processor.cores)) if processor.cores else 0.0
        own = processor.cores == planned[processor.name].cores
        if own and found_hz and abs(found_hz / wanted_hz - 1) > CLOCK_TOLERANCE:
            yield (
                f"'{processor.name}' is clocked at {found_hz / 1e9:.2f} GHz, and the plan counts "
                f"on {wanted_hz / 1e9:.2f} GHz: fix its frequency, or map at the one it has"
            )


def _substitutes(folder: Folder) -> tuple[str, ...]:
    return tuple(
        f"'{processor.name}' is run by {processor.provider}, since {processor.substitute}"
        for processor in folder.processors
        if processor.substitute
    )
