"""Several shapes of a model as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parapipe.cli.output import Column, Row, Shown, TextTable
from parapipe.digits import plain


def combination_table(rows: Sequence[Row]) -> TextTable:
    """Return a table of placements of several shapes, a line for each shape."""
    tokens = rows[0].get("tokens_per_second") is not None
    moved = any(map(_moved_s, rows))
    token_energy = all(row.get("energy_per_token_j") is not None for row in rows)
    columns = [
        Column("id", "fixed"),
        Column("shape", "fixed"),
        Column("on [subgraphs]", least=16),
        Column("step\nms", "number"),
        *([Column("first\nms", "number"), Column("tokens\n/s", "number")] if tokens else ()),
        Column("request\nms", "number"),
        *([Column("moved\nms", "number")] if moved else ()),
        Column("energy\nmJ", "number"),
        *([Column("mJ per\ntoken", "number")] if token_energy else ()),
        Column("memory\nMB", "number"),
        Column("named", "fixed"),
    ]
    cells, styles = [], []
    for row in rows:
        figures = [
            *(_token_cells(row) if tokens else ()),
            plain(row["request_s"] * 1e3, 4),
            *([plain(_moved_s(row) * 1e3, 3)] if moved else ()),
            plain(row["energy_j"] * 1e3, 4),
            *([plain(row["energy_per_token_j"] * 1e3, 4)] if token_energy else ()),
            plain(row["memory_bytes"] / 1e6, 4),
        ]
        empty = [""] * len(figures)
        last = len(row["placements"]) - 1
        for at, (shape, each) in enumerate(row["placements"].items()):
            names = row["names"][at:] if at == last else row["names"][at : at + 1]
            cells.append(
                [
                    "" if at else row["id"],
                    shape,
                    each["drawing"],
                    plain(each["latency_s"] * 1e3, 3),
                    *(empty if at else figures),
                    "\n".join(names),
                ]
            )
            styles.append("bold" if row["names"] else None)
    return TextTable(columns, cells, styles)


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
    yield text
    yield from draws_lines(row)
    yield ""


def draws_lines(row: Row) -> Iterator[str]:
    """Yield between what figures lie in nine of ten draws of the costs, if there are any."""
    if (intervals := row.get("intervals")) is None:
        return
    told = [("a request", "request_s", 1e3, "ms"), ("first token", "first_token_s", 1e3, "ms"),
            ("tokens", "tokens_per_second", 1, "a second")]  # fmt: skip
    texts = (
        f"{name} {'–'.join(plain(end * factor, 3) for end in intervals[key])} {unit}"
        for name, key, factor, unit in told
        if key in intervals
    )
    yield f"in nine of ten draws of the costs: {', '.join(texts)}"


def shapes_lines(document: Row, *, show_all: bool) -> Shown:
    """Yield the table of placements, of those with names if not of all, and what columns mean."""
    every, shapes = document["configurations"], document["shapes"]
    rows = every if show_all else [row for row in every if row["names"]]
    yield combination_table(rows)
    yield ""
    if len(rows) < len(every):
        yield f"{len(rows)} of {len(every)} placements; --all lists them all"
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
        count = f"{each['steps']} request{'s' * (each['steps'] != 1)}"
        yield f"{each['name']} serves {sizes}: {count} of the mix{padded}"
