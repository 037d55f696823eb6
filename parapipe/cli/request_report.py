"""What `run` and `simulate` print of requests of several shapes; made from their JSON document."""

from __future__ import annotations

from collections.abc import Collection

import click

from parapipe.cli.options import explicit_options
from parapipe.cli.output import Column, Row, Shown, TextTable
from parapipe.digits import plain

OF_REQUESTS = ("tokens", "requests")
MOST_TOKENS = 16  # that are shown


def refuse_others(allowed: Collection[str]) -> None:
    """Refuse options that say nothing of requests of several shapes."""
    from parapipe.api.checked import flag

    others = explicit_options() - {"plans", "as_json", "quiet", *OF_REQUESTS, *allowed}
    if others:
        names = ", ".join(sorted(map(flag, others)))
        raise click.UsageError(
            f"{names}: for one plan only, and this folder holds several shapes; name that of one"
        )


def refuse_requests() -> None:
    """Refuse options of requests where plans are given."""
    from parapipe.api.checked import flag

    if names := ", ".join(sorted(map(flag, explicit_options() & {*OF_REQUESTS}))):
        raise click.UsageError(
            f"{names}: only a folder of several shapes has requests; map with --shape-set"
        )


def request_lines(document: Row) -> Shown:
    """Yield what runs where, the figures, and the first tokens."""
    from parapipe.api.checked import model_title

    title = f"{model_title(document['model'])} on {document['platform']}"
    yield f"requests    {document['requests']} of {title}, {document['configuration']}"
    yield f"prompt      {document['prompt']} tokens, then {document['tokens']} are written"
    for each in document["shapes"]:
        steps = f"{each['steps']} step{'s' * (each['steps'] > 1)}"
        behind = "" if each.get("slots") is None else f" behind {each['slots']} slots"
        yield f"{each['name']:<11} {steps} of {each['tokens']}{behind}: {each['drawing']}"
    yield ""
    yield _figure_table(document)
    yield ""
    if document["moved_s"]:
        moved = plain(document["moved_s"] * 1e3, 3)
        yield f"states move for {moved} ms, predicted, before the second token"
    if (energy_j := document.get("energy_per_token_j")) is not None:
        yield f"energy per token: {plain(energy_j * 1e3)} mJ, predicted"
    median = plain(document["median_token_s"] * 1e3, 3)
    yield f"time to first token: with loading and reading; median between tokens: {median} ms"
    for row in document.get("chosen") or ():
        more = " ..." if len(row) > MOST_TOKENS else ""
        yield f"tokens: {' '.join(map(str, row[:MOST_TOKENS]))}{more}"
    if any(_slides(document, each) for each in document["shapes"]):
        yield "the cache keeps its newest slots, as a sliding window: earlier tokens are not seen"


def _slides(document: Row, each: Row) -> bool:
    """Tell whether tokens go from a cache before the last step."""
    if each.get("slots") is None or each is not document["shapes"][-1]:
        return False
    return bool(document["prompt"] + document["tokens"] - 2 > each["slots"])


def _figure_table(document: Row) -> TextTable:
    seen = "simulated" if document["how"] == "simulation" else "measured"
    titles = ("predicted", seen, "off %")
    columns = [Column(""), *(Column(title, "number") for title in titles)]
    factors = {
        "first token ms": ("first_token_s", 1e3),
        "per token ms": ("token_s", 1e3),
        "tokens/s": ("tokens_per_second", 1),
        "request ms": ("request_s", 1e3),
    }
    rows = []
    for title, (name, factor) in factors.items():
        row = document[name]
        cells = (plain(row[key] * factor, 4) for key in ("predicted", "observed"))
        rows.append((title, *cells, f"{row['error']:+.1%}".removesuffix("%")))
    return TextTable(columns, rows, [None] * len(rows))
