"""What goes to standard output: one JSON document, or text and tables of at most 100 columns."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from parapipe.errors import OutputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

WIDTH = 100
Row = Mapping[str, Any]
Cell = str | Callable[[Any], str]
Columns = Mapping[str, Cell]
Shown: TypeAlias = "Iterator[RenderableType]"


def print_json(document: object) -> None:
    """Print one JSON document and nothing else."""
    print_text(json.dumps(document, indent=2, allow_nan=False))


def print_text(text: str) -> None:
    """Print lines of text; OutputError if standard output takes no more, as on a full disk."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_stdout()
        raise OutputError(
            f"standard output: cannot be written ({error.strerror}); "
            "redirect it to a place that has room"
        ) from error


def print_note(note: str) -> None:
    """Print a line on standard error: nothing is wrong with the result."""
    click.echo(f"parapipe: note: {note}", err=True)


def print_table(table: RenderableType) -> None:
    """Print a rich table: in colour on a terminal, as plain text elsewhere."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, width=table_width())
    with console.capture() as captured:
        console.print(table)
    print_text("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_document(
    document: Any,  # noqa: ANN401 - any JSON document
    text: Callable[[Any], Iterable[RenderableType]],
    *,
    as_json: bool,
) -> None:
    """Print a document as JSON, or as the lines and tables that `text` makes of it."""
    if as_json:
        print_json(document)
        return
    for each in text(document):
        if isinstance(each, str):
            print_text(each)
        else:
            print_table(each)


def text_table(
    columns: Columns,
    rows: Iterable[Any],
    *,
    style: Callable[[Row], str] | None = None,
) -> Table:
    """Return a table without frames.

    Parameters
    ----------
    columns
        What stands in a row, by title: a key or an attribute of the row, or a function of it. A
        title that begins with a space stands over numbers, and what is under one that ends in … is
        cut short.
    style
        How a row looks.
    """
    table = plain_table()
    for title in columns:
        table.add_column(
            title.strip(" …"),
            justify="right" if title.startswith(" ") else "left",
            overflow="ellipsis" if title.endswith("…") else "fold",
            no_wrap=title.endswith("…") or "\n" in title,
        )
    for row in rows:
        cells = [_cell(cell, row) for cell in columns.values()]
        table.add_row(*cells, style=style(row) if style else None)
    return table


def plain_table() -> Table:
    """Return an empty table without frames."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))


def _cell(cell: Cell, row: Any) -> str:  # noqa: ANN401 - a mapping or a record
    if callable(cell):
        return cell(row)
    return f"{row[cell] if isinstance(row, Mapping) else getattr(row, cell)}"


def table_width() -> int:
    """Columns of a table: those of the terminal, at most 100."""
    from rich.console import Console

    console = Console()
    return min(console.width, WIDTH) if console.is_terminal else WIDTH


def abandon_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush stays quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
