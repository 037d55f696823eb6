"""`parapipe pick`: the configuration that keeps what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from parapipe.cli.figure_cells import outside_lines, plain_cells, short_columns
from parapipe.cli.front_table import front_table
from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import Columns, Row, Shown, TextTable, print_document, text_table
from parapipe.cli.several_table import several_table
from parapipe.cli.shapes_table import combination_table
from parapipe.cli.shapes_table import draws_lines as shapes_draws_lines
from parapipe.cli.verb_options import VerbCommand, options
from parapipe.digits import plain

MOST = 0.5  # share of the draws up to which demands are met, and a warning is due


@click.command(cls=VerbCommand)
@click.argument("directory", type=FILE)
@options("Demands")
@options("pick", "minimise")
@json_option
def command(*, directory: Path, as_json: bool, **demands: Any) -> None:  # noqa: ANN401 - click checks
    """Pick the configuration in DIRECTORY, which map wrote, that meets all demands.

    If there is none, says which demands are missed and by how much. In a folder that sweep wrote,
    picks one for each model on each platform, the best platform first. In a folder of several
    shapes, picks placements of all: latency is the time to the first token, all else of requests.
    """
    import parapipe
    from parapipe.api.shapes import shapes_folder
    from parapipe.sweeps.sweep import is_sweep

    if is_sweep(directory):
        picks = [each.to_json() for each in parapipe.load_sweep(directory).pick(**demands)]
        print_document(picks, lambda each: _board_lines(each, demands), as_json=as_json)
        return
    if folder := shapes_folder(directory):
        shapes = parapipe.pick_shapes(folder, **demands).to_json()
        print_document(shapes, _shapes_lines, as_json=as_json)
        return
    front = parapipe.load_front(directory)
    picked = parapipe.pick(front, **demands).to_json()
    objectives = front.document.options.objectives
    print_document(picked, lambda each: _text(each, objectives, demands), as_json=as_json)


def _text(picked: Row, objectives: Sequence[str], demands: Row) -> Shown:
    sustained = demands["sustained"]
    row = picked["configuration"]
    yield picked_table(row, objectives, demands)
    yield ""
    figures = picked["figures"]
    if sustained:
        values = figures["throughput_fps"], figures["energy_j"] * 1e3
        fps, energy_mj = (plain_cells([each])[0] for each in values)  # as the table has them
        frame = "pattern" if row["several"] else "frame"
        yield f"sustained: {fps} {frame}s/s at {energy_mj} mJ per {frame}"
    full = "the rates that are asked" if row["several"] else "full throughput"
    if row.get("arrival_s"):
        full = f"{plain(1 / row['arrival_s'])} frames/s, the rate that is asked"
    rate = "that throughput" if sustained else full
    board = f"{plain(figures['board_power_w'], 3)} W with the board's idle"
    yield f"power {plain(figures['power_w'], 3)} W at {rate}; {board}"
    yield from draws_lines(row, picked["certainty"], demands)
    yield f"plan: {picked['plan']}"


def _shapes_lines(picked: Row) -> Shown:
    """Yield placements of several shapes, and where their plans are."""
    row = picked["configuration"]
    yield combination_table([row])
    yield ""
    yield f"power {plain(picked['power_w'], 3)} W during a request"
    yield from shapes_draws_lines(row)
    yield from (f"plan of {name}: {path}" for name, path in picked["plans"].items())


def picked_table(row: Row, objectives: Sequence[str], demands: Row) -> TextTable:
    """Return a table of what was picked, with the figures by which it meets the demands."""
    from parapipe.api.checked import medians_of

    if row["several"]:
        return several_table([row])
    medians = frozenset() if demands["confidence"] is None else medians_of([row])
    return front_table([row], objectives, medians)


def draws_lines(row: Row, sure: Row | None, demands: Row) -> Iterator[str]:
    """Say what draws say of what was picked, and warn if most of them miss the demands."""
    yield from outside_lines(row)
    if sure:
        yield certainty_text(sure, demands["minimise"])
    yield from warning(sure, demands)


def warning(sure: Row | None, demands: Row) -> Iterator[str]:
    """Warn of a choice by the stated costs that misses the demands in half of the draws or more."""
    if sure and demands["confidence"] is None and sure["keeps"] <= MOST:
        yield (
            "warning: the demands are met by the stated costs, but missed in "
            f"{1 - sure['keeps']:.0%} of the draws; --confidence 0.9 picks what meets them in 90%"
        )


def _board_lines(picks: Sequence[Row], demands: Row) -> Shown:
    """Yield a table of the picked, and what stands in the way where nothing is."""
    from parapipe.api.checked import model_title

    columns: Columns = {
        "model": lambda each: model_title(each["result"]["model"]),
        "platform": lambda each: each["result"]["platform"],
        "options": lambda each: each["result"]["options"],
        "id": lambda each: each["picked"]["configuration"]["id"],
        "stages…": lambda each: each["picked"]["configuration"]["drawing"],
        **short_columns(lambda each: each["picked"]["configuration"] | each["picked"]["figures"]),
        " W": lambda each: plain(each["picked"]["figures"]["power_w"], 3),
    }
    if picked := [each for each in picks if each["picked"]]:
        yield text_table(columns, picked)
    for each in picks:
        if each["missed"]:
            yield f"{each['result']['name']}: {each['missed']}"
        sure = each["picked"] and each["picked"]["certainty"]
        yield from (f"{each['result']['name']}: {line}" for line in warning(sure, demands))


def certainty_text(sure: Row, least: str) -> str:
    """Say how often it keeps the demands, how often it is the best, and what another would save."""
    text = f"in draws of the costs: demands met in {sure['keeps']:.0%}"
    if sure["regret_mean"] is None:
        return f"{text}; no configuration meets them in any"
    best = "highest throughput" if least == "throughput" else f"least {least}"
    if not sure["regret_mean"]:
        return f"{text}, {best} of all that meet them in {sure['best']:.0%}: no loss in any draw"
    mean, most = (f"{plain(100 * sure[key], 2)} %" for key in ("regret_mean", "regret_most"))
    return (
        f"{text}, {best} of all that meet them in {sure['best']:.0%};\n"
        f"  beside the best of each draw: {mean} worse on average, "
        f"at most {most} worse in nine of ten"
    )
