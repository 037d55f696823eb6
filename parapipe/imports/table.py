"""A plain CSV table with a line for each layer: name, processor, milliseconds."""

from __future__ import annotations

from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.imports.layers import Layer, ToolFile, ToolProfile, shape_in

NAME, TITLE = "table", "CSV table of name, processor, milliseconds"
COLUMNS = ("name", "processor", "milliseconds")
OPTIONAL = ("type", "shape")


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format.

    Raises
    ------
    CostError
        If lines are wrong; all of them are told.
    """
    header = {cell.strip() for cell in (file.lines or [""])[0].split(",")}
    if not header.issuperset(COLUMNS):
        return None
    kind = TableKind("profile", COLUMNS, OPTIONAL, _layer, needed="layers")
    return ToolProfile(NAME, TITLE, read_table(file.path, kind))


def _layer(cells: Cells) -> Layer:
    shape = shape_in(cells.text("shape", empty=True))
    return Layer(
        name=cells.text("name"),
        time_s=cells.number("milliseconds") / 1e3,
        type=cells.text("type", empty=True),
        place=cells.text("processor", empty=True),
        shapes=(shape,) if shape else (),
    )
