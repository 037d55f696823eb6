"""Several shapes of a model as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parapipe.cli.output import Column, Row, Shown, TextTable
from parapipe.digits import plain


def combination_table(rows: Sequence[Row], titles: Sequence[str]) -> TextTable:
    """Return a table of placements of shapes with these names."""
    tokens = rows[0].get("tokens_per_second") is not None
    moved = any(map(_moved_s, rows))
    token_energy = all(row.get("energy_per_token_j") is not None for row in rows)
    columns = [
        Column("id", "fixed"),
        *(Column(f"{title} on", least=8) for title in titles),
        *(Column(f"{title}\nms", "number") for title in titles),
        *([Column("first\nms", "number"), Column("tokens\n/s", "number")] if tokens else ()),
        Column("request\nms", "number"),
        *([Column("moved\nms", "number")] if moved else ()),
        Column("energy\nmJ", "number"),
        *([Column("mJ per\ntoken", "number")] if token_energy else ()),
        Column("memory\nMB", "number"),
        Column("named", least=len("one-processor")),
    ]
    cells = [
        [
            row["id"],
            *(each["drawing"] for each in row["placements"].values()),
            *(plain(each["latency_s"] * 1e3, 3) for each in row["placements"].values()),
            *(_token_cells(row) if tokens else ()),
            plain(row["request_s"] * 1e3, 4),
            *([plain(_moved_s(row) * 1e3, 3)] if moved else ()),
            plain(row["energy_j"] * 1e3, 4),
            *([plain(row["energy_per_token_j"] * 1e3, 4)] if token_energy else ()),
            plain(row["memory_bytes"] / 1e6, 4),
            "\n".join(row["names"]),
        ]
        for row in rows
    ]
    return TextTable(columns, cells, ["bold" if row["names"] else None for row in rows])


def _moved_s(row: Row) -> float:
    """Return the seconds in which states move."""
    return float(sum(each["time_s"] for each in row["moves"]))


def _token_cells(row: Row) -> tuple[str, str]:
    return plain(row["first_token_s"] * 1e3, 3), plain(row["tokens_per_second"], 3)


def token_lines(row: Row) -> Iterator[str]:
    """Yield what a placement of all shapes states of tokens; nothing of other models."""
    if row.get("tokens_per_second") is None:
        return
    first, rate = plain(row["first_token_s"] * 1e3), plain(row["tokens_per_second"])
    text = f"{row['id']}: first token after {first} ms, then {rate} tokens/s"
    if (energy_j := row.get("energy_per_token_j")) is not None:
        text += f", {plain(energy_j * 1e3)} mJ per token"
    yield from (text, "")


def shapes_lines(document: Row) -> Shown:
    """Yield the table of placements, and what its columns mean."""
    rows, shapes = document["configurations"], document["shapes"]
    yield combination_table(rows, [each["name"] for each in shapes])
    yield ""
    steps = ", ".join(f"{each['steps']} of {each['name']}" for each in shapes)
    yield f"a request has these steps: {steps}"
    yield from _bucket_lines(document)
    if rows[0].get("first_token_s") is not None:
        yield "first: time to the first token, with loading and reading"
    if any(map(_moved_s, rows)):
        yield (
            "moved: states, from where one shape writes them to where the next one reads them, once"
        )
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
