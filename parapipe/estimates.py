"""What a given mapping takes, and how far such estimates are from runs on a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.arguments import check_arguments
from parapipe.errors import ArgumentError
from parapipe.loading import Dims, load_model, load_platform

if TYPE_CHECKING:
    from parapipe.cost.cost_table import View
    from parapipe.formats.comparison import Comparison
    from parapipe.formats.evaluation import EvaluationDocument
    from parapipe.graph.given_shapes import Shapes
    from parapipe.graph.operator_graph import Granularity


def evaluate_mapping(
    model: str | Path,
    platform: str | Path,
    *,
    assignment: str | Path | None = None,
    order: str | None = None,
    granularity: Granularity = "fused",
    view: View | None = None,
    profiles: Sequence[str | Path] = (),
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: str | Path | None = None,
    note: Callable[[str], None] | None = None,
) -> EvaluationDocument:
    """Price a given mapping without a search.

    Parameters
    ----------
    assignment
        File that gives each operator or subgraph a processor, and may name stages.
    order
        In its place, a letter for each block of a network that was measured on the platform, the
        first of the processor's name, as in `GGGGBBBBBBG`. Either this or an assignment.
    granularity
        Of an assignment's operators; an order is always priced operator by operator.
    view
        `deployed` or `as-measured`; as measured if the model was measured on the platform, and if
        not given.
    profiles
        As for `map_model`; given ones also take the place of the networks measured as a whole.
    note
        As for `load_model`.

    Raises
    ------
    AssignmentError
        The assignment or the order does not fit the model or the platform.
    ParapipeError
        As for `map_model`.
    """
    check_arguments("evaluate_mapping", locals())
    if (assignment is None) == (order is None):
        raise ArgumentError("evaluate_mapping: give either an assignment or an order")
    from parapipe.cost.profile import read_profile
    from parapipe.formats.evaluation import evaluation

    chosen: Granularity = granularity if order is None else "onnx"
    return evaluation(
        load_model(model, granularity=chosen, dims=dims, shapes=shapes, rules=rules, note=note),
        load_platform(platform),
        assignment=None if assignment is None else Path(assignment),
        order=order,
        view=view,
        profiles=[read_profile(Path(path)) for path in profiles] or None,
    )


def compare_runs(predicted: str | Path, measured: str | Path) -> Comparison:
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
    check_arguments("compare_runs", locals())
    from parapipe.cost.measured_runs import read_measured_runs
    from parapipe.formats.comparison import compare, read_predictions

    return compare(read_predictions(Path(predicted)), read_measured_runs(Path(measured)))


def draw_comparison(comparison: Comparison, path: str | Path) -> None:
    """Draw predicted over measured figures, a panel for each metric, into a PNG, PDF or SVG file.

    Raises
    ------
    OutputError
        The file cannot be written, or its name ends in none of these.
    """
    check_arguments("draw_comparison", locals())
    from parapipe.figures.comparison import write_comparison

    write_comparison(comparison, Path(path))
