"""Predicted figures against those of runs, on a board or on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import checked
from parapipe.files.checked_arguments import Must, NotEmpty
from parapipe.search.options import FilePath

if TYPE_CHECKING:
    from parapipe.documents.comparison import Comparison

_Files = Annotated[
    NotEmpty | Path | Sequence[NotEmpty | Path], Must("the path of a file, or some of them")
]


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
        Files: what `parapipe run --json` printed; or a CSV file of runs on a board with the columns
        model and latency_s, and optionally order, input_s, longest_stage_s and energy_j.

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
