"""A Pareto front as a table that is read at a glance; made from the document of front.json."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from parapipe.cli.figure_cells import (
    are_even,
    doubt_cells,
    doubt_mark,
    has_doubt,
    interval_cells,
    plain_cells,
    shown_value,
)
from parapipe.cli.output import WIDTH, Column, Row, TextTable
from parapipe.cli.state_lines import state_lines
from parapipe.digits import plain

if TYPE_CHECKING:
    from parapipe.api.checked import FigureEntry

SEPARATOR = "; "
ALONE = "-alone"
NARROW = 96  # columns below which names stand under the stages
SUSTAINED = "sust.\nfps"
PEAK = "peak\nMB"
WIDTHS = "±\n%"
GAP = "gap\n%"
CUT_INSIDE = r"(\[[^]]*?(\d+)…[^]]*\]).*?(\[[^]]*…\2\b[^]]*\])"  # two stages share a subgraph
NOTEWORTHY = 0.005  # by which the sustained period differs from the longest stage


def front_table(
    configurations: Sequence[Row],
    objectives: Sequence[str],
    medians: Collection[str] = frozenset(),
    *,
    narrow: bool = False,
) -> TextTable:
    """Return the table, least latency first.

    Parameters
    ----------
    objectives
        Those of the front.
    medians
        Keys of the figures of which medians of the draws are shown.
    narrow
        For 60 columns: names are under the stages, and there are no gaps if all are 0.
    """
    on_front = "".join(map(_letter, objectives))
    rows = sorted(
        configurations,
        key=lambda row: (shown_value(row, "latency_s", medians), row["latency_s"], row["period_s"]),
    )
    numbers = _number_columns(rows, medians, narrow=narrow)
    columns = [
        Column("id", "fixed"),
        Column("stages [subgraphs]", least=18 if narrow else 22),
        *(Column(title, "number") for title in numbers),
        Column("front", "fixed"),
    ]
    if not narrow:
        longest = max((len(name) for row in rows for name in row["names"]), default=1)
        columns.append(Column("named", least=min(longest, 18)))
    cells = []
    for row, *figures in zip(rows, *numbers.values(), strict=True):
        names = ", ".join(row["names"])
        drawing = f"{row['drawing']}\n  {names}" if narrow and names else row["drawing"]
        last = [] if narrow else ["\n".join(row["names"])]
        cells.append([row["id"], drawing, *figures, _front_marks(row, on_front), *last])
    return TextTable(columns, cells, ["bold" if row["names"] else None for row in rows])


def _number_columns(
    rows: Sequence[Row], medians: Collection[str], *, narrow: bool
) -> Mapping[str, Sequence[str]]:
    """Return the columns of numbers by their titles."""
    from parapipe.api.checked import FIGURES

    numbers = {
        each.column: interval_cells(rows, each, medians)
        if each.drawn
        else plain_cells([each.value(row) * each.scale for row in rows])
        for each in FIGURES
        if each.column and (each.drawn or not (narrow or _is_left_out(each, rows, medians)))
    }
    if not narrow and rows and all(row.get("quantiles") for row in rows):
        quantiles = [row["quantiles"] for row in rows]
        share = f"{quantiles[0]['share'] * 100:g}%"
        numbers[f"{share}\nms"] = plain_cells([each["latency_s"] * 1e3 for each in quantiles])
        numbers[f"{share}\nfps"] = plain_cells([1 / each["period_s"] for each in quantiles])
    elif not narrow and all(map(has_doubt, rows)) and are_even(rows) and not medians:
        numbers[WIDTHS] = doubt_cells(rows)
    if not (narrow and all(row["proven"] for row in rows)):
        gaps = ["0" if row["proven"] else f"{row['gap'] * 100:.1f}" for row in rows]
        numbers[GAP] = gaps
    return numbers


def _front_marks(row: Row, of_all: str) -> str:
    """Mark the fronts that a row is on: `of_all` is the mark of that of all objectives."""
    stated = "LT" if row["pareto_latency_throughput"] else of_all if row["pareto"] else ""
    return f"{stated} R".strip() if row.get("robust") else stated


def _sustains_otherwise(row: Row) -> bool:
    """Tell whether more, or fewer, frames can be sustained than the longest stage says."""
    return bool(abs(row["sustained_period_s"] / row["period_s"] - 1) > NOTEWORTHY)


def _is_left_out(entry: FigureEntry, rows: Sequence[Row], medians: Collection[str]) -> bool:
    """Tell whether a wide table of some rows has no column of a figure without draws."""
    if entry.column == SUSTAINED:
        return not _shows_sustained(rows, medians)
    return not all(row.get(entry.field) for row in rows)


def _shows_sustained(rows: Sequence[Row], medians: Collection[str]) -> bool:
    """Tell whether a table says what can be sustained.

    Figures at a quantile take its place, and intervals: what is sustained has none.
    """
    robust = all(row.get("quantiles") for row in rows)
    return not (robust or medians) and are_even(rows) and any(map(_sustains_otherwise, rows))


def _bounds_text(undone: Row, document: Row) -> str:
    """Say what no configuration can be better than, with the gap of the best ones here."""

    def bound(figure: str, text: str) -> str:
        least = min(row[figure] for row in document["configurations"])
        return f"{text} (gap {max(0.0, 1 - undone[figure] / least) * 100:.1f} %)"

    fps = 1 / undone["period_s"] if undone["period_s"] else inf
    least = [bound("latency_s", f"{plain(undone['latency_s'] * 1e3)} ms")]
    if "energy" in document["options"]["objectives"]:
        least.append(bound("energy_j", f"{plain(undone['energy_j'] * 1e3)} mJ per frame"))
    most = bound("period_s", f"{plain(fps)} frames/s")
    return (
        f"proven: no configuration takes less than {' or '.join(least)}, "
        f"and none reaches more than {most}"
    )


def _energy_lines(options: Row, where: str) -> list[str]:
    """Say how near the front comes to that of all schedules, and what helps if it was missed.

    `where` that holds, if not everywhere.
    """
    requested, reached = options["energy_resolution_asked"], options["energy_resolution"]
    if requested is None:
        return ["energy: compared among the shortest schedules that the mapper finds, not all"]
    wanted = f"asked for: {plain(requested * 100, 2)} % (--energy-resolution)"
    helps = "a longer --time-limit helps"
    if reached is None:
        return ["energy: how far the rows are from the least is not known", f"{wanted}; {helps}"]
    near = f"{plain(reached * 100, 2)} %"
    line = (
        f"energy: for each possible schedule {where}a row is at most {near} worse in every figure"
    )
    if reached <= requested or near == f"{plain(requested * 100, 2)} %":
        return [f"{line} (--energy-resolution)"]
    why = (
        helps
        if options["energy_timed_out"]
        else "the rest is due to rounding to whole microseconds"
    )
    return [line, f"{wanted}; {why}"]


def legend_lines(
    document: Row,
    shown: Sequence[Row],
    medians: Collection[str] = frozenset(),
    *,
    narrow: bool = False,
) -> list[str]:
    """Say what the columns and marks of the table of these rows mean, in at most three lines."""
    lines: list[str] = []
    for mark in _marks(document, shown, medians, [*_number_columns(shown, medians, narrow=narrow)]):
        for i, line in enumerate(lines):
            if len(line) + len(SEPARATOR) + len(mark) <= WIDTH:
                lines[i] = f"{line}{SEPARATOR}{mark}"
                break
        else:
            lines.append(mark)
    return lines


def export_line(rows: Sequence[Row]) -> Iterator[str]:
    """Say which rows can be exported to what as planned, where a processor has a compiler."""
    by_targets: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if (targets := row.get("exports")) is not None:
            by_targets.setdefault(tuple(targets), []).append(row["id"])
    groups = [
        f"{', '.join(ids)} to {' or '.join(targets) or 'none'}"
        for targets, ids in by_targets.items()
    ]
    if groups:
        yield f"export as planned: {'; '.join(groups)}"


def _draw_marks(
    shown: Sequence[Row], medians: Collection[str], titles: Sequence[str]
) -> Iterator[str]:
    if all(map(has_doubt, shown)):
        yield from doubt_mark(shown, medians)
    if WIDTHS in titles:
        yield "±: this near in nine of ten draws"
    if any(row.get("co_run") and has_doubt(row) for row in shown):
        yield "draws: co-runs by the same factor in all"


def _marks(
    document: Row, shown: Sequence[Row], medians: Collection[str], titles: Sequence[str]
) -> Iterator[str]:
    objectives, robust = document["options"]["objectives"], document.get("robust")
    letters = ", ".join(f"{_letter(each)} {each}" for each in objectives)
    front = "front by stated costs: none" if medians else "front: no row is"
    yield f"{front} better in all of {letters}"
    share = f"{robust['quantile'] * 100:g}" if robust else ""
    if robust:
        yield f"R: at {share} %"
    yield from _draw_marks(shown, medians, titles)
    if f"{share}%\nms" in titles:
        yield f"{share}%: kept in {share} %"
    if PEAK in titles and (memory := document.get("memory")):
        yield f"peak: memory ({', '.join(each['name'] for each in memory['memories'])})"
    if GAP in titles:
        of = [*document["options"]["proves"]]
        if any(row["kind"] == "interleaved" or row.get("least") for row in shown):
            of += ["latency", "period"]
        either = " or ".join(filter(None, [", ".join(of[:-1]), *of[-1:]]))
        less = f"{either} may be less by up to this share"
        yield f"gap: {less if of else '0, as each stage has one processor'}"
    if SUSTAINED in titles:
        yield "sust.: can be sustained"
    if any(re.search(CUT_INSIDE, row["drawing"]) for row in shown):
        yield "…: cut inside a subgraph"


def _letter(objective: str) -> str:
    return objective[0].upper()


def search_notes(document: Row) -> list[str]:
    """Say what the search left out, how near to the best it came, and what there is none of."""
    from parapipe.api.checked import absent_texts

    lines = [*filter(None, [document.get("conversion")])]
    if undone := document.get("unfinished"):
        lines += [f"unfinished: {reason}" for reason in undone["reasons"]]
        lines.append(_bounds_text(undone, document))
    if resolution := document["options"]["resolution"]:
        lines.append(
            f"left out: rows that are in no figure more than {resolution * 100:g} % better than "
            "another one (--resolution)"
        )
    lines += state_lines(document)
    if limit := document["options"].get("max_memory_bytes"):
        lines.append(_memory_limit_text(limit))
    if fewest := document["options"].get("max_segments"):
        lines.append(_segment_limit_text(fewest))
    lines += _overfull_lines(document)
    if "energy" in document["options"]["objectives"]:
        points = "at the default points " if document.get("dvfs") else ""
        divided = any(each.get("part_of") for each in document.get("processors", ()))
        undivided = "on undivided processors " if divided else ""
        lines += _energy_lines(document["options"], points + undivided)
    lines += [_points_text(name, row) for name, row in (document.get("dvfs") or {}).items()]
    lines += absent_texts(document["absent"])
    return lines


def _segment_limit_text(limit: int | Mapping[str, int]) -> str:
    """Say which limit of segments is kept."""
    most = limit if isinstance(limit, Mapping) else {"each processor": limit}
    counts = ", ".join(f"{count} on {name}" for name, count in most.items())
    return f"segments: at most {counts} (--max-segments)"


def _memory_limit_text(limit: float | Row) -> str:
    """Say which limit of memory is kept."""
    most = limit if isinstance(limit, Mapping) else {"": limit}
    sizes = ", ".join(
        f"{plain(size / 1e6)} MB {name and f'in {name}'}".strip() for name, size in most.items()
    )
    return f"memory: at most {sizes} (--max-memory); the best that was found, others may fit too"


def _overfull_lines(document: Row) -> Iterator[str]:
    """Say where configurations need more memory than the platform says is free."""
    rows = document["configurations"]
    for m, memory in enumerate((document.get("memory") or {"memories": ()})["memories"]):
        if (free := memory["usable_bytes"]) is None:
            continue
        more = sum(row["memories"][m]["peak_bytes"] > free for row in rows)
        if more:
            size = f"{plain(free / 1e6)} MB"
            yield (
                f"memory: {more} of {len(rows)} configurations need more than the {size} that are "
                f"free in {memory['name']} (--max-memory {memory['name']}={free / 1e6:.10g}MB)"
            )


def _points_text(name: str, row: Row) -> str:
    """Say which points of a processor were considered, and how long it takes to switch."""
    default, *others = (point["frequency_hz"] / 1e9 for point in row["operating_points"])
    considered = "".join(f", {name}@{plain(ghz, 3)}" for ghz in others)
    text = (
        f"{name}: {plain(default, 3)} GHz{considered}, {len(others) + 1} of {row['listed']} points"
    )
    if row["switching_up_s"] is None or row["switching_down_s"] is None:
        return text
    up, down = (plain(row[f"switching_{to}_s"] * 1e3, 2) for to in ("up", "down"))
    return f"{text}; another takes effect in {up} ms (higher) or {down} ms (lower)"


def coverage_lines(coverage: Row) -> list[str]:
    """Say how much of the operators' number and time rests on which source."""
    parts = [
        f"{source} {_shares(coverage[source])}"
        for source in ("measured", "stated", "compiled", "fitted", "nominal")
        if coverage.get(source)
    ]
    processors = ", ".join(
        f"{name} {_percent(share['measured'])}" for name, share in coverage["processors"].items()
    )
    lines = [
        f"operators (and their time): {', '.join(parts)}",
        f"operators measured, by processor: {processors}",
    ]
    if (noisy := coverage["noisy"]) and noisy["count"]:
        where = ", ".join(
            f"{name} {share['noisy']}"
            for name, share in coverage["processors"].items()
            if share["noisy"]
        )
        lines.append(noisy_text(noisy, where))
    if coverage["extrapolated"]["operators"]:
        lines.append(
            f"fitted beyond the range of what was measured: {_shares(coverage['extrapolated'])}"
        )
    for key, text in (
        ("unmodelled", "unmodelled operator types, priced by their bytes alone"),
        ("ruled", "operator types priced by the work that rules give them"),
    ):
        if coverage[key]:
            lines.append(f"{text}: {', '.join(coverage[key])}")
    return lines


def noisy_text(noisy: Row, where: str = "") -> str:
    """Say how many times are noisy, and how far the rounds behind them are apart."""
    ends = (f"{noisy[key] * 100:.0f} %" for key in ("least_spread", "most_spread"))
    return (
        f"measured, noisy: {noisy['count']}{f' ({where})' if where else ''}, "
        f"{_percent(noisy['time'])} of the time; rounds spread by "
        f"{' to '.join(dict.fromkeys(ends))}"
    )


def _shares(share: Row) -> str:
    return f"{_percent(share['operators'])} ({_percent(share['time'])})"


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share * 100:.0f} %"
