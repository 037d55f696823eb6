"""`parapipe pick`: the configuration that keeps what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from parapipe.cli.front_table import front_table
from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import Columns, Row, Shown, print_document, text_table
from parapipe.cli.several_table import several_table
from parapipe.cli.verb_options import DEMANDS, VerbCommand, options
from parapipe.digits import plain


@click.command(cls=VerbCommand)
@click.argument("directory", type=FILE)
@options("pick", *DEMANDS, "minimise")
@json_option
def command(*, directory: Path, as_json: bool, **demands: Any) -> None:  # noqa: ANN401 - click checks
    """Pick the configuration in DIRECTORY, which map wrote, that meets all demands.

    If there is none, says which demands are missed and by how much. In a folder that sweep wrote,
    picks one for each model on each platform, the best platform first.
    """
    import parapipe
    from parapipe.api.stored_sweep import is_sweep

    if is_sweep(directory):
        found = [each.to_json() for each in parapipe.load_sweep(directory).pick(**demands)]
        print_document(found, _boards, as_json=as_json)
        return
    front = parapipe.load_front(directory)
    picked = parapipe.pick(front, **demands).to_json()
    objectives = front.document.options.objectives
    print_document(picked, lambda made: _text(made, objectives, demands), as_json=as_json)


def _text(picked: Row, objectives: Sequence[str], demands: Row) -> Shown:
    sustained = demands["sustained"]
    row = picked["configuration"]
    yield several_table([row]) if row["several"] else front_table([row], objectives)
    yield ""
    figures = picked["figures"]
    if sustained:
        fps, energy_mj = figures["throughput_fps"], figures["energy_j"] * 1e3
        frame = "pattern" if row["several"] else "frame"
        yield f"sustained: {plain(fps)} {frame}s/s at {plain(energy_mj)} mJ per {frame}"
    full = "the rates that are asked" if row["several"] else "full throughput"
    rate = "that throughput" if sustained else full
    board = f"{plain(figures['board_power_w'], 3)} W with the board's idle"
    yield f"power {plain(figures['power_w'], 3)} W at {rate}; {board}"
    if sure := picked["certainty"]:
        yield certainty_text(sure, demands["minimise"])
    yield f"plan: {picked['plan']}"


def _boards(found: Sequence[Row]) -> Shown:
    """Yield a table of the picked, and what stands in the way where nothing is."""
    from parapipe.api.checked import model_title

    columns: Columns = {
        "model": lambda each: model_title(each["result"]["model"]),
        "platform": lambda each: each["result"]["platform"],
        "options": lambda each: each["result"]["options"],
        "id": lambda each: each["picked"]["configuration"]["id"],
        "stages…": lambda each: each["picked"]["configuration"]["drawing"],
        " ms": lambda each: plain(each["picked"]["configuration"]["latency_s"] * 1e3),
        " fps": lambda each: plain(each["picked"]["figures"]["throughput_fps"]),
        " mJ": lambda each: plain(each["picked"]["figures"]["energy_j"] * 1e3),
        " W": lambda each: plain(each["picked"]["figures"]["power_w"], 3),
    }
    if made := [each for each in found if each["picked"]]:
        yield text_table(columns, made)
    for each in found:
        if each["missed"]:
            yield f"{each['result']['name']}: {each['missed']}"


def certainty_text(sure: Row, least: str) -> str:
    """Say how often it keeps the demands, how often it is the best, and what another would save."""
    text = f"in draws of the costs: demands met in {sure['keeps']:.0%}"
    if sure["regret_mean"] is None:
        return f"{text}; no configuration meets them in any"
    best = "highest throughput" if least == "throughput" else f"least {least}"
    mean, most = (_percent(sure[key]) for key in ("regret_mean", "regret_most"))
    return (
        f"{text}, {best} of all that meet them in {sure['best']:.0%};\n"
        f"  beside the best of each draw: {mean} worse on average, "
        f"at most {most} worse in nine of ten"
    )


def _percent(share: float) -> str:
    return f"{plain(100 * share, 2)} %"
