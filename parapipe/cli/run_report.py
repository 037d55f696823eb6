"""What `parapipe run` and `parapipe simulate` print; made from their JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parapipe.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
MOST_DIFFERENCES = 3
NOTEWORTHY = 0.005  # of the period


def print_run(document: Row, trace: Path | None = None, *, as_json: bool = False) -> None:
    """Print a run: as the JSON document, or as text and tables."""
    if as_json:
        print_json(document)
        return
    print_text("\n".join(_head(document)))
    print_text("")
    print_table(_figures(document))
    print_text("")
    print_table(_lanes(document["lanes"]))
    print_text("")
    print_text("\n".join(_remarks(document)))
    if trace is not None:
        print_text(f"trace: {trace}, for ui.perfetto.dev or chrome://tracing")


def _head(document: Row) -> Iterator[str]:
    stages = " │ ".join("+".join(names) for names in document["stages"])
    pace = (
        "let in as fast as they are taken"
        if document["saturated"]
        else f"let in each {_ms(document['pace_s'])} ms"
    )
    counted = f", the first {document['warm_up']} to warm up" if document["warm_up"] else ""
    yield f"plan        {document['model']} on {document['platform']}: {stages}"
    yield f"frames      {document['frames']}{counted}; {pace}"


def _figures(document: Row) -> Table:
    latency, period = document["latency"], document["period"]
    simulated = "simulated" if document["how"] == "simulation" else "measured"
    table = _table("", " predicted", f" {simulated}", "")
    spread = f"{_ms(latency['least_s'])} to {_ms(latency['most_s'])}"
    spread += ", queueing included" if latency["holds_queueing"] else ""
    table.add_row(
        "latency ms", _ms(latency["predicted_s"]), _ms(latency["median_s"]), f"median; {spread}"
    )
    observed_s = period["observed_s"]
    can = "predicted to be sustainable"
    table.add_row(
        "period ms",
        _ms(period["predicted_s"]),
        _ms(observed_s),
        f"{_ms(period['sustained_s'])} {can}",
    )
    table.add_row(
        "frames/s",
        _fps(period["predicted_s"]),
        _fps(observed_s),
        f"{_fps(period['sustained_s'])} {can}",
    )
    return table


def _lanes(lanes: Sequence[Row]) -> Table:
    table = _table(
        "processor", " work\npredicted ms", " work\nms", " busy\n%", " waits for\ninput ms",
        " room\nms", " hand-over\nms",
    )  # fmt: skip
    for lane in lanes:
        busy = lane["observed_utilisation"]
        table.add_row(
            lane["name"] + (" (link)" if lane["kind"] == "link" else ""),
            *(_ms(lane[key]) for key in ("predicted_s", "observed_s")),
            "" if busy is None else f"{100 * busy:.0f}",
            *(_ms(lane[key]) for key in ("for_input_s", "for_room_s", "handover_s")),
        )
    return table


def _remarks(document: Row) -> Iterator[str]:
    period = document["period"]
    yield from _limit(document)
    if not document["saturated"] and (period["observed_s"] or 0) > document["pace_s"] * 1.005:
        yield "frames arrive faster than they are taken, so each waits longer than the one before"
    yield from _differences(document["tasks"], period["predicted_s"])
    if steady := (document["simulation"] or {}).get("steady"):
        every = "every frame" if steady["frames"] == 1 else f"every {steady['frames']} frames"
        yield (
            f"from frame {steady['since']} on all recurs {every}: "
            f"{_ms(steady['period_s'])} ms apart for ever"
        )


def _limit(document: Row) -> Iterator[str]:
    period = document["period"]
    limit = (
        f"{_ms(period['limit_s'])} ms apart at best, as predicted: {_cause(period['limited_by'])}"
    )
    if period["limit_s"] > period["sustained_s"] * 1.001:
        limit += ", with these queues and what is run at one go"
    yield limit
    if document["how"] == "run":
        cause = _cause(period["observed_limited_by"])
        yield f"{_ms(period['observed_limit_s'])} ms apart at best, as measured: {cause}"


def _cause(lanes: Sequence[str]) -> str:
    if len(lanes) == 1:
        return f"the work of {lanes[0]}"
    return f"{_and(lanes)} waiting for each other"


def _differences(tasks: Sequence[Row], period_s: float) -> Iterator[str]:
    """Say which tasks take longer or shorter than predicted, the most different first."""
    by_size = sorted(tasks, key=lambda task: -abs(task["observed_s"] - task["predicted_s"]))
    told = [
        task
        for task in by_size[:MOST_DIFFERENCES]
        if abs(task["observed_s"] - task["predicted_s"]) > NOTEWORTHY * period_s
    ]
    if not told:
        yield f"no task differs from what was predicted by {NOTEWORTHY * 100:g} % of the period"
    for task in told:
        difference_s = task["observed_s"] - task["predicted_s"]
        yield (
            f"{task['name']} on {task['lane']} takes {_ms(task['observed_s'])} ms, "
            f"{_ms(abs(difference_s))} ms {'more' if difference_s > 0 else 'less'} than predicted"
        )


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _ms(time_s: float | None) -> str:
    return "" if time_s is None else f"{time_s * 1e3:.2f}"


def _fps(period_s: float | None) -> str:
    return "" if period_s is None else f"{1 / period_s:.2f}"


def _table(*titles: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for title in titles:
        table.add_column(
            title.strip(), justify="right" if title.startswith(" ") else "left", no_wrap=True
        )
    return table
