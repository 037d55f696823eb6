"""Predicted figures against those of runs on a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import checked
from parapipe.files.checked_arguments import Must, NotEmpty
from parapipe.pipeline.options import FilePath

if TYPE_CHECKING:
    from parapipe.formats.comparison import Comparison


@checked
def compare(
    predicted: Annotated[NotEmpty | Path, Must("the path of a JSON file")],
    measured: Annotated[NotEmpty | Path, Must("the path of a CSV file")],
) -> Comparison:
    """Compare evaluations with whole runs on a board.

    Parameters
    ----------
    predicted
        JSON file: what `parapipe evaluate --json` printed, or a list of that.
    measured
        CSV file with the columns model, latency_s, and perhaps order, input_s, longest_stage_s
        and energy_j.

    Raises
    ------
    ComparisonError
        The predictions cannot be read, or none is of a measured run.
    CostError
        The measured runs are wrong.
    """
    from parapipe.cost.measured_runs import read_measured_runs
    from parapipe.formats import comparison

    predictions = comparison.read_predictions(Path(predicted))
    return comparison.compare(predictions, read_measured_runs(Path(measured)))


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
