"""`parapipe pick`: the configuration that keeps what is asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from parapipe.cli.demands import MINIMISE, demand_options, demands_given
from parapipe.cli.front_table import front_table
from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_table, print_text


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@demand_options
@click.option(
    "--minimise",
    type=click.Choice(MINIMISE),
    default="latency",
    show_default=True,
    help="Of those that keep all demands, take the one least in this; the least period is the "
    "highest throughput.",
)
@json_option
def command(*, directory: Path, minimise: Any, as_json: bool, **demands: Any) -> None:  # noqa: ANN401 - click checks
    """Pick the configuration that keeps all demands from DIRECTORY, which map wrote.

    If none does, says which demand stands in the way and how far off it is.
    """
    from parapipe import api

    picked = api.pick_configuration(directory, minimise, **demands_given(demands)).to_json()
    if as_json:
        print_json(picked)
        return
    row = picked["configuration"]
    print_table(front_table([row]))
    figures = picked["figures"]
    power_w, board_w = figures["power_w"], figures["board_power_w"]
    print_text("")
    if demands["sustained"]:
        fps, energy_mj = figures["throughput_fps"], figures["energy_j"] * 1e3
        print_text(f"sustained: {fps:.4g} frames/s at {energy_mj:.4g} mJ per frame")
    rate = "that throughput" if demands["sustained"] else "full throughput"
    print_text(f"power {power_w:.3g} W at {rate}; {board_w:.3g} W with the board's idle")
    print_text(f"plan: {picked['plan']}")
