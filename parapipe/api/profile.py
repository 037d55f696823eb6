"""Measures: this machine as a platform, and operators' times on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, TypedDict

from parapipe.api.checked import Folder, Model, PlatformFile, checked
from parapipe.api.load import load_model, load_platform
from parapipe.api.profile_tasks import asked_parts, part_tasks, tasks_in
from parapipe.errors import ExecutionError, ParapipeError
from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty
from parapipe.files.progress import Progress, Tell
from parapipe.pipeline.options import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.api.plan import Plan
    from parapipe.cost.profile import Measurement
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.platform.platform import Platform
    from parapipe.profiling.detect import Detected
    from parapipe.profiling.from_run import SegmentTime
    from parapipe.profiling.profiling_run import ProfileReport
    from parapipe.profiling.tasks import Tasks

PROFILE_NAME = "onnxruntime.csv"
ROUNDS = 5
"""Runs of each pipeline, each with new sessions: of two sessions of one model, one may take 20 %
longer."""
ROUND_S = 0.4
FRAMES = (8, 200)
"""Least and most of a run."""
CoreLists = Annotated[
    Sequence[Sequence[FromZero]], Must("lists of core numbers, as in [[0, 1], [2, 3]]")
]


class _Given(TypedDict):
    dims: Dims | None
    shapes: Shapes | None
    rules: Rules | None


@checked
def detect_platform(
    *,
    name: NotEmpty = "this-machine",
    split: Count | None = None,
    processors: CoreLists = (),
) -> Detected:
    """Describe this machine as a platform file; it takes some seconds of measuring.

    Parameters
    ----------
    name
        Name of the platform.
    split
        Divide the cores of each cluster among this many processors. Default: whole clusters.
    processors
        Cores of each processor, instead of the clusters.

    Raises
    ------
    RuntimeMissingError
        ONNX Runtime is not installed.
    ProfilingError
        This is not Linux, or its kernel does not report enough.
    ArgumentError
        `processors` lists what is not there.
    """
    from parapipe.profiling.detect import detect

    return detect(name=name, split=split, processors=processors)


@checked
def profile(
    model: Model,
    platform: PlatformFile,
    *,
    out: FilePath | None = None,
    again: bool = False,
    operators_only: bool = False,
    parts: bool = False,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    progress: Tell | None = None,
) -> ProfileReport:
    """Measure each distinct operator of a model on each processor of this machine, then the model.

    In a session with others, an operator takes more or less than by itself. So the whole model is
    run by the processors that run all of it, in pipelines of one stage each, and operators share
    the time of their stage, as in `learn_from_runs`.

    Parameters
    ----------
    platform
        This machine's, see `detect_platform`.
    out
        The profile, a CSV file. Rows that it has are kept and not measured again. Default:
        `profiles/PLATFORM/onnxruntime.csv` beside the platform's file, where `map` finds it.
    again
        Measure the profile's rows again.
    operators_only
        Do not run the whole model.
    parts
        Measure parts of operators as well, for `map` with `split="auto"`: of each operator in
        shares by speed, then those of the least latency, as searches with these times find it.
    dims, shapes, rules
        As in `MapOptions`.
    progress
        Called whenever operators have been measured, and after each run of the whole model.
    """
    from parapipe.profiling.profiling_run import profile_here
    from parapipe.profiling.tasks import together
    from parapipe.runtime.denormals import denormals_to_zero

    target = load_platform(platform)
    graph = load_model(model, dims=dims, shapes=shapes, rules=rules)
    path = _path(out, platform, target)
    whole = None if operators_only else partial(_whole, graph, target, path, progress=progress)
    with tasks_in(model, graph, target, dims, shapes) as tasks, denormals_to_zero():
        measure = partial(profile_here, platform=target, path=path, again=again, progress=progress)
        report, asked = measure(tasks, whole=whole), tasks.keys()
        given: _Given = {"dims": dims, "shapes": shapes, "rules": rules}
        lost: list[str] = []
        for lists in asked_parts(graph, target, path) if parts else ():
            found = part_tasks(model, target, lists, note=lost.append, **given)
            more = together(tasks, found, asked)
            if not more.keys():
                break
            asked |= more.keys()
            report = measure(more).after(report)
    return replace(report, notes=(*report.notes, *lost, *_denormal_weights(tasks)))


@checked
def write_profile_bundle(
    model: Model,
    platform: PlatformFile,
    directory: Folder,
    *,
    parts: bool = False,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
) -> tuple[str, ...]:
    """Write a folder that measures a model's operators on a board; return what to know of it.

    Parameters
    ----------
    platform
        The board's; its processors need their cores.
    directory
        Holds `measure.py`, which needs onnxruntime and numpy only, the operators and a README.
    parts
        Parts of operators as well, as for `profile`; what has been imported so far tells which.
    dims, shapes, rules
        As in `MapOptions`.
    """
    from parapipe.profiling.profiling_run import write_bundle
    from parapipe.profiling.tasks import together

    target = load_platform(platform)
    graph = load_model(model, dims=dims, shapes=shapes, rules=rules)
    with tasks_in(model, graph, target, dims, shapes) as tasks:
        given: _Given = {"dims": dims, "shapes": shapes, "rules": rules}
        lost: list[str] = []
        wanted, profile = tasks, _path(None, platform, target)
        for lists in asked_parts(graph, target, profile, searches=1) if parts else ():
            found = part_tasks(model, target, lists, note=lost.append, **given)
            wanted = together(wanted, found)
        write_bundle(wanted, target, Path(directory))
    return (*wanted.left_out, *lost, *_denormal_weights(tasks))


@checked
def import_profile(
    path: FilePath, platform: PlatformFile, *, out: FilePath | None = None
) -> ProfileReport:
    """Import what a board has measured, after checking every row.

    Parameters
    ----------
    path
        The file `results.csv` of the board.
    out
        As for `profile`; rows that stand there are kept if the board has no newer ones.

    Raises
    ------
    CostError
        Rows are wrong or of another platform; all are told, each with its line.
    """
    from parapipe.profiling.profiling_run import import_rows

    target = load_platform(platform)
    return import_rows(Path(path), target, _path(out, platform, target))


@checked
def learn_from_runs(
    model: Model,
    platform: PlatformFile,
    from_run: Annotated[
        NotEmpty | Path | Sequence[NotEmpty | Path], Must("the path of a file, or some of them")
    ],
    *,
    out: FilePath | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
) -> ProfileReport:
    """Take what operators took in runs of plans into a profile, in place of what stands there.

    Only the time of a segment is known, what a processor runs at one go. Each of its operators gets
    the share that the plan predicted for it.

    Parameters
    ----------
    platform
        The one that the plans were made for; each processor must have run on its own cores.
    from_run
        What `parapipe run --json` printed, one or several files: the operators' times are taken out
        of these runs, and nothing is measured.
    out
        As for `profile`.
    dims, shapes, rules
        As in `MapOptions`.

    Raises
    ------
    ComparisonError
        A file is no run, or of another format.
    ProfilingError
        A run is of another model or platform, or a processor ran on other cores than its own.
    """
    from parapipe.formats.learned import segment_times
    from parapipe.profiling.from_run import measurements_of
    from parapipe.profiling.profiling_run import take_in

    target = load_platform(platform)
    graph = load_model(model, dims=dims, shapes=shapes, rules=rules)
    files = [from_run] if isinstance(from_run, str | os.PathLike) else from_run
    segments = segment_times([Path(file) for file in files], graph, target)
    return take_in(measurements_of(segments, graph, target), target, _path(out, platform, target))


def _path(out: FilePath | None, platform: PlatformFile, target: Platform) -> Path:
    beside = Path(platform).parent / "profiles" / target.profile_name / PROFILE_NAME
    return beside if out is None else Path(out)


def _whole(
    graph: OperatorGraph,
    platform: Platform,
    path: Path,
    names: Collection[str],
    note: Callable[[str], None],
    *,
    progress: Tell | None,
) -> Sequence[Measurement]:
    """Run the whole model on the processors that can, and return its operators' times.

    Parameters
    ----------
    path
        The profile with what the operators take by themselves.
    names
        Of the processors.
    note
        Takes why a processor does not run it.
    """
    from parapipe.formats.learned import segments_of, strange
    from parapipe.profiling.from_run import measurements_of

    begin_s = monotonic()
    segments: list[SegmentTime] = []
    try:
        plans = tuple(_pipelines(graph, platform, path, names, note))
        for turn in range(ROUNDS):
            for at, plan in enumerate(plans, 1):
                frames = min(max(ceil(ROUND_S / plan.predicted.period_s), FRAMES[0]), FRAMES[1])
                document = plan.run(frames=frames, saturate=True).document
                if why := strange(document, graph, platform):
                    raise ExecutionError(f"it {why}")
                segments += segments_of(document)
                if progress:
                    done, elapsed_s = turn * len(plans) + at, monotonic() - begin_s
                    progress(Progress(done, ROUNDS * len(plans), 0.0, elapsed_s, phase="whole"))
    except ParapipeError as error:
        note(f"the whole model was not measured: {error}")
        return ()
    ran = {segment.processor for segment in segments}
    return [m for m in measurements_of(segments, graph, platform) if m.processor in ran]


def _pipelines(
    graph: OperatorGraph,
    platform: Platform,
    path: Path,
    names: Collection[str],
    note: Callable[[str], None],
) -> Iterator[Plan]:
    """Yield pipelines of the processors that run all of a model, each with one stage.

    There are as many as processors, so that each processor has each of the stages once. The stages
    are of about the same work, on the first of them.
    """
    from parapipe.api.plan import Plan
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.cost.profile import read_profile
    from parapipe.pipeline.assigned import mapping_of
    from parapipe.pipeline.assignment import Assignment
    from parapipe.plan.build import build_plan

    profiles = (read_profile(path),)
    costs = build_cost_table(graph, platform, profiles=profiles, precision="model")
    order = range(len(graph.operators))
    able = []
    for p, name in enumerate(platform.names):
        if name in names and all(costs.unsupported(v, p) is None for v in order):
            able.append(p)
        elif name in names:
            note(f"'{name}' does not run the whole model: operators have their own times there")
    stages = _equal_parts([costs.time_s(v, able[0]) for v in order], len(able)) if able else ()
    for first in range(len(able)):
        placed = {v: able[first - i] for i, stage in enumerate(stages) for v in stage}
        pipeline = Assignment(tuple(placed[v] for v in order), tuple(stages), ordered=True)
        mapping = mapping_of(graph, platform, costs, pipeline)
        yield Plan.of(build_plan(graph, platform, costs, mapping))


def _equal_parts(times_s: Sequence[float], count: int) -> Sequence[tuple[int, ...]]:
    """Cut a row of operators into so many parts, or fewer, of about the same time."""
    total_s, begin_s = sum(times_s), 0.0
    parts: dict[int, list[int]] = {}
    for v, time_s in enumerate(times_s):
        middle = (begin_s + time_s / 2) / total_s
        parts.setdefault(min(int(middle * count), count - 1), []).append(v)
        begin_s += time_s
    return [tuple(part) for part in parts.values()]


def _denormal_weights(tasks: Tasks) -> Iterator[str]:
    """Yield a sentence if weights hold many denormal numbers."""
    from parapipe.runtime.denormals import sentence

    if told := sentence(tasks.denormals):
        yield told
