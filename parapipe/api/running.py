"""Runs a plan, or several in one pool, on this machine, from folders of segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from parapipe.api.load import located_model
from parapipe.documents.build_run import run_document
from parapipe.documents.run_schema import MachineRow
from parapipe.errors import ExecutionError
from parapipe.export.onnxruntime.boundary import unconverted
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Progress, Tell
from parapipe.front.run import Run
from parapipe.plan.program import Unit, program
from parapipe.plan.sharing import as_run
from parapipe.plan.summary import Batches
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import Folder, RunError, open_folder
from parapipe.runtime.frames import frames_in, random_frames, repeated
from parapipe.runtime.machine import OtherLoad, busy_note
from parapipe.runtime.results import Kept
from parapipe.strategies import registry
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.failures import patient
from parapipe.strategies.joined import joined_folder, record_of
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
    """What is run, for whole batches and for micro-batches, by their size.

    Parameters
    ----------
    pieces
        As the strategy cuts the network.
    """

    whole: Folder
    batch: int
    sized: Mapping[int, Folder]
    pieces: Mapping[str, str]


def run_folders(
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
class How:
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


class Through(NamedTuple):
    """A run that is over: other programs' share of the machine, and seconds between frames."""

    executor: Executor
    other_programs: float | None
    pace_s: float | None


def run_all(plans: Sequence[Plan], how: How, model: str | Path | None = None) -> tuple[Run, ...]:
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
        files = [stack.enter_context(located_model(plan, model)) for plan in plans]
        try:
            each = patient(lambda: _written(plans, files, how, scratch), how.patience_s)
            together = each[0]
            if len(plans) > 1:
                joined = joined_folder([one.whole for one in each]).on_cores(how.cores)
                together = Folders(joined, 1, {}, {})
            together.whole.check_cores()
            through = _through(together, plans, how)
        except RunError as error:
            raise ExecutionError(str(error)) from error
        folder = together.whole
        clocks = [note for plan in plans for note in _other_clocks(plan, folder)]
    notes = dict.fromkeys(
        (
            *(note for plan in plans for note in unconverted(plan)),
            *(sentence for used in through.executor.used for sentence in used.sentences()),
            *([through.executor.in_arenas.sentence()] if through.executor.in_arenas else []),
            *folder.notes(),
            *filter(None, [busy_note(through.other_programs)]),
            *clocks,
        )
    )
    records = [through.executor.record]
    if len(plans) > 1:
        records = [record_of(records[0], number) for number in range(len(plans))]
    told = tuple(notes)
    return tuple(
        Run(_document(plan, one, record, through, how), record, told)
        for plan, one, record in zip(plans, each, records, strict=True)
    )


def _written(
    plans: Sequence[Plan], files: Sequence[Path], how: How, scratch: Path
) -> list[Folders]:
    found = []
    for number, (plan, file) in enumerate(zip(plans, files, strict=True)):
        place = scratch / f"plan{number}"
        place.mkdir()
        single, alone = how.unit == "operator", len(plans) == 1
        cores = how.cores if alone else {}
        written = run_folders(
            plan, file, how.strategy, place, single=single, cores=cores, split=alone
        )
        found.append(written)
    return found


def _through(folders: Folders, plans: Sequence[Plan], how: How) -> Through:
    """Send frames through."""
    folder = folders.whole
    there = None if how.input is None else frames_in(how.input, folder)
    count = how.frames or (FRAMES if there is None else len(there))

    def some(number: int) -> Iterable[Frame]:
        return random_frames(folder, number) if there is None else repeated(there, number)

    executor = _warm(folders, how, some(how.warmup), count)
    slowest_s = max(
        plan.predicted.sustained_period_s if how.random_arrivals else plan.predicted.period_s
        for plan in plans
    )
    pace_s = None if how.saturate else how.period_s or slowest_s
    others = OtherLoad()
    with Kept(how.keep) as kept, closing(executor.run(some(count), period_s=pace_s)) as run:
        for results in _told(run, count, how.progress):
            kept.add(results)
    return Through(executor, others.share(), pace_s)


def _warm(folders: Folders, how: How, frames: Iterable[Frame], count: int) -> Executor:
    """Return an executor that has run some frames, or measured all segments with them."""
    if how.name != registry.PLAN:
        for asked, told in ((how.in_step, "in step"), (how.arena, "with arenas")):
            if asked:
                raise ExecutionError(
                    f"{told}, the plan decides who begins when, and not the strategy "
                    f"'{how.name}': leave one of them out"
                )
        decided = StrategyExecutor(
            folders.whole, how.strategy, how.name, batch=folders.batch, sized=folders.sized,
            queue=how.queue, patience_s=how.patience_s, remembered=count,
        )  # fmt: skip
        decided.measure(frames)
        return decided
    executor = Executor(
        folders.whole, queue=how.queue, patience_s=how.patience_s, remembered=count,
        in_step=how.in_step, arena=how.arena,
    )  # fmt: skip
    for _ in executor.run(frames):
        pass
    return executor


def _document(
    plan: Plan,
    folders: Folders,
    record: Record,
    through: Through,
    how: How,
) -> RunDocument:
    segments = folders.whole.segments
    ran = as_run(plan, {operator for segment in segments for operator in segment.operators})
    return run_document(
        plan,
        program(ran, unit=how.unit, queue=how.queue, moves=False, pieces=folders.pieces),
        record,
        how="run",
        strategy=how.name,
        saturated=how.saturate,
        pace_s=through.pace_s,
        members={segment.id: segment.operators for segment in segments},
        machine=MachineRow(
            cores={each.name: each.cores for each in through.executor.folder.processors},
            other_programs=through.other_programs,
        ),
        used=through.executor.used,
        in_arenas=through.executor.in_arenas,
        arrivals_seed=how.seed if how.random_arrivals else None,
    )


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
    for processor in (each for each in folder.processors if each.name in planned):
        wanted_hz = planned[processor.name].operating_point.frequency_hz
        found_hz = clock_hz(min(processor.cores)) if processor.cores else 0.0
        own = processor.cores == planned[processor.name].cores
        if own and found_hz and abs(found_hz / wanted_hz - 1) > CLOCK_TOLERANCE:
            yield (
                f"'{processor.name}' runs at {found_hz / 1e9:.2f} GHz, and the plan assumes "
                f"{wanted_hz / 1e9:.2f} GHz: fix its frequency, or map for the one it has"
            )
