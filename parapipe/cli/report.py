"""`parapipe report`: a front as one page to look at."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from parapipe.cli.output import print_note, print_text


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The HTML file to write.  [default: report.html in DIRECTORY]",
)
@click.option("--open", "show", is_flag=True, help="Show it in the browser.")
def command(*, directory: Path, out: Path | None, show: bool) -> None:
    """Write the front in DIRECTORY as one page to look at.

    DIRECTORY is what map wrote. The page holds everything: it works without a network, and as an
    attachment.
    """
    from parapipe import api

    path = api.write_report(directory, out)
    print_text(f"report: {path} ({path.stat().st_size / 1e6:.1f} MB)")
    if show and not webbrowser.open(path.resolve().as_uri()):
        print_note("no browser was found; open the file by hand")
