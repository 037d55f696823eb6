"""Draws the pictures of concepts.md: python docs/pictures.py."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import parapipe
from parapipe import ParetoFront

FOLDER = Path(__file__).with_name("images")
SIZES = {
    "front": (8.0, 4.6),
    "operator-parallelism": (9.0, 2.6),
    "both": (9.0, 2.8),
    "network": (9.0, 3.4),
}


def draw(front: ParetoFront) -> None:
    """Draw each and keep it."""
    FOLDER.mkdir(exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "parapipe"  # the same picture, the same bytes
    for name, size in SIZES.items():
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        if name == "front":
            front.plot(ax)
        elif name == "operator-parallelism":
            front["para-only"].plot_gantt(ax)
        elif name == "both":
            front["hybrid-T"].plot_gantt(ax)
        else:
            front["hybrid-T"].plot_network(ax)
        path = FOLDER / f"{name}.svg"
        figure.savefig(path, metadata={"Date": None})
        sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    draw(parapipe.map("zoo:googlenet", "amlogic-a311d"))
