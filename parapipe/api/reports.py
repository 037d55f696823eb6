"""Reports of stored results: the page of a front, what changed between two, runs beside plans."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Folder, FrontLike, checked
from parapipe.files.checked_arguments import Must, NotEmpty
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from parapipe.documents.comparison import Comparison
    from parapipe.documents.difference import DifferenceDocument
    from parapipe.documents.front_folder import FrontFolder

_Files = Annotated[
    NotEmpty | Path | Sequence[NotEmpty | Path], Must("the path of a file, or some of them")
]


@checked
def report(directory: Folder, out: FilePath | None = None) -> Path:
    """Write the report of a front as one HTML file that needs no network; return its path.

    Parameters
    ----------
    directory
        Folder that a front was written to, or the front.json in it.
    out
        The HTML file to write; report.html in the folder if not given.

    Raises
    ------
    FrontError, PlanError
        What the folder holds cannot be read.
    OutputError
        The report cannot be written.
    """
    from parapipe.documents.front_folder import folder_of, load_folder
    from parapipe.figures.page import page
    from parapipe.files.atomic import write_atomically

    folder = folder_of(Path(directory))
    path = folder / "report.html" if out is None else Path(out)
    write_atomically(path, page(load_folder(folder)))
    return path


@checked
def diff(old: FrontLike, new: FrontLike) -> DifferenceDocument:
    """Return what changed from one front to another: inputs, costs, the best, the Pareto front.

    Of the result, `same` says whether nothing did, and `check(max_loss)` raises a WorseError if the
    best latency, throughput, energy or memory is worse by more than a share.

    Parameters
    ----------
    old, new
        Fronts, folders that `map` wrote, or the front.json in them.

    Raises
    ------
    FrontError
        A folder's files cannot be read, or do not belong together.
    PlanError
        A plan cannot be read.
    """
    from parapipe.documents.difference import difference

    return difference(_load_content(old), _load_content(new))


def _load_content(front: FrontLike) -> FrontFolder:
    from parapipe.documents.front_folder import folder_of, load_folder

    if isinstance(front, str | Path):
        return load_folder(folder_of(Path(front)))
    return front.content()


@checked
def compare(predicted: _Files, measured: _Files = ()) -> Comparison:
    """Compare predictions with runs: latency, period, energy, the work of processors and segments.

    Files are recognised by their content. What `parapipe run --json` printed contains predictions
    too and may be given alone; with other predictions, each run must belong to one of them.

    Parameters
    ----------
    predicted
        Files: what `parapipe evaluate --json` printed, or a list of that; a plan; runs.
    measured
        Files: what `parapipe run --json` printed, or `run.py --json` in an exported folder; or a
        CSV file of runs on a board with the columns model and latency_s, and optionally order,
        input_s, longest_stage_s and energy_j.

    Raises
    ------
    ComparisonError
        A file cannot be read, no run is given, or a run does not belong to any prediction.
    CostError
        The measured runs are wrong.
    """
    from parapipe.documents.compared_runs import compare_files

    return compare_files([*_paths(predicted), *_paths(measured)])


def _paths(files: _Files) -> list[Path]:
    if isinstance(files, str | os.PathLike):
        return [Path(files)]
    return [Path(file) for file in files]


@checked
def draw_comparison(comparison: Comparison, path: FilePath) -> None:
    """Draw predicted over measured figures, a panel for each metric, into a PNG, PDF or SVG file.

    Raises
    ------
    OutputError
        The file cannot be written, or its name ends in none of these.
    """
    from parapipe.figures.comparison import write_comparison

    write_comparison(comparison, Path(path))
