"""Runs a plan, or several in one pool, on this machine, from folders of segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from parapipe.api.load import locate_model
from parapipe.documents.build_run import run_document
from parapipe.documents.run_schema import MachineRow
from parapipe.errors import ExecutionError
from parapipe.export.onnxruntime.boundary import conversion_notes
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Progress, Tell
from parapipe.front.run import Run
from parapipe.plan.program import Unit, program
from parapipe.plan.sharing import executed_plan
from parapipe.plan.summary import Batches
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import Folder, RunError, open_folder
from parapipe.runtime.frames import cycle_frames, frames_in, random_frames
from parapipe.runtime.machine import OtherLoad, busy_note
from parapipe.runtime.results import ResultFile
from parapipe.strategies import registry
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.failures import call_with_timeout
from parapipe.strategies.joined import joined_folder, record_of_plan
from parapipe.strategies.strategy import cut_of, may_split, name_of, sizes_of
from parapipe.strategies.strategy_executor import StrategyExecutor

if TYPE_CHECKING:
    from parapipe.documents.run_schema import RunDocument
    from parapipe.plan.schema import Plan
    from parapipe.runtime.frames import Frame
    from parapipe.runtime.record import Record
    from parapipe.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Folders:
    """What is run, for full batches and for micro-batches, by their size.

    Parameters
    ----------
    pieces
        As the strategy cuts the network.
    """

    full: Folder
    batch: int
    sized: Mapping[int, Folder]
    pieces: Mapping[str, str]


def write_run_folders(
    plan: Plan,
    model: Path,
    strategy: type[Strategy],
    place: Path,
    *,
    single: bool,
    cores: Mapping[str, Sequence[int]],
    split: bool = True,
) -> Folders:
    """Write the folders of a run into an empty one.

    Parameters
    ----------
    single
        Make a segment of every operator.
    cores
        Of some processors, in place of the plan's.
    split
        Whether the strategy may split batches, if it does.

    Raises
    ------
    PlanError
        If the plan's operators are not those of the model.
    ExportError
        If a segment cannot be written.
    RunError
        If there is no such processor.
    """
    pieces = pieces_of(plan, cut_of(strategy), name_of(strategy))
    batches = Batches(plan, model) if split and may_split(strategy) else None
    batch = batches.size if batches else 1
    sizes = sizes_of(strategy, batch)

    def written(plan: Plan, name: str) -> Folder:
        within = place / name
        within.mkdir()
        write_session_folder(plan, model, within, single=single, in_place=not sizes, pieces=pieces)
        return open_folder(within).on_cores(cores)

    sized = {size: written(batches.plan_of(size), str(size)) for size in sizes if batches}
    return Folders(written(plan, "whole"), batch if sizes else 1, sized, pieces)


FRAMES = 100
TELL_EVERY_S = 0.1
CLOCK_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How plans are run; as the parameters of `run_plan`."""

    name: str
    strategy: type[Strategy]
    frames: int | None
    input: Path | None
    warmup: int
    saturate: bool
    period_s: float | None
    queue: int | None
    patience_s: float | None
    keep: Path | None
    unit: Unit
    cores: Mapping[str, Sequence[int]]
    progress: Tell | None
    in_step: bool = False
    arena: bool = False
    random_arrivals: bool = False
    seed: int = 0


class FinishedRun(NamedTuple):
    """A run that is over: other programs' share of the machine, and seconds between frames."""

    executor: Executor
    other_programs: float | None
    pace_s: float | None


def run_all(
    plans: Sequence[Plan], settings: RunSettings, model: str | Path | None = None
) -> tuple[Run, ...]:
    """Run plans, all in one pool; return a run of each.

    Parameters
    ----------
    plans
        Those that `verify_plan` accepts.
    model
        The file of the only one's model, if it is not where the plan says.
    """
    clear_abandoned_scratch()
    with ExitStack() as stack:
        scratch = stack.enter_context(LockedFolder()).path
        files = [stack.enter_context(locate_model(plan, model)) for plan in plans]
        try:
            folders = call_with_timeout(
                lambda: _write_folders(plans, files, settings, scratch), settings.patience_s
            )
            together = folders[0]
            if len(plans) > 1:
                joined = joined_folder([one.full for one in folders]).on_cores(settings.cores)
                together = Folders(joined, 1, {}, {})
            together.full.check_cores()
            finished = _send_frames(together, plans, settings)
        except RunError as error:
            raise ExecutionError(str(error)) from error
        folder = together.full
        clocks = [note for plan in plans for note in _other_clocks(plan, folder)]
    notes = dict.fromkeys(
        (
            *(note for plan in plans for note in conversion_notes(plan)),
            *(sentence for used in finished.executor.used for sentence in used.sentences()),
            *([finished.executor.in_arenas.sentence()] if finished.executor.in_arenas else []),
            *folder.notes(),
            *filter(None, [busy_note(finished.other_programs)]),
            *clocks,
        )
    )
    records = [finished.executor.record]
    if len(plans) > 1:
        records = [record_of_plan(records[0], number) for number in range(len(plans))]
    documents = [
        _run_document(plan, one, record, finished, settings)
        for plan, one, record in zip(plans, folders, records, strict=True)
    ]
    return tuple(
        Run(document, record, (*notes, *(each.sentence() for each in document.strays or ())))
        for document, record in zip(documents, records, strict=True)
    )


def _write_folders(
    plans: Sequence[Plan], files: Sequence[Path], settings: RunSettings, scratch: Path
) -> list[Folders]:
    folders = []
    for number, (plan, file) in enumerate(zip(plans, files, strict=True)):
        place = scratch / f"plan{number}"
        place.mkdir()
        single, alone = settings.unit == "operator", len(plans) == 1
        cores = settings.cores if alone else {}
        written = write_run_folders(
            plan, file, settings.strategy, place, single=single, cores=cores, split=alone
        )
        folders.append(written)
    return folders


def _send_frames(folders: Folders, plans: Sequence[Plan], settings: RunSettings) -> FinishedRun:
    """Send frames through."""
    folder = folders.full
    stored = None if settings.input is None else frames_in(settings.input, folder)
    count = settings.frames or (FRAMES if stored is None else len(stored))

    def take(number: int) -> Iterable[Frame]:
        return random_frames(folder, number) if stored is None else cycle_frames(stored, number)

    executor = _warm_executor(folders, settings, take(settings.warmup), count)
    slowest_s = max(
        plan.predicted.sustained_period_s if settings.random_arrivals else plan.predicted.period_s
        for plan in plans
    )
    pace_s = None if settings.saturate else settings.period_s or slowest_s
    others = OtherLoad()
    with (
        ResultFile(settings.keep) as file,
        closing(executor.run(take(count), period_s=pace_s)) as run,
    ):
        for results in _report_progress(run, count, settings.progress):
            file.add(results)
    return FinishedRun(executor, others.share(), pace_s)


def _warm_executor(
    folders: Folders, settings: RunSettings, frames: Iterable[Frame], count: int
) -> Executor:
    """Return an executor that has run some frames, or measured all segments with them."""
    if settings.name != registry.PLAN:
        for requested, words in ((settings.in_step, "in step"), (settings.arena, "with arenas")):
            if requested:
                raise ExecutionError(
                    f"{words}, the plan decides who begins when, and not the strategy "
                    f"'{settings.name}': leave one of them out"
                )
        if folders.full.states:
            raise ExecutionError(
                f"the model has states, and the strategy '{settings.name}' does not hand them on: "
                "run the plan without a strategy"
            )
        by_strategy = StrategyExecutor(
            folders.full, settings.strategy, settings.name, batch=folders.batch,
            sized=folders.sized, queue=settings.queue, patience_s=settings.patience_s,
            remembered=count,
        )  # fmt: skip
        by_strategy.measure(frames)
        return by_strategy
    executor = Executor(
        folders.full, queue=settings.queue, patience_s=settings.patience_s, remembered=count,
        in_step=settings.in_step, arena=settings.arena,
    )  # fmt: skip
    for _ in executor.run(frames):
        pass
    return executor


def _run_document(
    plan: Plan,
    folders: Folders,
    record: Record,
    finished: FinishedRun,
    settings: RunSettings,
) -> RunDocument:
    segments = folders.full.segments
    ran = executed_plan(plan, {operator for segment in segments for operator in segment.operators})
    return run_document(
        plan,
        program(ran, unit=settings.unit, queue=settings.queue, moves=False, pieces=folders.pieces),
        record,
        how="run",
        strategy=settings.name,
        saturated=settings.saturate,
        pace_s=finished.pace_s,
        members={segment.id: segment.operators for segment in segments},
        machine=MachineRow(
            cores={each.name: each.cores for each in finished.executor.folder.processors},
            other_programs=finished.other_programs,
        ),
        used=finished.executor.used,
        in_arenas=finished.executor.in_arenas,
        arrivals_seed=settings.seed if settings.random_arrivals else None,
    )


def _report_progress(
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
    for processor in (each for each in folder.processors if each.name in planned):
        wanted_hz = planned[processor.name].operating_point.frequency_hz
        measured_hz = clock_hz(min(processor.cores)) if processor.cores else 0.0
        own = processor.cores == planned[processor.name].cores
        if own and measured_hz and abs(measured_hz / wanted_hz - 1) > CLOCK_TOLERANCE:
            yield (
                f"'{processor.name}' runs at {measured_hz / 1e9:.2f} GHz, and the plan assumes "
                f"{wanted_hz / 1e9:.2f} GHz: fix its frequency, or map for the one it has"
            )
