"""What configurations take on the cold chip and in long runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parapipe.cli.output import Columns, Row, Shown, text_table


def _figure(state: str, text: Callable[[Row], str]) -> Callable[[Row], str]:
    return lambda row: text(row[state]) if row[state] else "-"


def _survives(row: Row) -> str:
    return {True: "yes", False: "no", None: "-"}[row["survives"]]


STATES: Columns = {
    "front": "state",
    "id": "id",
    "stages [subgraphs]": "drawing",
    " cold ms": _figure("cold", lambda figures: f"{figures['latency_s'] * 1e3:.4g}"),
    " fps": _figure("cold", lambda figures: f"{1 / figures['period_s']:.4g}"),
    " sustained ms": _figure("sustained", lambda figures: f"{figures['latency_s'] * 1e3:.4g}"),
    " fps ": _figure("sustained", lambda figures: f"{1 / figures['period_s']:.4g}"),
    "in both": _survives,
}


def state_lines(rows: Sequence[Row]) -> Shown:
    """Yield the table, and how many are good in both states."""
    yield text_table(STATES, rows)
    yield ""
    for state, other in (("cold", "sustained"), ("sustained", "cold")):
        own = [row for row in rows if row["state"] == state]
        stay = sum(bool(row["survives"]) for row in own)
        known = sum(row["survives"] is not None for row in own)
        yield (
            f"{stay} of {known} configurations of the {state} front are beaten by none of the "
            f"{other} one"
        )
