"""Runs plans on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal

from parapipe.api.checked import Model, PlanGiven, StrategyGiven, checked
from parapipe.api.load import located_model, opened_plan
from parapipe.errors import ExecutionError
from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty, Seconds
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Progress, Tell
from parapipe.pipeline.options import FilePath
from parapipe.runtime.core_lists import cores_of
from parapipe.strategies import registry

if TYPE_CHECKING:
    from parapipe.api.folders import Folders
    from parapipe.front.run import Run
    from parapipe.plan.schema import Plan
    from parapipe.runtime.executor import Executor
    from parapipe.runtime.folder import Folder
    from parapipe.runtime.frames import Frame
    from parapipe.strategies.strategy import Strategy

FRAMES = 100
TELL_EVERY_S = 0.1
CLOCK_TOLERANCE = 0.05
_CoreList = Annotated[Sequence[FromZero], Must("core numbers", filled=True)]
Cores = Annotated[
    Mapping[str, _CoreList],
    Must("lists of core numbers by processor, as in {'big': [0, 1]}"),
]


def cores_given(values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each processor, from values as big=0,2-3; ValueError for a wrong one."""
    return cores_of(values)


def check_place(path: FilePath) -> None:
    """Raise an ExecutionError if a run could write no file there: before it runs."""
    from parapipe.runtime.folder import RunError
    from parapipe.runtime.results import check_place as check

    try:
        check(Path(path))
    except RunError as error:
        raise ExecutionError(str(error)) from error


@checked
def run_plan(
    plan: PlanGiven,
    *,
    model: Model | None = None,
    frames: Count | None = None,
    input: Annotated[NotEmpty | Path, Must("the path of an .npz file")] | None = None,
    warmup: FromZero = 3,
    saturate: bool = False,
    period_s: Seconds | None = None,
    queue: Count | None = None,
    in_step: bool = False,
    cores: Cores | None = None,
    patience_s: Seconds | None = None,
    keep: FilePath | None = None,
    strategy: StrategyGiven = "plan",
    unit: Literal["operator", "segment"] = "segment",
    progress: Tell | None = None,
) -> Run:
    """Run a plan with ONNX Runtime: a thread for each processor, frames overlapping.

    Parameters
    ----------
    plan
        A plan, or its file.
    model
        The ONNX file, or `zoo:NAME`, if it is not where the plan says. It must be the model that
        the plan was made for.
    frames
        How many. Default: as many as are given, or 100.
    input
        An `.npz` file with an array for each graph input, of its shape or with one more axis in
        front for the frames. Default: random numbers. They are repeated if more frames are wanted.
    warmup
        Frames to run first; they are not counted.
    saturate
        Admit frames as fast as the pipeline takes them, not one per period.
    period_s
        Time between frames; what the plan predicts if not given.
    queue
        Slots of every channel between processors, two or more, instead of the plan's.
    in_step
        Let processors begin their work in the plan's order on all of them together: then a run
        holds no more tensors than the plan, whatever its times are, but may take longer.
    cores
        Cores of processors, instead of the plan's; a GPU or NPU then runs as a CPU on these cores.
    patience_s
        Give up after this time without progress. Default: a minute, or ten times the predicted
        latency if that is longer.
    keep
        Write the results to this `.npz` file, those of an unfinished run too.
    strategy
        What decides which processor runs what: plan, steal, ready-pool, barriers, micro-batches,
        streams, or a class of your own as MODULE:CLASS. All but plan first measure, on the frames
        of `warmup`, what every segment takes on every processor.
    unit
        What a processor runs without interruption: segments of the plan, or single operators, so
        that a strategy decides on each of them.
    progress
        Called now and then, when frames are through.

    Raises
    ------
    PlanError, VerificationError
        It is not a plan, breaks rules, or was made for another model.
    RuntimeMissingError
        ONNX Runtime is not installed.
    StrategyError
        There is no such strategy.
    ExecutionError
        The plan cannot be run here, or the run ended before its time: where, and why.
    """
    if keep is not None:
        check_place(keep)
    from parapipe.plan.verify import verify_plan
    from parapipe.profiling.providers import onnx_runtime

    name, decides = registry.strategy(strategy)
    opened = opened_plan(plan)
    verify_plan(opened)
    onnx_runtime()
    from parapipe.api.folders import run_folders
    from parapipe.export.onnxruntime.handed import unconverted
    from parapipe.formats.run import MachineRow
    from parapipe.formats.run_document import run_document
    from parapipe.front.run import Run
    from parapipe.plan.in_place import as_run
    from parapipe.plan.program import program
    from parapipe.runtime.folder import RunError
    from parapipe.runtime.frames import frames_in, random_frames, repeated
    from parapipe.runtime.other_load import OtherLoad, busy_note
    from parapipe.runtime.results import Kept

    clear_abandoned_scratch()
    with LockedFolder() as scratch, located_model(opened, model) as file:
        try:
            folders = run_folders(
                opened, file, decides, scratch.path, single=unit == "operator", cores=cores or {}
            )
            folder = folders.whole
            folder.check_cores()
            there = frames_in(Path(input), folder) if input is not None else None
            count = frames or (FRAMES if there is None else len(there))

            def some(number: int) -> Iterable[Frame]:
                if there is None:
                    return random_frames(folder, number)
                return repeated(there, number)

            given = {
                "queue": queue, "patience_s": patience_s, "remembered": count, "in_step": in_step
            }  # fmt: skip
            executor = _warm(folders, name, decides, some(warmup), **given)
            pace_s = None if saturate else period_s or opened.predicted.period_s
            others = OtherLoad()
            with (
                Kept(None if keep is None else Path(keep)) as kept,
                closing(executor.run(some(count), period_s=pace_s)) as run,
            ):
                for results in _told(run, count, progress):
                    kept.add(results)
        except RunError as error:
            raise ExecutionError(str(error)) from error
        took = others.share()
        clocks = tuple(_other_clocks(opened, folder))
    used = [sentence for each in executor.used for sentence in each.sentences()]
    notes = (
        *unconverted(opened),
        *used,
        *folder.notes(),
        *filter(None, [busy_note(took)]),
        *clocks,
    )
    ran = {operator for segment in folder.segments for operator in segment.operators}
    document = run_document(
        opened,
        program(as_run(opened, ran), unit=unit, queue=queue, moves=False, pieces=folders.pieces),
        executor.record,
        how="run",
        strategy=name,
        saturated=saturate,
        pace_s=pace_s,
        members={segment.id: segment.operators for segment in folder.segments},
        machine=MachineRow(
            cores={each.name: each.cores for each in folder.processors}, other_programs=took
        ),
        used=executor.used,
    )
    return Run(document, executor.record, notes)


def _warm(
    folders: Folders,
    name: str,
    decides: type[Strategy],
    frames: Iterable[Frame],
    **options: Any,  # noqa: ANN401 - those of the executor
) -> Executor:
    """Return an executor that has run some frames, or measured all segments with them."""
    from parapipe.runtime.executor import Executor
    from parapipe.strategies.strategy_executor import StrategyExecutor

    if name != registry.PLAN:
        if options.pop("in_step"):
            raise ExecutionError(
                f"in step, the plan decides who begins when, and not the strategy '{name}': leave "
                "one of them out"
            )
        options |= {"batch": folders.batch, "sized": folders.sized}
        decided = StrategyExecutor(folders.whole, decides, name, **options)
        decided.measure(frames)
        return decided
    executor = Executor(folders.whole, **options)
    for _ in executor.run(frames):
        pass
    return executor


def _told(
    run: Iterable[Mapping[str, Any]], total: int, progress: Tell | None
) -> Iterator[Mapping[str, Any]]:
    begin_s = last_s = monotonic()
    for done, results in enumerate(run, 1):
        yield results
        now_s = monotonic()
        if progress is not None and (done == 1 or now_s - last_s >= TELL_EVERY_S):
            last_s = now_s
            progress(Progress(done, total, 0.0, now_s - begin_s, phase="running"))


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
                f"'{processor.name}' runs at {found_hz / 1e9:.2f} GHz, and the plan assumes "
                f"{wanted_hz / 1e9:.2f} GHz: fix its frequency, or map for the one it has"
            )
