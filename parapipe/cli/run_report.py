"""What `parapipe run` and `parapipe simulate` print; made from their JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
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
PLAN = "plan"
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
    pace = "admitted as fast as the pipeline takes them"
    if not document["saturated"]:
        pace = f"one admitted each {_ms(document['pace_s'])} ms"
    counted = f", the first {document['warm_up']} to warm up" if document["warm_up"] else ""
    yield f"plan        {model_title(document['model'])} on {document['platform']}: {stages}"
    yield f"frames      {document['frames']}{counted}; {pace}"
    if document["strategy"] != PLAN:
        yield f"strategy    {document['strategy']}"
    yield ""
    yield _figures(document)
    yield ""
    if models := document["models"]:
        yield _models(document, models)
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


def _models(document: Row, models: Sequence[Row]) -> Table:
    """Return what each of several models got."""
    seen = "simulated" if document["how"] == "simulation" else "measured"
    columns: Columns = {
        "model": "name",
        " latency ms\npredicted": lambda row: _ms(row["predicted_s"]),
        f" \n{seen}": lambda row: _ms(row["median_s"]),
        " \np99": lambda row: _ms(row["p99_s"]),
        " frames/s\nplanned": lambda row: _form(row["planned_fps"], 1),
        f"  \n{seen}": lambda row: _form(row["observed_fps"], 1),
    }
    return text_table(columns, models)


def _remarks(document: Row) -> Iterator[str]:
    period = document["period"]
    yield from _limit(document)
    if not document["saturated"] and (period["observed_s"] or 0) > document["pace_s"] * 1.005:
        yield "frames arrive faster than the pipeline takes them, so each waits longer and longer"
    if document["strategy"] == PLAN:
        yield from _differences(document["tasks"], period["predicted_s"])
    else:
        yield from _elsewhere(document["tasks"])
    if steady := (document["simulation"] or {}).get("steady"):
        every = "every frame" if steady["frames"] == 1 else f"every {steady['frames']} frames"
        yield (
            f"from frame {steady['since']} on, the schedule repeats {every}: "
            f"the period stays {_ms(steady['period_s'])} ms"
        )


def _limit(document: Row) -> Iterator[str]:
    period = document["period"]
    cause = _cause(period["limited_by"])
    decided = document["strategy"] != PLAN
    of_what = " of the plan" if decided else ""
    limit = f"shortest period{of_what}, predicted: {_ms(period['limit_s'])} ms, set by {cause}"
    if period["limit_s"] > period["sustained_s"] * 1.001:
        limit += ", with these queues and these segments or operators"
    yield limit
    if document["how"] == "run" and not decided:
        cause = _cause(period["observed_limited_by"])
        yield f"shortest period, measured: {_ms(period['observed_limit_s'])} ms, set by {cause}"


def _elsewhere(tasks: Sequence[Row]) -> Iterator[str]:
    """Say how much other processors than the plan's have done, the most often taken first."""
    yield f"{fmean(t['elsewhere'] for t in tasks):.0%} of the jobs ran elsewhere than planned"
    for task in sorted(tasks, key=lambda each: -each["elsewhere"])[:MOST_DIFFERENCES]:
        if task["elsewhere"]:
            where = f"{task['name']} of {task['resource']} ran elsewhere"
            yield f"{where} in {task['elsewhere']:.0%} of the frames"


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
        yield f"every task is within {NOTEWORTHY * 100:g} % of the period of its prediction"
    for task in told:
        difference_s = task["observed_s"] - task["predicted_s"]
        yield (
            f"{task['name']} on {task['resource']} takes {_ms(task['observed_s'])} ms, "
            f"{_ms(abs(difference_s))} ms {'more' if difference_s > 0 else 'less'} than predicted"
        )
