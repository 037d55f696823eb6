"""`parapipe sweep`: many models on many platforms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from parapipe.cli.figure_cells import short_columns
from parapipe.cli.options import FILE, json_option, quiet_option
from parapipe.cli.output import Columns, Row, Shown, print_document, print_note, text_table
from parapipe.cli.progress import progress_shown
from parapipe.cli.verb_options import VerbCommand, options
from parapipe.errors import SweepError


@click.command(cls=VerbCommand)
@click.argument("file", type=FILE, required=False)
@click.option(
    "--models", multiple=True, metavar="MODEL", help="Path of an ONNX file or zoo:NAME; repeated."
)
@click.option(
    "--platforms",
    multiple=True,
    metavar="PLATFORM",
    help="Name of a shipped platform or path of a YAML; repeated.",
)
@click.option("--out", type=FILE, default=Path("parapipe-sweep"), show_default=True,
              help="Folder for the results.")  # fmt: skip
@options("sweep", "scheduler")
@options(
    "MapOptions",
    jobs={
        "help": "Models mapped at the same time, each in a process; one per core of this "
        "machine if not given."
    },
)
@click.option("--no-cache", is_flag=True, help="Use and keep no solved subgraphs of other runs.")
@quiet_option
@json_option
def command(
    *,
    file: Path | None,
    out: Path,
    cache: Path | None,
    no_cache: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Map several models on several platforms: those of FILE, or --models on --platforms.

    Writes each front to a folder of its own below results, and sweep.csv, sweep.parquet and
    index.html over all of them. What is there already is not done again. Exits with 1 if there is
    no front for some model on some platform.
    """
    import parapipe

    with progress_shown(quiet=quiet) as progress:
        stored = parapipe.sweep(
            file,
            out=out,
            progress=progress,
            note=print_note,
            cache=False if no_cache else cache or True,
            **given,
        )
    print_document(stored.to_json(), lambda document: _text(document, out), as_json=as_json)
    failed = [row for row in stored.document.results if row.error]
    if failed:
        count = f"{len(failed)} of {len(stored)}"
        errors = [f"{row.name}: {row.error}" for row in failed]
        raise SweepError(f"{count} have no front; the others are in {out}", errors)


def _text(document: Row, out: Path) -> Shown:
    from parapipe.api.checked import model_title

    columns: Columns = {
        "model": lambda row: model_title(row["model"]),
        "platform": "platform",
        "options": "options",
        **short_columns(lambda row: row, best=True),
        " rows": lambda row: f"{row['configurations']}",
    }
    yield text_table(columns, document["results"])
    yield ""
    yield f"table: {out / 'sweep.csv'}; page: {out / 'index.html'}"
    yield f"to compare platforms: parapipe pick {out} --min-fps 25 --max-power 4W"
