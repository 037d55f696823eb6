"""The predicted schedule of a plan: a row for each processor, a frame through all stages.

Of an interleaved plan one period is drawn. What a frame does more than a period after its entry is
paler, the more the later. What goes beyond the end of the period is cut there and goes on at the
beginning.
"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from parapipe.figures.palette import IDLE, Looks
from parapipe.figures.timeline import Timeline, timeline
from parapipe.plan.schema import Plan

HEIGHT = 0.66  # of a bar; rows are 1 apart
PALEST = 0.3  # opacity of the bars of the oldest frame


def plot_gantt(plan: Plan, looks: Looks, ax: Axes) -> None:
    """Draw operators as bars, transfers as lines, and waiting as grey, in milliseconds."""
    time = timeline(plan)
    rows = _row_numbers(time, looks)
    end_s = time.period_s or time.stages[-1].end_s
    for index, stage in enumerate(time.stages):
        for name in stage.processors:
            left, right = stage.start_s * 1e3, min(stage.end_s, end_s) * 1e3
            ax.broken_barh([(left, right - left)], _band(rows[name]), facecolor=IDLE, zorder=1)
        if time.period_s is None:
            ax.axvline(stage.start_s * 1e3, color="0.2", linewidth=0.8, zorder=2)
            ax.text(
                stage.start_s * 1e3, -0.64, f" stage {index + 1}", fontsize=8, va="bottom",
                parse_math=False,
            )  # fmt: skip
    _plot_bars(time, rows, looks, ax)
    _plot_transfers(time, rows, ax)
    ax.set_yticks(range(len(rows)), _row_labels(plan, rows), parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, end_s * 1e3)
    ax.set_xlabel(
        "time from the frame's entry (ms)" if time.period_s is None
        else "one period; paler: frames that entered in earlier periods (ms)"
    )  # fmt: skip
    ax.set_ylabel("processor")


def _row_numbers(time: Timeline, looks: Looks) -> dict[str, int]:
    """Return rows of processors as the platform orders them, then of links that are kept busy."""
    names = {name for stage in time.stages for name in stage.processors}
    used = [name for name in looks if name in names]
    links = [name for passage in time.passages if (name := passage.transfer.occupies) is not None]
    return {name: row for row, name in enumerate(dict.fromkeys([*used, *links]))}


def _row_labels(plan: Plan, rows: Mapping[str, int]) -> list[str]:
    """Name the rows: that of a frame on processors in turn, one of which works on it, by all."""
    turns = {p.name: (p.name, *(p.replicas or ())) for s in plan.stages for p in s.processors}
    return ["/".join(turns.get(name, (name,))) for name in rows]


def _band(row: int) -> tuple[float, float]:
    return row - HEIGHT / 2, HEIGHT


def _plot_bars(time: Timeline, rows: Mapping[str, int], looks: Looks, ax: Axes) -> None:
    spans_of: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for bar in time.bars:
        begin_s = time.begin_s(bar.stage)
        for start_s, end_s, turn in time.in_periods(begin_s + bar.start_s, begin_s + bar.end_s):
            spans_of.setdefault((bar.processor, turn), []).append(
                (1e3 * start_s, 1e3 * (end_s - start_s))
            )
    oldest = max(turn for _, turn in spans_of)
    for (name, turn), spans in spans_of.items():
        ax.broken_barh(
            spans, _band(rows[name]), facecolor=looks[name].colour, hatch=looks[name].hatch,
            edgecolor="white", linewidth=0.4, zorder=3,
            alpha=1 - (1 - PALEST) * turn / oldest if turn else None,
        )  # fmt: skip


def _plot_transfers(time: Timeline, rows: Mapping[str, int], ax: Axes) -> None:
    for passage in time.passages:
        begin_s, transfer = time.begin_s(passage.stage), passage.transfer
        source, target = rows[transfer.source], rows[transfer.target]
        down = HEIGHT / 2 if target > source else -HEIGHT / 2
        top, rise = source + down, target - source - 2 * down
        elapsed_s = 0.0
        for start_s, end_s, _ in time.in_periods(
            begin_s + passage.start_s, begin_s + passage.end_s
        ):
            heights = [
                top + rise * (share_s / transfer.time_s if transfer.time_s else done)
                for share_s, done in ((elapsed_s, 0), (elapsed_s + end_s - start_s, 1))
            ]
            elapsed_s += end_s - start_s
            ax.plot(
                [1e3 * start_s, 1e3 * end_s], heights, color="0.25",
                linewidth=0.6 if transfer.kind == "within-stage" else 1.1, zorder=2,
            )  # fmt: skip
            if transfer.occupies is not None:
                ax.broken_barh(
                    [(1e3 * start_s, 1e3 * (end_s - start_s))], _band(rows[transfer.occupies]),
                    facecolor="0.35", zorder=4,
                )  # fmt: skip
