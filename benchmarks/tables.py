"""Tables of results: CSV for machines, Markdown for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def write_csv(records: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write records with equal keys, one a line; folders are made."""
    import pandas as pd

    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame.from_records(list(records)).to_csv(path, index=False, float_format="%.9g")


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of Markdown; cells that look like numbers are set to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    marks = ["---:" if _numbers(column) else "---" for column in zip(*cells, strict=True)]
    lines = [list(head), marks or ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _numbers(cells: Sequence[str]) -> bool:
    return all(cell.replace(".", "", 1).replace("-", "", 1).isdigit() for cell in cells)
