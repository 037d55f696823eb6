"""What `parapipe run` and `parapipe simulate` print; made from their JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from parapipe.cli.figure_cells import outside_lines
from parapipe.cli.output import (
    Column,
    Columns,
    Row,
    Shown,
    TextTable,
    print_document,
    print_note,
    print_text,
    text_table,
)
from parapipe.digits import plain

if TYPE_CHECKING:
    from parapipe import Run

MOST_DIFFERENCES = 3
PLAN = "plan"
NOTEWORTHY = 0.005  # of the period


def _decimal(value: float | None, factor: float, decimals: int = 2) -> str:
    return "" if value is None else f"{value * factor:.{decimals}f}"


def _ms(time_s: float | None) -> str:
    return _decimal(time_s, 1e3)


def _fps(period_s: float | None) -> str:
    return "" if period_s is None else f"{1 / period_s:.2f}"


RESOURCES: Columns = {
    "processor": lambda row: row["name"] + " (link)" * (row["kind"] == "link"),
    " busy\npredicted ms": lambda row: _ms(row["predicted_s"]),
    " busy\nms": lambda row: _ms(row["observed_s"]),
    " busy\n%": lambda row: _decimal(row["observed_utilisation"], 100, 0),
    " waits for\ninput ms": lambda row: _ms(row["for_input_s"]),
    " room\nms": lambda row: _ms(row["for_room_s"]),
    " hand-over\nms": lambda row: _ms(row["handover_s"]),
}


def refuse_for_several(arguments: dict[str, Any], *names: str, trace: Path | None) -> None:
    """Take options for one plan out of those given; refuse them where several plans are given."""
    from parapipe.api.checked import flag

    context = click.get_current_context()
    for name in names:
        arguments.pop(name)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag(name)} is for one plan, and several are given")
    if trace is not None:
        raise click.UsageError("--trace is for one plan, and several are given")


def print_runs(
    runs: Sequence[Run],
    plans: Sequence[Path],
    trace: Path | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Print a run, or several one after the other, after writing the trace.

    Each is the JSON document, or text and tables; several documents are a list. Behind text stands
    what draws say of the predictions of the `plans` that were run, where a front lies beside them.
    """
    if trace is not None:
        runs[0].save_trace(trace)
    for note in dict.fromkeys(note for run in runs for note in run.notes):
        print_note(note)
    documents = [run.to_json() for run in runs]
    print_document(documents if len(runs) > 1 else documents[0], _all_texts, as_json=as_json)
    if as_json:
        return
    print_document(plans, _outside_lines, as_json=False)
    if trace is not None:
        print_text(f"trace: {trace}, for ui.perfetto.dev or chrome://tracing")


def _outside_lines(plans: Sequence[Path]) -> Iterator[str]:
    """Say what draws say of predicted figures that are outside of their intervals."""
    from parapipe.api.front import configuration_beside

    for plan in plans:
        if row := configuration_beside(plan):
            for line in outside_lines(row.model_dump()):
                yield f"predicted {line}" if len(plans) == 1 else f"{row.id}: predicted {line}"


def _all_texts(documents: Row | list[Row]) -> Shown:
    for number, document in enumerate(documents if isinstance(documents, list) else [documents]):
        if number:
            yield ""
        yield from _text(document)


def _text(document: Row) -> Shown:
    from parapipe.api.checked import model_title, stages_title

    stages = stages_title(document["stages"], document["replicas"])
    pace = "admitted as fast as the pipeline takes them"
    if not document["saturated"]:
        pace = f"one admitted each {_ms(document['pace_s'])} ms"
    counted = f", the first {document['warm_up']} to warm up" if document["warm_up"] else ""
    yield f"plan        {model_title(document['model'])} on {document['platform']}: {stages}"
    yield f"{_frame(document) + 's':11} {document['frames']}{counted}; {pace}"
    if document["strategy"] != PLAN:
        yield f"strategy    {document['strategy']}"
    yield ""
    yield _figure_table(document)
    yield ""
    if models := document["models"]:
        yield _model_table(document, models)
        yield ""
        if models[0]["random"]:
            yield _random_table(document, models)
            yield ""
    yield text_table(RESOURCES, document["resources"])
    yield ""
    yield from _remark_lines(document)


def _frame(document: Row) -> str:
    """Return what a frame of the plan is: of several models, all the frames of a pattern."""
    return "pattern" if document["models"] else "frame"


def _figure_table(document: Row) -> TextTable:
    latency, period = document["latency"], document["period"]
    simulated = "simulated" if document["how"] == "simulation" else "measured"
    spread = f"{_ms(latency['least_s'])} to {_ms(latency['most_s'])}"
    spread += ", queueing included" if latency["holds_queueing"] else ""
    tail = ("p95_s", "p99_s") if _varies(document) else ()
    numbers = ("predicted", simulated, *(key[:3] for key in tail))
    columns = [Column(""), *(Column(title, "number") for title in numbers), Column("")]
    figures = ("predicted_s", "median_s", *tail)
    rows = [("latency ms", *(_ms(latency[key]) for key in figures), f"median; {spread}")]
    for title, text_of in (("period ms", _ms), (f"{_frame(document)}s/s", _fps)):
        remark = f"{text_of(period['sustained_s'])} predicted to be sustainable"
        figures = ("predicted_s", "observed_s", *tail)
        rows.append((title, *(text_of(period[key]) for key in figures), remark))
    return TextTable(columns, rows, [None] * len(rows))


def _varies(document: Row) -> bool:
    """Tell whether frames take other times than predicted, from one to the next."""
    simulation = document["simulation"]
    return simulation is None or bool(
        simulation["jitter"] or simulation["disturbed"] or simulation["measured"]
    )


def _model_table(document: Row, models: Sequence[Row]) -> TextTable:
    """Return what each of several models got."""
    seen = "simulated" if document["how"] == "simulation" else "measured"
    columns: Columns = {
        "model": "name",
        " latency ms\npredicted": lambda row: _ms(row["predicted_s"]),
        f" \n{seen}": lambda row: _ms(row["median_s"]),
        " \np99": lambda row: _ms(row["p99_s"]),
        " frames/s\nplanned": lambda row: _decimal(row["planned_fps"], 1),
        f"  \n{seen}": lambda row: _decimal(row["observed_fps"], 1),
    }
    return text_table(columns, models)


def _random_table(document: Row, models: Sequence[Row]) -> TextTable:
    """Return what frames of each model got that came at random times."""
    seen = "simulated" if document["how"] == "simulation" else "measured"
    columns: Columns = {
        "at random": "name",
        " frames": lambda row: str(row["random"]["frames"]),
        " turns used %\npredicted": lambda row: _decimal(
            row["random"]["predicted_utilisation"], 100, 0
        ),
        f"   \n{seen}": lambda row: _decimal(row["random"]["utilisation"], 100, 0),
        " latency ms\np99 predicted": lambda row: _ms(row["random"]["predicted_p99_s"]),
        f"    \nmedian {seen}": lambda row: _ms(row["random"]["median_s"]),
        "    \np95": lambda row: _ms(row["random"]["p95_s"]),
        "     \np99": lambda row: _ms(row["random"]["p99_s"]),
    }
    return text_table(columns, models)


def _remark_lines(document: Row) -> Iterator[str]:
    period = document["period"]
    what = _frame(document)
    yield from _limit_lines(document)
    if not document["saturated"] and (period["observed_s"] or 0) > document["pace_s"] * 1.005:
        yield f"{what}s arrive faster than the pipeline takes them, so each waits longer and longer"
    if _still_fills(document):
        yield f"{what}s were done faster than they can be in the long run: give more --frames"
    if document["strategy"] == PLAN:
        yield from _difference_lines(document["tasks"], period["predicted_s"])
    else:
        yield from _elsewhere_lines(document["tasks"], f"{what}s")
    if chosen := (document["simulation"] or {}).get("chosen"):
        yield from _slot_lines(chosen)
    if steady := (document["simulation"] or {}).get("steady"):
        every = f"every {what}" if steady["frames"] == 1 else f"every {steady['frames']} {what}s"
        yield (
            f"from {what} {steady['since']} on, the schedule repeats {every}: "
            f"the period stays {_ms(steady['period_s'])} ms"
        )


def _still_fills(document: Row) -> bool:
    """Tell whether a simulation by the plan was too fast, as its queues were still filling."""
    period = document["period"]
    exact = document["strategy"] == PLAN and not _varies(document)
    return exact and (period["observed_s"] or inf) < period["limit_s"] * 0.999


def _slot_lines(chosen: Row) -> Iterator[str]:
    """Say which channels got how many slots, and what that costs."""
    changed = [each for each in chosen["channels"] if each["more_bytes"]]
    for each in changed:
        size = f"{plain(abs(each['more_bytes']) / 1e6, 3)} MB {_more_or_less(each['more_bytes'])}"
        where = f"'{each['tensor']}' from {each['from']} to {each['to']}"
        yield f"slots: {each['slots']} for {where}, {size}"
    if not changed:
        yield "slots: those of the plan are enough, and no channel can do with fewer"
        return
    total = f"{plain(abs(chosen['more_bytes']) / 1e6, 3)} MB {_more_or_less(chosen['more_bytes'])}"
    least = "no others take less" if chosen["least"] else "no channel by itself can do with fewer"
    yield f"slots: {total} than the plan's in all; {least}"


def _more_or_less(size_bytes: int) -> str:
    return "more" if size_bytes >= 0 else "less"


def _limit_lines(document: Row) -> Iterator[str]:
    period = document["period"]
    cause = _cause_text(period["limited_by"])
    decided = document["strategy"] != PLAN
    of_what = " of the plan" if decided else ""
    limit = f"shortest period{of_what}, predicted: {_ms(period['limit_s'])} ms, set by {cause}"
    if period["limit_s"] > period["sustained_s"] * 1.001:
        limit += ", with these queues and these segments or operators"
    yield limit
    if document["how"] == "run" and not decided:
        cause = _cause_text(period["observed_limited_by"])
        yield f"shortest period, measured: {_ms(period['observed_limit_s'])} ms, set by {cause}"


def _elsewhere_lines(tasks: Sequence[Row], of_what: str) -> Iterator[str]:
    """Say how much other processors than the plan's have done, the most often taken first."""
    yield f"{fmean(t['elsewhere'] for t in tasks):.0%} of the jobs ran elsewhere than planned"
    for task in sorted(tasks, key=lambda each: -each["elsewhere"])[:MOST_DIFFERENCES]:
        if task["elsewhere"]:
            where = f"{task['name']} of {task['resource']} ran elsewhere"
            yield f"{where} in {task['elsewhere']:.0%} of the {of_what}"


def _cause_text(resources: Sequence[str]) -> str:
    if len(resources) == 1:
        return f"the busy time of {resources[0]}"
    return f"{', '.join(resources[:-1])} and {resources[-1]} waiting for each other"


def _difference_lines(tasks: Sequence[Row], period_s: float) -> Iterator[str]:
    """Say which tasks take longer or shorter than predicted, the most different first."""
    by_size = sorted(tasks, key=lambda task: -abs(task["observed_s"] - task["predicted_s"]))
    different = [
        task
        for task in by_size[:MOST_DIFFERENCES]
        if abs(task["observed_s"] - task["predicted_s"]) > NOTEWORTHY * period_s
    ]
    if not different:
        share = f"{NOTEWORTHY * 100:g} %"
        yield f"no task's time differs from its prediction by more than {share} of the period"
    for task in different:
        difference_s = task["observed_s"] - task["predicted_s"]
        yield (
            f"{task['name']} on {task['resource']} takes {_ms(task['observed_s'])} ms, "
            f"{_ms(abs(difference_s))} ms {'more' if difference_s > 0 else 'less'} than predicted"
        )
