"""What goes to standard output: one JSON document, or text and tables in the terminal's width."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from parapipe.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


SHORT_NAME = 12  # characters to which names are shortened before anything else is squeezed
LONG_WORD = 24  # characters of a word that a column of text keeps whole
LEAST = 6  # characters of names and text in the narrowest table
GAPS = (2, 1)  # characters between columns, and in tight tables
ELLIPSIS = "…"
_BREAK = re.compile(r"(?<=[ +/_,:│-])(?=[^ ])")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title
        Lines of it; a line that ends in a hyphen continues in the next one.
    kind
        `number`: stands to the right, and is never broken or cropped. `fixed`: the same to the
        left. `name`: shortened in the middle. `text`: continued in further lines.
    least
        Characters of names or text that are kept before others are squeezed.
    """

    title: str
    kind: Literal["number", "fixed", "name", "text"] = "text"
    least: int = 0


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table without frames, which rich lays out in the width that there is.

    Where not even the narrowest columns fit, each row becomes a list of titles and values.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str | None]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield what rich prints."""
        from rich import box
        from rich.table import Table
        from rich.text import Text  # not read as rich's markup, as [1-11] might be

        layout = self._widths(options.max_width)
        if layout is None:
            yield from self._records(options.max_width)
            return
        widths, gap = layout
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, gap - 1, 0, 0)
        )
        shown = []
        for i, (column, width) in enumerate(zip(self.columns, widths, strict=True)):
            table.add_column(
                Text("\n".join(fold(column.title, width))),
                justify="right" if column.kind == "number" else "left",
                width=width,
                no_wrap=True,
            )
            shown.append(_fitted_cells(column, [row[i] for row in self.rows], width))
        for cells, style in zip(zip(*shown, strict=True), self.styles, strict=True):
            table.add_row(*map(Text, cells), style=style)
        yield table

    def _widths(self, width: int) -> tuple[Sequence[int], int] | None:
        """Return the columns' widths and the gap between them; None if they do not fit."""
        cells = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        most = [
            _widest(column.title, each) for column, each in zip(self.columns, cells, strict=True)
        ]
        preferred = [_usual(*each) for each in zip(self.columns, cells, most, strict=True)]
        least = [_narrowest(*each) for each in zip(self.columns, cells, most, strict=True)]
        for lowest in (preferred, least):
            for gap in GAPS:
                room = width - gap * (len(self.columns) - 1)
                if sum(lowest) <= room:
                    return _share_room(most, lowest, room), gap
        return None

    def _records(self, width: int) -> Iterator[RenderableType]:
        from rich.text import Text

        titles = [each.title.replace("-\n", "").replace("\n", " ") for each in self.columns]
        margin = max(map(_length, titles)) + GAPS[0]
        for number, (row, style) in enumerate(zip(self.rows, self.styles, strict=True)):
            if number:
                yield ""
            for title, cell in zip(titles, row, strict=True):
                first, *others = fold(cell, max(width - margin, LEAST))
                yield Text(f"{title:<{margin}}{first}", style=style or "")
                yield from (Text(f"{'':<{margin}}{line}", style=style or "") for line in others)


def fold(text: str, width: int) -> list[str]:
    """Return the lines of a text, none longer than `width`; no number of several digits is broken.

    A number that is longer than that is.
    """
    lines = []
    for full_line in text.split("\n"):
        line, indent = full_line, ""
        while _length(line) > width:
            at = _break_position(line, width)
            lines.append(line[:at].rstrip())
            indent = indent or re.match(" *", full_line)[0]  # type: ignore[index]  # always matches
            line = f"{indent if len(indent) < width // 2 else ''}{line[at:].lstrip()}"
        lines.append(line)
    return lines


def shorten_names(names: Sequence[str], width: int) -> list[str] | None:
    """Return names with their middles left out, all at the same place; None if two become equal.

    The place is as near to the middle as it can be without that.
    """
    different = set(names)
    room = width - 1
    for head in sorted(range(1, room), key=lambda head: abs(2 * head - room)):
        short = {name: _without_middle(name, head, room - head) for name in different}
        if len(set(short.values())) == len(different):
            return [short[name] for name in names]
    return None


def _without_middle(name: str, head: int, tail: int) -> str:
    if _length(name) <= head + tail + 1:
        return name
    first = next(i for i in range(len(name), -1, -1) if _length(name[:i]) <= head)
    last = next(i for i in range(len(name) + 1) if _length(name[i:]) <= tail)
    return f"{name[:first]}{ELLIPSIS}{name[last:]}"


def _length(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _longest_width(texts: Sequence[str]) -> int:
    return max(map(_length, texts), default=0)


def _widest(title: str, cells: Sequence[str]) -> int:
    return _longest_width([line for text in (title, *cells) for line in text.split("\n")])


def _usual(column: Column, cells: Sequence[str], most: int) -> int:
    """Return the width that a column keeps while others can be narrower."""
    if column.kind in ("number", "fixed"):
        return most
    if column.kind == "name":
        return min(most, max(SHORT_NAME, column.least, _longest_width(column.title.split())))
    words = _longest_width([word for text in (column.title, *cells) for word in text.split()])
    return min(most, max(min(words, LONG_WORD), column.least))


def _narrowest(column: Column, cells: Sequence[str], most: int) -> int:
    """Return the least width of a column; titles are broken at spaces only."""
    title = _longest_width(column.title.split())
    if column.kind in ("number", "fixed"):
        return max(title, _widest("", cells))
    return min(most, max(LEAST, title))


def _share_room(most: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths between the least and the most: the widest columns give way first."""
    level = max(most)
    while sum(_widths_at(level, most, least)) > room:
        level -= 1
    widths = _widths_at(level, most, least)
    left = room - sum(widths)
    for i in range(len(widths)):
        if left and widths[i] < most[i]:
            widths[i] += 1
            left -= 1
    return widths


def _widths_at(level: int, most: Sequence[int], least: Sequence[int]) -> list[int]:
    return [max(low, min(high, level)) for high, low in zip(most, least, strict=True)]


def _fitted_cells(column: Column, cells: Sequence[str], width: int) -> list[str]:
    if column.kind in ("number", "fixed"):
        return list(cells)
    short = shorten_names(cells, width) if column.kind == "name" else None
    return short or ["\n".join(fold(cell, width)) for cell in cells]


def _break_position(line: str, width: int) -> int:
    """Return where a line is broken: after a word, else after a sign, else anywhere."""
    most = next(i for i in range(len(line), -1, -1) if _length(line[:i]) <= width)
    start = len(line) - len(line.lstrip())
    if line[most] == " ":
        return most
    spaces = [i for i in range(start + 1, most + 1) if line[i - 1] == " "]
    if spaces:
        return spaces[-1]
    numbers = [*_NUMBER.finditer(line)]

    def number_at(place: int) -> re.Match[str] | None:
        return next((each for each in numbers if each.start() < place < each.end()), None)

    signs = [each.start() for each in _BREAK.finditer(line) if start < each.start() <= most]
    if signs := [place for place in signs if not number_at(place)]:
        return signs[-1]
    inside = number_at(most)
    return inside.start() if inside and inside.start() > start else max(most, 1)


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
        [Column(title.strip(" …"), _kind_of_column(title)) for title in columns],
        [[_cell_text(cell, row) for cell in columns.values()] for row in rows],
        [style(row) if style else None for row in rows],
    )


def _kind_of_column(title: str) -> Literal["number", "name", "text"]:
    if title.startswith(" "):
        return "number"
    return "name" if title.endswith("…") else "text"


def _cell_text(cell: Cell, row: Any) -> str:  # noqa: ANN401 - a mapping or a record
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
