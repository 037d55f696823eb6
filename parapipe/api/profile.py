"""Measures: this machine as a platform, and operators' times on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Folder, Model, Note, PlatformFile, checked
from parapipe.api.load import load_graph, load_model, load_platform
from parapipe.api.profile_tasks import most_useful as useful_first
from parapipe.api.profile_tasks import part_rule_lists, part_tasks, tasks_here, tasks_in
from parapipe.errors import ArgumentError
from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty, Seconds
from parapipe.files.progress import Tell
from parapipe.search.option_types import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.cost.co_run_fit import SlowdownFit
    from parapipe.cost.profile import Measurement
    from parapipe.graph.user_shapes import SizeKeywords
    from parapipe.platform.platform import Platform
    from parapipe.profiling.detect import DetectedPlatform
    from parapipe.profiling.profile_report import ProfileReport
    from parapipe.profiling.stream_law import StreamLaw
    from parapipe.profiling.tasks import Tasks

PROFILE_NAME = "onnxruntime.csv"
SPLIT_RUNS = 2
"""Searches whose split plans are run, each with the times of the runs before."""
CoreLists = Annotated[
    Sequence[Sequence[FromZero]], Must("lists of core numbers, as in [[0, 1], [2, 3]]")
]


@checked
def detect_platform(
    *,
    name: NotEmpty = "this-machine",
    split: Count | None = None,
    processors: CoreLists = (),
    watch_s: Seconds = 10.0,
) -> DetectedPlatform:
    """Describe this machine as a platform file; it takes about a minute of measuring.

    Parameters
    ----------
    name
        Name of the platform.
    split
        Divide the cores of each cluster among this many processors. Default: whole clusters.
    processors
        Cores of each processor, instead of the clusters.
    watch_s
        Watch for this time how far the speed of the processors changes.

    Raises
    ------
    RuntimeMissingError
        ONNX Runtime is not installed.
    ProfilingError
        This is not Linux, or its kernel does not report enough.
    ArgumentError
        `processors` lists what is not there.
    """
    from parapipe.api.profile_runs import measured_hand_overs
    from parapipe.profiling.detect import detect

    return detect(
        name=name,
        hand_overs=measured_hand_overs,
        split=split,
        processors=processors,
        watch_s=watch_s,
    )


@checked
def profile(
    model: Model,
    platform: PlatformFile,
    *,
    out: FilePath | None = None,
    again: bool = False,
    operators_only: bool = False,
    parts: bool = False,
    most_useful: Count | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    progress: Tell | None = None,
) -> ProfileReport:
    """Measure each distinct operator of a model on each processor of this machine, then the model.

    In a session with others, an operator takes more or less than by itself. So the whole model is
    run by the processors that run all of it: in pipelines of one stage each, alone, and by all at
    once. Operators share the times of the last, as in `learn_from_runs`.

    Parameters
    ----------
    platform
        This machine's, see `detect_platform`.
    out
        The profile, a CSV file, which is replaced once all is measured; an interrupted measurement
        goes on the next time. Rows that it has are kept and not measured again. Default:
        `profiles/PLATFORM/onnxruntime.csv` beside the platform's file, where `map` finds it.
    again
        Measure the profile's rows again.
    operators_only
        Do not run the whole model, or split plans.
    parts
        Measure parts of operators as well, for `map` with `split="auto"`: of each operator in
        shares by speed, then those of the least latency, as searches with these times find it. If
        any are new, run what `map` splits, too: parts share the time of their segments.
    most_useful
        Measure only so many operators, each on one processor: those that lower the doubt in the
        latency and the period of configurations most, by the times so far.
    dims, shapes, rules, at_most
        As in `MapOptions`.
    progress
        Called whenever operators have been measured, and after each run of the whole model.

    Raises
    ------
    ArgumentError
        `most_useful` is given with `parts`.
    """
    if most_useful is not None and parts:
        raise ArgumentError("profile: give either most_useful or parts")
    from parapipe.api.profile_runs import measure_split_plans, measure_whole_model
    from parapipe.profiling.profile_rows import unfinished_profile
    from parapipe.profiling.profiling_run import profile_here, take_in
    from parapipe.profiling.tasks import merge_tasks
    from parapipe.runtime.machine import denormals_to_zero

    target = load_platform(platform)
    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    graph = load_model(model, rules=rules, **sizes)
    path = profile_path(out, platform, target)
    useful = None if most_useful is None else useful_first(graph, target, path, most_useful)
    with (
        tasks_in(model, graph, target, **sizes) as every,
        denormals_to_zero(),
        unfinished_profile(path, target, again=again) as at,
    ):
        measure_whole = (
            None
            if operators_only or most_useful is not None
            else partial(measure_whole_model, graph, target, at.path, progress=progress)
        )
        tasks = every if useful is None else every.only(useful)
        measure = partial(profile_here, platform=target, at=at, progress=progress)
        report, keys = measure(tasks, whole=measure_whole), tasks.keys()
        lost: list[str] = []
        for lists in part_rule_lists(graph, target, at.path) if parts else ():
            new_tasks = part_tasks(model, target, lists, note=lost.append, rules=rules, **sizes)
            more = merge_tasks(tasks, new_tasks, keys)
            if not more.keys():
                break
            keys |= more.keys()
            report = measure(more).after(report)
        for _ in range(0 if operators_only or not parts or not report.measured else SPLIT_RUNS):
            times = measure_split_plans(
                model, platform, at.path, lost.append, progress=progress, rules=rules, **sizes
            )
            report = report.with_runs(take_in(times, target, at.path))
    return replace(report, path=path, notes=(*report.notes, *lost, *_denormal_weights(tasks)))


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
    at_most: Count | None = None,
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
    dims, shapes, rules, at_most
        As in `MapOptions`.
    """
    from parapipe.profiling.profiling_run import write_bundle
    from parapipe.profiling.tasks import merge_tasks

    target = load_platform(platform)
    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    graph = load_model(model, rules=rules, **sizes)
    with tasks_in(model, graph, target, **sizes) as tasks:
        lost: list[str] = []
        wanted, profile = tasks, profile_path(None, platform, target)
        for lists in part_rule_lists(graph, target, profile, searches=1) if parts else ():
            new_tasks = part_tasks(model, target, lists, note=lost.append, rules=rules, **sizes)
            wanted = merge_tasks(wanted, new_tasks)
        write_bundle(wanted, target, Path(directory))
    return (*wanted.left_out, *lost, *_denormal_weights(tasks))


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
    at_most: Count | None = None,
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
    dims, shapes, rules, at_most
        As in `MapOptions`.

    Raises
    ------
    ComparisonError
        A file is no run, or of another format.
    ProfilingError
        A run is of another model or platform, or a processor ran on other cores than its own.
    """
    from parapipe.documents.compared_runs import load_runs, segment_times
    from parapipe.profiling.from_run import measurements_of
    from parapipe.profiling.profiling_run import take_in

    target = load_platform(platform)
    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    graph = load_model(model, rules=rules, **sizes)
    files = [from_run] if isinstance(from_run, str | os.PathLike) else from_run
    runs = load_runs([Path(file) for file in files], graph, target)
    measurements: list[Measurement] = []
    for split in dict.fromkeys(run.split for run in runs):
        own = graph
        if split:
            own = load_graph(
                model, "fused", rules=rules, dims=dims, shapes=shapes, at_most=at_most,
                digests=False, note=lambda _: None, split=split,
            )  # fmt: skip
        segments = [
            each for run in runs if run.split == split for each in segment_times(run, own, target)
        ]
        measurements += measurements_of(segments, own, target)
    return take_in(measurements, target, profile_path(out, platform, target))


@checked
def measure_streams(
    model: Model,
    platform: PlatformFile,
    streams: Annotated[int, Must("a whole number of at least 2", ge=2)],
    *,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    note: Note | None = None,
    progress: Tell | None = None,
) -> tuple[StreamLaw, ...]:
    """Measure how much a model's operators slow each other down on streams of one processor.

    Parameters
    ----------
    platform
        This machine's; of identical processors, one is measured.
    streams
        Measure how much longer operators take when up to so many run at once on a processor, and
        print the platform file's section for it; no profile is written.
    dims, shapes, rules, at_most
        As in `MapOptions`.
    note
        Called with a sentence for each operator that is left out.
    progress
        Called whenever an operator has been measured.

    Raises
    ------
    RuntimeMissingError
        ONNX Runtime is not installed.
    ProfilingError
        Nothing runs on a processor.
    PlatformError
        The platform is not this machine.
    """
    from parapipe.profiling.stream_law import stream_laws

    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    with tasks_here(model, load_platform(platform), rules, **sizes) as tasks:
        laws, notes = stream_laws(tasks, streams, progress)
    _pass_on(notes, note)
    return laws


@checked
def measure_under_load(
    model: Model,
    platform: PlatformFile,
    *,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    note: Note | None = None,
    progress: Tell | None = None,
) -> tuple[SlowdownFit, ...]:
    """Measure how much processors slow each other down when all run a model.

    Each operator is run alone and while other processors run the model's operators in turn.

    Parameters
    ----------
    platform
        This machine's.
    dims, shapes, rules, at_most
        As in `MapOptions`.
    note
        Called with a sentence for each operator that is left out.
    progress
        Called whenever an operator has been measured.

    Raises
    ------
    RuntimeMissingError
        ONNX Runtime is not installed.
    ProfilingError
        Fewer than two processors run operators of the model.
    PlatformError
        The platform is not this machine.
    """
    from parapipe.cost.co_run_fit import fit_slowdowns
    from parapipe.profiling.co_runs import measure_operators

    target = load_platform(platform)
    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    with tasks_here(model, target, rules, **sizes) as tasks:
        samples, notes = measure_operators(tasks, progress)
    _pass_on(notes, note)
    return fit_slowdowns(samples, target)


def _pass_on(notes: Iterable[str], note: Note | None) -> None:
    if note is not None:
        for sentence in notes:
            note(sentence)


def profile_path(out: FilePath | None, platform: PlatformFile, target: Platform) -> Path:
    """Return the file of a profile that ONNX Runtime measures."""
    beside = Path(platform).parent / "profiles" / target.profile_name / PROFILE_NAME
    return beside if out is None else Path(out)


def _denormal_weights(tasks: Tasks) -> Iterator[str]:
    """Yield a sentence if weights hold many denormal numbers."""
    from parapipe.runtime.machine import denormals_note

    if note := denormals_note(tasks.denormals):
        yield note
