"""`parapipe compare`: predicted figures against those of runs on a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_note, print_table, print_text

if TYPE_CHECKING:
    from rich.table import Table


@click.command()
@click.argument("predicted", type=click.Path(path_type=Path))
@click.argument("measured", type=click.Path(path_type=Path))
@click.option(
    "--figure", type=click.Path(path_type=Path), help="Draw a picture into this PNG, PDF or SVG."
)
@json_option
def command(*, predicted: Path, measured: Path, figure: Path | None, as_json: bool) -> None:
    """Say how far the evaluations in PREDICTED are from the runs in MEASURED.

    PREDICTED is what evaluate --json prints, or a list of that; MEASURED a CSV file with the
    columns model and latency_s, and perhaps order, input_s, longest_stage_s and energy_j.
    """
    from parapipe import api

    comparison = api.compare_runs(predicted, measured)
    if figure is not None:
        api.draw_comparison(comparison, figure)
    document = comparison.to_json()
    if as_json:
        print_json(document)
        return
    print_table(_table(document["errors"]))
    if missing := document["missing"]:
        print_note(f"no prediction of {len(missing)} measured runs, the first {missing[0]}")
    if figure is not None:
        print_text(f"picture: {figure}")


def _table(errors: Sequence[Mapping[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("network")
    for title in ("runs", "RMSPE\n%", "mean\n%", "worst\n%", "rank\ncorrelation"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("worst run", overflow="fold")
    for row in errors:
        rank = row["rank_correlation"]
        table.add_row(
            row["metric"],
            row["model"] or "all",
            f"{row['runs']}",
            f"{100 * row['rmspe']:.2f}",
            f"{100 * row['mean']:+.2f}",
            f"{100 * row['worst']:+.1f}",
            "" if rank is None else f"{rank:.3f}",
            row["worst_run"],
            style=None if row["model"] else "bold",
        )
    return table
