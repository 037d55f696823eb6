"""What `parapipe run` and `parapipe simulate` print; made from their JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.cli.output import (
    Columns,
    Row,
    Shown,
    print_document,
    print_note,
    print_text,
    text_table,
)

if TYPE_CHECKING:
    from rich.table import Table

    from parapipe import Run

MOST_DIFFERENCES = 3
NOTEWORTHY = 0.005  # of the period


def _form(value: float | None, factor: float, decimals: int = 2) -> str:
    return "" if value is None else f"{value * factor:.{decimals}f}"


def _ms(time_s: float | None) -> str:
    return _form(time_s, 1e3)


def _fps(period_s: float | None) -> str:
    return "" if period_s is None else f"{1 / period_s:.2f}"


RESOURCES: Columns = {
    "processor": lambda row: row["name"] + " (link)" * (row["kind"] == "link"),
    " work\npredicted ms": lambda row: _ms(row["predicted_s"]),
    " work\nms": lambda row: _ms(row["observed_s"]),
    " busy\n%": lambda row: _form(row["observed_utilisation"], 100, 0),
    " waits for\ninput ms": lambda row: _ms(row["for_input_s"]),
    " room\nms": lambda row: _ms(row["for_room_s"]),
    " hand-over\nms": lambda row: _ms(row["handover_s"]),
}


def print_run(run: Run, trace: Path | None = None, *, as_json: bool = False) -> None:
    """Print a run, as the JSON document or as text and tables, after writing its trace."""
    if trace is not None:
        run.save_trace(trace)
    for note in run.notes:
        print_note(note)
    print_document(run.to_json(), _text, as_json=as_json)
    if trace is not None and not as_json:
        print_text(f"trace: {trace}, for ui.perfetto.dev or chrome://tracing")


def _text(document: Row) -> Shown:
    from parapipe.api.checked import model_title

    stages = " │ ".join("+".join(names) for names in document["stages"])
    pace = "admitted as fast as they are taken"
    if not document["saturated"]:
        pace = f"one admitted each {_ms(document['pace_s'])} ms"
    counted = f", the first {document['warm_up']} to warm up" if document["warm_up"] else ""
    yield f"plan        {model_title(document['model'])} on {document['platform']}: {stages}"
    yield f"frames      {document['frames']}{counted}; {pace}"
    yield ""
    yield _figures(document)
    yield ""
    yield text_table(RESOURCES, document["resources"])
    yield ""
    yield from _remarks(document)


def _figures(document: Row) -> Table:
    latency, period = document["latency"], document["period"]
    simulated = "simulated" if document["how"] == "simulation" else "measured"
    spread = f"{_ms(latency['least_s'])} to {_ms(latency['most_s'])}"
    spread += ", queueing included" if latency["holds_queueing"] else ""
    columns: Columns = {
        "": lambda row: row[0],
        " predicted": lambda row: row[1],
        f" {simulated}": lambda row: row[2],
        "…": lambda row: row[3],
    }
    rows = [
        ("latency ms", _ms(latency["predicted_s"]), _ms(latency["median_s"]), f"median; {spread}")
    ]
    for title, told in (("period ms", _ms), ("frames/s", _fps)):
        remark = f"{told(period['sustained_s'])} predicted to be sustainable"
        rows.append((title, told(period["predicted_s"]), told(period["observed_s"]), remark))
    return text_table(columns, rows)


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
    cause = _cause(period["limited_by"])
    limit = f"{_ms(period['limit_s'])} ms apart at best, as predicted: {cause}"
    if period["limit_s"] > period["sustained_s"] * 1.001:
        limit += ", with these queues and what is run at one go"
    yield limit
    if document["how"] == "run":
        cause = _cause(period["observed_limited_by"])
        yield f"{_ms(period['observed_limit_s'])} ms apart at best, as measured: {cause}"


def _cause(resources: Sequence[str]) -> str:
    if len(resources) == 1:
        return f"the work of {resources[0]}"
    return f"{', '.join(resources[:-1])} and {resources[-1]} waiting for each other"


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
            f"{task['name']} on {task['resource']} takes {_ms(task['observed_s'])} ms, "
            f"{_ms(abs(difference_s))} ms {'more' if difference_s > 0 else 'less'} than predicted"
        )
