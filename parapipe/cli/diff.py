"""`parapipe diff`: what changed from one front to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from parapipe.cli.figure_cells import short_columns
from parapipe.cli.options import FILE, MAX_LOSS, json_option
from parapipe.cli.output import (
    SHORT_NAME,
    Columns,
    Row,
    Shown,
    print_document,
    shorten_names,
    text_table,
)
from parapipe.digits import plain

MOST_ROWS = 10
LONGEST = 64  # characters of an option; as many as a digest has
_SEVERAL = (
    "latency: from when a frame of the model comes to its end; throughput: as far as all rates can "
    "grow together; energy: mean of all frames of a pattern"
)

_STATED = (
    "figures are by the stated costs; below one that lies outside of its interval is the median of "
    "the draws"
)


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--max-loss", **MAX_LOSS)
@json_option
def command(
    *, old: Path, new: Path, max_loss: Mapping[str, float] | float | None, as_json: bool
) -> None:
    """Say what changed from the front in the folder OLD to that in NEW, which map wrote.

    Nothing is printed if nothing did. Exits with 1 if a figure is worse by more than --max-loss.
    """
    import parapipe

    difference = parapipe.diff(old, new)
    print_document(difference.to_json(), _text, as_json=as_json)
    if max_loss is not None:
        difference.check(max_loss)


def _text(document: Row) -> Shown:
    if document["same"]:
        return
    yield text_table(
        {
            "the best in…": lambda row: row["figure"] + f" of {row['model']}" * bool(row["model"]),
            " old": lambda row: _figure_text(row, "old"),
            " new": lambda row: _figure_text(row, "new"),
            " change": lambda row: _change_text(row["old"], row["new"]) if row["loss"] else "same",
            "": lambda row: "worse" if row["loss"] > 0 else "better" if row["loss"] < 0 else "",
            "configurations": lambda row: f"{row['old_id']}, {row['new_id']}",
        },
        document["best"],
    )
    if any(row["model"] for row in document["best"]):
        yield _SEVERAL
    if any(row[f"{which}_median"] for row in document["best"] for which in ("old", "new")):
        yield _STATED
    for each in document["uncompared"]:
        yield f"{each['figure']} is not compared: {each['reason']}"
    yield from _input_lines(document)
    yield from _cost_lines(document["costs"])
    for title, rows in (
        ("lost: no new configuration is as good in all objectives", document["lost"]),
        ("gained: no old configuration is as good in all objectives", document["gained"]),
    ):
        yield from _titled_table(title, _configuration_columns(rows), rows)


def _figure_text(row: Row, which: str) -> str:
    from parapipe.api.checked import COMPARED

    figure = COMPARED[row["figure"]]
    stated, median = row[which], row[f"{which}_median"]
    below = "" if median is None else f"\nmedian {plain(median * figure.scale)}"
    return f"{plain(stated * figure.scale)} {figure.unit}{below}"


def _change_text(old: float, new: float) -> str:
    return f"{new / old - 1:+.1%}" if old else ""


def _input_lines(document: Row) -> Shown:
    if document["inputs"]:
        yield ""
        yield "inputs and options that differ:"
    for each in document["inputs"]:
        old, new = ((each[side] or "nothing")[:LONGEST] for side in ("old", "new"))
        yield f"  {each['what']}: {old} → {new}"
    for key, verb in (("operators_added", "new"), ("operators_removed", "gone")):
        if names := document[key]:
            yield ""
            yield f"{len(names)} operators are {verb}: {_first_names(names)}"


def _cost_lines(costs: list[Row]) -> Shown:
    columns: Columns = {
        "operator…": "operator",
        "on": "processor",
        " old\nms": lambda row: plain(row["old_s"] * 1e3),
        " new\nms": lambda row: plain(row["new_s"] * 1e3),
        " change": lambda row: _change_text(row["old_s"], row["new_s"]),
    }
    yield from _titled_table("operators and transfers whose times differ", columns, costs)


def _configuration_columns(rows: Sequence[Row]) -> Columns:
    """Return the columns of configurations; of several models a latency for each."""
    models = [*rows[0]["models"]] if rows else []
    titles = shorten_names(models, SHORT_NAME) or models
    latencies: Columns = {
        f" {title}\nms": partial(_latency_text, name)
        for title, name in zip(titles, models, strict=True)
    }
    return {
        "id": "id",
        "who runs what…" if models else "stages…": "drawing",
        **latencies,
        **short_columns(lambda row: row, but="latency" if models else ""),
        "named": lambda row: ", ".join(row["names"]),
    }


def _latency_text(model: str, row: Row) -> str:
    return plain(row["models"][model] * 1e3)


def _titled_table(title: str, columns: Columns, rows: list[Row]) -> Shown:
    """Yield a table of the first rows, and how many more there are; nothing if there are none."""
    if rows:
        yield ""
        yield f"{title} ({len(rows)}):"
        yield text_table(columns, rows[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            yield f"and {len(rows) - MOST_ROWS} more: --json has all"


def _first_names(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_ROWS])
    return shown if len(names) <= MOST_ROWS else f"{shown} and {len(names) - MOST_ROWS} more"
