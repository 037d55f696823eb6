"""Several shapes of a model as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parapipe.cli.output import Column, Row, Shown, TextTable
from parapipe.digits import plain


def combination_table(rows: Sequence[Row], titles: Sequence[str]) -> TextTable:
    """Return a table of placements of shapes with these names."""
    tokens = rows[0].get("tokens_per_second") is not None
    columns = [
        Column("id", "fixed"),
        *(Column(f"{title} on", least=10) for title in titles),
        *(Column(f"{title}\nms", "number") for title in titles),
        *([Column("first\ntoken ms", "number"), Column("tokens\n/s", "number")] if tokens else ()),
        Column("request\nms", "number"),
        Column("moved\nms", "number"),
        Column("energy\nmJ", "number"),
        Column("memory\nMB", "number"),
        Column("named"),
    ]
    cells = [
        [
            row["id"],
            *(each["drawing"] for each in row["placements"].values()),
            *(plain(each["latency_s"] * 1e3, 3) for each in row["placements"].values()),
            *(_token_cells(row) if tokens else ()),
            plain(row["request_s"] * 1e3, 4),
            plain(sum(each["time_s"] for each in row["moves"]) * 1e3, 3),
            plain(row["energy_j"] * 1e3, 4),
            plain(row["memory_bytes"] / 1e6, 4),
            "\n".join(row["names"]),
        ]
        for row in rows
    ]
    return TextTable(columns, cells, ["bold" if row["names"] else None for row in rows])


def _token_cells(row: Row) -> tuple[str, str]:
    return plain(row["first_token_s"] * 1e3, 3), plain(row["tokens_per_second"], 3)


def shapes_lines(document: Row) -> Shown:
    """Yield the table of placements, and what its columns mean."""
    rows, shapes = document["configurations"], document["shapes"]
    yield combination_table(rows, [each["name"] for each in shapes])
    yield ""
    steps = ", ".join(f"{each['steps']} of {each['name']}" for each in shapes)
    yield f"a request has these steps: {steps}"
    yield from _bucket_lines(document)
    yield "moved: states, from where one shape writes them to where the next one reads them, once"
    yield "memory: weights that several shapes use in a memory count once there"
    if not document["every_placement"]:
        yield (
            "placements that a search of each shape lists were combined, each tried in the other "
            "shapes, too"
        )


def _bucket_lines(document: Row) -> Iterator[str]:
    """Yield which requests each shape serves, where they are buckets."""
    if document.get("bucket") is None:
        return
    for each in document["shapes"]:
        sizes = f"{document['bucket']} {each['from_size']} to {each['to_size']}"
        padding = each.get("padding")
        padded = "" if padding is None else f", {padding:.0%} of it padding"
        yield f"{each['name']} serves {sizes}: {each['steps']} requests of the mix{padded}"
