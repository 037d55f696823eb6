"""What goes to standard output: one JSON document, or text and tables in the terminal's width."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from parapipe.cli.table_layout import Column, TextTable
from parapipe.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 100
"""Columns of text and tables that do not go to a terminal."""

CONTINUED = 2  # columns by which further lines of a long line are indented

_NO_BREAK = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=%|(?:[mµn]?s|[kMG]?B|[mµ]?[JWV]|[kMG]?Hz|frames/(?:s|J)|fps|frames)\b)"
)

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

    console = Console(highlight=False, markup=False, emoji=False, width=output_width())
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
            print_text(_wrapped(each) if _terminal().is_terminal else each)
        else:
            print_table(each)


def text_table(
    columns: Columns,
    rows: Iterable[Any],
    *,
    style: Callable[[Row], str] | None = None,
) -> TextTable:
    """Return a table without frames.

    Parameters
    ----------
    columns
        What stands in a row, by title: a key or an attribute of the row, or a function of it. A
        title that begins with a space stands over numbers, and what is under one that ends in … is
        shortened in the middle.
    style
        How a row looks.
    """
    rows = list(rows)
    return TextTable(
        [Column(title.strip(" …"), _kind(title)) for title in columns],
        [[_cell(cell, row) for cell in columns.values()] for row in rows],
        [style(row) if style else None for row in rows],
    )


def _kind(title: str) -> Literal["number", "name", "text"]:
    if title.startswith(" "):
        return "number"
    return "name" if title.endswith("…") else "text"


def _cell(cell: Cell, row: Any) -> str:  # noqa: ANN401 - a mapping or a record
    if callable(cell):
        return cell(row)
    return f"{row[cell] if isinstance(row, Mapping) else getattr(row, cell)}"


def output_width() -> int:
    """Return the columns of the terminal, or `WIDTH` where there is none."""
    console = _terminal()
    return console.width if console.is_terminal else WIDTH


def paragraph(text: str, *, indent: int = 0) -> str:
    """Return a text in lines of `output_width`, all but the first indented.

    Words stay whole, and a number stays with its unit.
    """
    return textwrap.fill(
        _BEFORE_UNIT.sub(_NO_BREAK, text),
        output_width(),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_NO_BREAK, " ")


def _wrapped(text: str) -> str:
    """Return lines of text with those that are too long for the terminal continued in others."""
    lines = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip()) + CONTINUED
        lines.append(paragraph(line, indent=indent) if len(line) > output_width() else line)
    return "\n".join(lines)


def _terminal() -> Console:
    from rich.console import Console

    return Console()


def abandon_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush stays quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
