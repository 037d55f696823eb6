"""The predicted schedule of a plan: a row for each processor, a frame through all stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from parapipe.figures.palette import IDLE, Look
from parapipe.figures.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 0.66  # of a bar; rows are 1 apart


def plot_gantt(time: Timeline, looks: Mapping[str, Look], ax: Axes) -> None:
    """Draw operators as bars, transfers as lines, and waiting as grey.

    Parameters
    ----------
    looks
        As `palette.looks` gives them, for all processors of the platform.
    ax
        Axes to draw on, in milliseconds.
    """
    rows = _rows(time)
    for index, stage in enumerate(time.stages):
        for name in stage.processors:
            span = (stage.start_s * 1e3, (stage.end_s - stage.start_s) * 1e3)
            ax.broken_barh([span], _band(rows[name]), facecolor=IDLE, zorder=1)
        ax.axvline(stage.start_s * 1e3, color="0.2", linewidth=0.8, zorder=2)
        ax.text(
            stage.start_s * 1e3, -0.64, f" stage {index + 1}", fontsize=8, va="bottom",
            parse_math=False,
        )  # fmt: skip
    for name, row in rows.items():
        spans = [
            (1e3 * (time.begin_s(bar.stage) + bar.start_s), 1e3 * (bar.end_s - bar.start_s))
            for bar in time.bars
            if bar.processor == name
        ]
        if spans:
            ax.broken_barh(
                spans, _band(row), facecolor=looks[name].colour, hatch=looks[name].hatch,
                edgecolor="white", linewidth=0.4, zorder=3,
            )  # fmt: skip
    _passages(time, rows, ax)
    ax.set_yticks(list(rows.values()), list(rows), parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, time.stages[-1].end_s * 1e3)
    ax.set_xlabel("time from the frame's entry (ms)")
    ax.set_ylabel("processor")


def _rows(time: Timeline) -> dict[str, int]:
    """Return rows of processors, stage by stage, then of links that transfers keep busy."""
    used = [name for stage in time.stages for name in stage.processors]
    links = [passage.occupies for passage in time.passages if passage.occupies is not None]
    return {name: row for row, name in enumerate(dict.fromkeys([*used, *links]))}


def _band(row: int) -> tuple[float, float]:
    return row - HEIGHT / 2, HEIGHT


def _passages(time: Timeline, rows: Mapping[str, int], ax: Axes) -> None:
    for passage in time.passages:
        begin_s = time.begin_s(passage.stage)
        start, end = 1e3 * (begin_s + passage.start_s), 1e3 * (begin_s + passage.end_s)
        source, target = rows[passage.source], rows[passage.target]
        down = HEIGHT / 2 if target > source else -HEIGHT / 2
        ax.plot(
            [start, end], [source + down, target - down], color="0.25",
            linewidth=0.6 if passage.within else 1.1, zorder=2,
        )  # fmt: skip
        if passage.occupies is not None:
            ax.broken_barh(
                [(start, end - start)], _band(rows[passage.occupies]), facecolor="0.35", zorder=4
            )
