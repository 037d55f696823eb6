"""Options that say what a configuration must keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from parapipe.cli.quantities import JOULES, SECONDS, WATTS, Quantity

Command = TypeVar("Command", bound=Callable[..., Any])
MINIMISE = ("latency", "period", "energy", "power")


def demand_options(command: Command) -> Command:
    """Add --min-fps, --max-latency, --max-energy, --max-power, --board and --sustained."""
    fps = click.option(
        "--min-fps",
        "min_throughput_fps",
        type=Quantity({"": 1.0, "fps": 1.0}, "8"),
        metavar="FPS",
        help="Frames per second, at least.",
    )
    latency = click.option(
        "--max-latency",
        "max_latency_s",
        type=Quantity(SECONDS, "150ms"),
        metavar="TIME",
        help="Time of one frame through all stages, at most, as in 150ms.",
    )
    energy = click.option(
        "--max-energy",
        "max_energy_j",
        type=Quantity(JOULES, "120mJ"),
        metavar="ENERGY",
        help="Joules per frame, at most, as in 120mJ.",
    )
    power = click.option(
        "--max-power",
        "max_power_w",
        type=Quantity(WATTS, "4W"),
        metavar="POWER",
        help="Watts at full throughput, at most, as in 4W.",
    )
    board = click.option(
        "--board",
        is_flag=True,
        default=None,
        help="Count the board's idle power in energy and power.",
    )
    sustained = click.option(
        "--sustained",
        is_flag=True,
        default=None,
        help="Throughput, energy and power at the rate that can be sustained (`sust. fps`), not "
        "at one frame per longest stage.",
    )
    return fps(latency(energy(power(board(sustained(command))))))


def demands_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those demands that were given, as arguments of the API."""
    return {name: value for name, value in options.items() if value is not None}
