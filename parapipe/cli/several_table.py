"""A front of several models as a table, and what ways without sharing reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parapipe.cli.output import SHORT_NAME, Column, Row, TextTable, shorten_names
from parapipe.digits import plain

MOST_ROWS = 12
BASELINES = {
    "own_processors": "each model on processors of its own",
    "in_turn": "one model after the other on all processors",
    "one_each": "each model on a single processor",
}


def shown_rows(configurations: Sequence[Row]) -> list[Row]:
    """Return the rows with a name, then others of the front, by ascending latency."""
    named = [row for row in configurations if row["names"]]
    others = [row for row in configurations if not row["names"]]
    shown = [*named, *others[: max(0, MOST_ROWS - len(named))]]
    return [row for row in configurations if row in shown]


def several_table(rows: Sequence[Row]) -> TextTable:
    """Return the table: by model its latency, then power and how far rates could grow."""
    models = [*rows[0]["several"]["models"]]
    titles = shorten_names(models, SHORT_NAME) or models
    columns = [
        Column("id", "fixed"),
        Column("who runs what", least=22),
        *(Column(f"{title}\nms", "number") for title in titles),
        Column("power\nW", "number"),
        Column("rates\n×", "number"),
        Column("named"),
    ]
    cells = []
    for row in rows:
        figures = row["several"]
        latencies_s = [figures["models"][model]["latency_s"] for model in models]
        cells.append(
            [
                row["id"],
                row["drawing"],
                *(f"{latency_s * 1e3:.1f}" for latency_s in latencies_s),
                f"{figures['power_w']:.2f}",
                f"{_rate_factor(figures):.2f}",
                "\n".join(row["names"]),
            ]
        )
    return TextTable(columns, cells, ["bold" if row["names"] else None for row in rows])


def _rate_factor(figures: Row) -> float:
    contended = figures["contended_rate_factor"]
    return float(
        figures["rate_factor"] if contended is None else min(contended, figures["rate_factor"])
    )


def several_lines(document: Row) -> Iterator[str]:
    """Yield what columns mean, how the models share the board, and what sharing gains."""
    several = document["several"]
    frames = ", ".join(f"{each['frames']} of {each['name']}" for each in several["models"])
    yield "ms: from the arrival of a frame to its end; W: power; both at the rates that are asked"
    yield "×: factor by which all rates could grow together, with the row's order of work"
    every = plain(several["period_s"] * 1e3)
    yield f"the plans repeat every {every} ms, with these frames: {frames}"
    best = max(document["configurations"], key=lambda row: _rate_factor(row["several"]))
    least, shared, bound = (
        plain(factor, 3)
        for factor in (_rate_factor(best["several"]), several["shared"], several["bound"])
    )
    yield (
        f"most growth: {best['id']}, {least} times the rates that are asked. With any latency, "
        f"the loads of the processors would allow {shared} times, and more than {bound} times is "
        "proven impossible."
    )
    yield "without sharing processors between models:"
    for key, title in BASELINES.items():
        if baseline := several[key]:
            where = (
                ""
                if key == "in_turn"
                else " ("
                + ", ".join(f"{n} on {'+'.join(ps)}" for n, ps in baseline["processors"].items())
                + ")"
            )
            yield f"- {title}{where}: {plain(baseline['rate_factor'], 3)} times"
    yield from _random_lines(best)


def _random_lines(row: Row) -> Iterator[str]:
    """Yield what frames get that come at random times."""
    waits = [
        f"{name} {plain(each['random_p99_s'] * 1e3)} ms ({each['utilisation']:.0%} of its turns "
        "used)"
        if each["random_p99_s"] is not None
        else f"{name} longer and longer"
        for name, each in row["several"]["models"].items()
    ]
    yield (
        f"if frames come at random times, and {row['id']} repeats as fast as it can, 99 of 100 "
        f"frames take at most: {', '.join(waits)}"
    )
