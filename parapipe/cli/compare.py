"""`parapipe compare`: predicted figures against those of runs on a board."""

from __future__ import annotations

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


@click.command()
@click.argument("predicted", type=FILE)
@click.argument("measured", type=FILE)
@click.option("--figure", type=FILE, help="Draw a picture into this PNG, PDF or SVG.")
@json_option
def command(*, predicted: Path, measured: Path, figure: Path | None, as_json: bool) -> None:
    """Say how far the evaluations in PREDICTED are from the runs in MEASURED.

    PREDICTED is what evaluate --json prints, or a list of that; MEASURED a CSV file with the
    columns model and latency_s, and perhaps order, input_s, longest_stage_s and energy_j.
    """
    import parapipe

    comparison = parapipe.compare(predicted, measured)
    if figure is not None:
        parapipe.draw_comparison(comparison, figure)
    document = comparison.to_json()
    print_document(document, _text, as_json=as_json)
    if as_json:
        return
    if missing := document["missing"]:
        print_note(f"no prediction of {len(missing)} measured runs, the first {missing[0]}")
    if figure is not None:
        print_text(f"picture: {figure}")


def _text(document: Row) -> Shown:
    columns: Columns = {
        "": "metric",
        "network": lambda row: row["model"] or "all",
        " runs": "runs",
        " RMSPE\n%": lambda row: f"{100 * row['rmspe']:.2f}",
        " mean\n%": lambda row: f"{100 * row['mean']:+.2f}",
        " worst\n%": lambda row: f"{100 * row['worst']:+.1f}",
        " rank\ncorrelation": lambda row: (
            "" if row["rank_correlation"] is None else f"{row['rank_correlation']:.3f}"
        ),
        "worst run": "worst_run",
    }
    yield text_table(columns, document["errors"], style=lambda row: "" if row["model"] else "bold")
