"""Measures: this machine as a platform, and operators' times on it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Folder, Model, PlatformFile, checked
from parapipe.api.load import ZOO, load_model, load_platform
from parapipe.errors import ModelError
from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Tell
from parapipe.pipeline.options import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from parapipe.platform.platform import Platform
    from parapipe.profiling.detect import Detected
    from parapipe.profiling.profiling_run import ProfileReport
    from parapipe.profiling.tasks import Tasks

PROFILE_NAME = "onnxruntime.csv"
CoreLists = Annotated[
    Sequence[Sequence[FromZero]], Must("lists of core numbers, as in [[0, 1], [2, 3]]")
]


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
        Of the platform.
    split
        Divide the cores of each cluster among so many processors; whole clusters if not given.
    processors
        Cores of each processor, in place of the clusters.

    Raises
    ------
    RuntimeMissingError
        ONNX Runtime is not installed.
    ProfilingError
        This is no Linux, or its kernel does not tell enough.
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
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    progress: Tell | None = None,
) -> ProfileReport:
    """Measure each distinct operator of a model on each processor of this machine.

    Parameters
    ----------
    platform
        This machine's, see `detect_platform`.
    out
        The profile, a CSV file. What stands there is kept and not measured again. Default:
        `profiles/PLATFORM/onnxruntime.csv` beside the platform's file, where `map` finds it.
    again
        Measure what stands there again.
    dims, shapes, rules
        As in `MapOptions`.
    progress
        Called whenever operators have been measured.
    """
    from parapipe.profiling.profiling_run import profile_here
    from parapipe.runtime.denormals import denormals_to_zero

    target = load_platform(platform)
    path = _path(out, platform, target)
    with _tasks(model, target, dims, shapes, rules) as tasks, denormals_to_zero():
        report = profile_here(tasks, target, path, again=again, progress=progress)
    return replace(report, notes=(*report.notes, *_denormal_weights(tasks)))


@checked
def write_profile_bundle(
    model: Model,
    platform: PlatformFile,
    directory: Folder,
    *,
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
    dims, shapes, rules
        As in `MapOptions`.
    """
    from parapipe.profiling.profiling_run import write_bundle

    target = load_platform(platform)
    with _tasks(model, target, dims, shapes, rules) as tasks:
        write_bundle(tasks, target, Path(directory))
    return (*tasks.left_out, *_denormal_weights(tasks))


@checked
def import_profile(
    path: FilePath, platform: PlatformFile, *, out: FilePath | None = None
) -> ProfileReport:
    """Take in what a board has measured, after checking every row.

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


@contextmanager
def _tasks(
    model: Model, platform: Platform, dims: Dims | None, shapes: Shapes | None, rules: Rules | None
) -> Iterator[Tasks]:
    from parapipe.export.constants import Constants
    from parapipe.graph.onnx_import import resolve_proto
    from parapipe.graph.skim import skim
    from parapipe.profiling.tasks import tasks_of

    graph = load_model(model, dims=dims, shapes=shapes, rules=rules)
    with _model_file(os.fspath(model)) as path, Constants(graph, path) as constants:
        proto = skim(path)
        _, resolved = resolve_proto(proto, graph.source.name, dims=dims, shapes=shapes)

        def read(name: str) -> NDArray[np.generic] | None:
            try:
                return constants.read(name)
            except ModelError:
                return None

        yield tasks_of(graph, proto, resolved, platform, read)


@contextmanager
def _model_file(name: str) -> Iterator[Path]:
    """Yield the path of a model; one of the zoo is written into a folder that is soon gone."""
    if not name.startswith(ZOO):
        yield Path(name)
        return
    from parapipe.zoo.registry import write

    clear_abandoned_scratch()
    with LockedFolder() as scratch:
        path = scratch.path / "model.onnx"
        write(name.removeprefix(ZOO), path)
        yield path


def _denormal_weights(tasks: Tasks) -> Iterator[str]:
    """Yield a sentence if weights hold many denormal numbers."""
    from parapipe.runtime.denormals import sentence

    if told := sentence(tasks.denormals):
        yield told
