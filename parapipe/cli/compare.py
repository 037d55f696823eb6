"""`parapipe compare`: predicted figures against those of runs, on a board or on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import (
    Columns,
    Row,
    Shown,
    print_document,
    print_note,
    print_text,
    text_table,
)
from parapipe.cli.plan_arguments import files_argument

SHOWN = ("latency", "period", "work of a processor")
"""Metrics of runs on this machine of which every figure is listed; segments may be many."""


@click.command()
@files_argument
@click.option("--figure", type=FILE, help="Draw a picture into this PNG, PDF or SVG.")
@json_option
def command(*, files: Sequence[Path], figure: Path | None, as_json: bool) -> None:
    """Compare predictions with measured runs.

    MEASURED is what run --json prints: it contains its own predictions, so PREDICTED may be left
    out. Or it is a CSV file with the columns model and latency_s, and optionally order, input_s,
    longest_stage_s and energy_j. PREDICTED is a plan, DIR ID as run takes it, what evaluate
    --json prints, or a list of that.
    """
    import parapipe

    comparison = parapipe.compare(files)
    if figure is not None:
        parapipe.draw_comparison(comparison, figure)
    document = comparison.to_json()
    print_document(document, _text, as_json=as_json)
    for note in document["notes"]:
        print_note(note)
    if as_json:
        return
    if missing := document["missing"]:
        print_note(f"no prediction of {len(missing)} measured runs, the first {missing[0]}")
    if figure is not None:
        print_text(f"picture: {figure}")


def _text(document: Row) -> Shown:
    from parapipe.api.checked import model_title

    pairs = [pair for pair in document["pairs"] if pair["metric"] in SHOWN]
    if len(pairs) < len(document["pairs"]):
        shown: Columns = {
            "metric": lambda pair: pair["metric"].replace("a processor", pair["part"]),
            " predicted\nms": lambda pair: f"{pair['predicted'] * 1e3:.2f}",
            " measured\nms": lambda pair: f"{pair['measured'] * 1e3:.2f}",
            " error\n%": lambda pair: f"{100 * pair['error']:+.1f}",
            "run…": lambda pair: f"{model_title(pair['model'])} {pair['order']}",
        }
        yield text_table(shown, pairs)
        yield ""
    columns: Columns = {
        "": "metric",
        "network": lambda row: model_title(row["model"]) if row["model"] else "all",
        " runs": "runs",
        " RMSPE\n%": lambda row: f"{100 * row['rmspe']:.2f}",
        " mean\n%": lambda row: f"{100 * row['mean']:+.2f}",
        " worst\n%": lambda row: f"{100 * row['worst']:+.1f}",
        " rank\ncorrelation": lambda row: (
            "" if row["rank_correlation"] is None else f"{row['rank_correlation']:.3f}"
        ),
        "worst run": "worst_run",
    }
    networks = {row["model"] for row in document["errors"]} - {None}
    rows = [row for row in document["errors"] if len(networks) > 1 or not row["model"]]
    yield text_table(columns, rows, style=lambda row: "" if row["model"] else "bold")
