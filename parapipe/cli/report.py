"""`parapipe report`: a front as one page to look at."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE
from parapipe.cli.output import print_note, print_text
from parapipe.cli.verb_options import VerbCommand, options


@click.command(cls=VerbCommand)
@click.argument("directory", type=FILE)
@options("report", "out")
@click.option("--open", "show", is_flag=True, help="Show it in the browser.")
def command(*, directory: Path, show: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Write the front in DIRECTORY as one HTML page.

    DIRECTORY is a folder that map wrote. The page contains all its data: it works offline and as an
    attachment. Of a folder of several shapes it shows placements of all, and leads to the page of
    each shape.
    """
    import parapipe
    from parapipe.api.shapes import shapes_folder

    write = parapipe.report_shapes if shapes_folder(directory) else parapipe.report
    path = write(directory, **given)
    print_text(f"report: {path} ({path.stat().st_size / 1e6:.1f} MB)")
    if show and not webbrowser.open(path.resolve().as_uri()):
        print_note("no browser was found; open the file by hand")
