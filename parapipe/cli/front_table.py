"""A Pareto front as a table that is read at a glance; made from the document of front.json."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from parapipe.cli.figure_cells import (
    are_even,
    doubt_cells,
    doubt_marks,
    drawn_cells,
    has_doubt,
    plain_cells,
)
from parapipe.cli.output import Row
from parapipe.cli.table_layout import Column, TextTable

NARROW = 96  # columns below which names stand under the stages
CUT_INSIDE = r"(\[[^]]*?(\d+)…[^]]*\]).*?(\[[^]]*…\2\b[^]]*\])"  # two stages share a subgraph
NOTEWORTHY = 0.005  # by which the sustained period differs from the longest stage


def front_table(configurations: Sequence[Row], *, narrow: bool = False) -> TextTable:
    """Return the table, least latency first.

    A narrow one of 60 columns has names under the stages, and no gaps if there are none.
    """
    rows = sorted(configurations, key=lambda row: (row["latency_s"], row["period_s"]))
    numbers = {title: drawn_cells(rows, title) for title in ("latency\nms", "\nfps")}
    if not narrow and _shows_sustained(rows):
        numbers["sust.\nfps"] = plain_cells([1 / row["sustained_period_s"] for row in rows])
    numbers["mJ per\nframe"] = drawn_cells(rows, "mJ per\nframe")
    if not narrow and all(row["peak_memory_bytes"] for row in rows):
        numbers["peak\nMB"] = plain_cells([row["peak_memory_bytes"] / 1e6 for row in rows])
    if not narrow and rows and all(row.get("quantiles") for row in rows):
        kept = [row["quantiles"] for row in rows]
        share = f"{kept[0]['share'] * 100:g}%"
        numbers[f"{share}\nms"] = plain_cells([each["latency_s"] * 1e3 for each in kept])
        numbers[f"{share}\nfps"] = plain_cells([1 / each["period_s"] for each in kept])
    elif not narrow and all(map(has_doubt, rows)) and are_even(rows):
        numbers["±\n%"] = doubt_cells(rows)
    if not (narrow and all(row["proven"] for row in rows)):
        gaps = ["0" if row["proven"] else f"{row['gap'] * 100:.1f}" for row in rows]
        numbers["gap\n%"] = gaps
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
    for row, *told in zip(rows, *numbers.values(), strict=True):
        names = ", ".join(row["names"])
        drawing = f"{row['drawing']}\n  {names}" if narrow and names else row["drawing"]
        last = [] if narrow else ["\n".join(row["names"])]
        cells.append([row["id"], drawing, *told, _fronts(row), *last])
    return TextTable(columns, cells, ["bold" if row["names"] else None for row in rows])


def _fronts(row: Row) -> str:
    """Mark the fronts that a row is on."""
    stated = "LT" if row["pareto_latency_throughput"] else "LTE" if row["pareto"] else ""
    return f"{stated} R".strip() if row.get("robust") else stated


def _sustains_otherwise(row: Row) -> bool:
    """Tell whether more, or fewer, frames can be sustained than the longest stage says."""
    return bool(abs(row["sustained_period_s"] / row["period_s"] - 1) > NOTEWORTHY)


def _shows_sustained(rows: Sequence[Row]) -> bool:
    """Tell whether a table says what can be sustained.

    Figures at a quantile take its place, and intervals: what is sustained has none.
    """
    robust = all(row.get("quantiles") for row in rows)
    return not robust and are_even(rows) and any(map(_sustains_otherwise, rows))


def _proven(undone: Row, document: Row) -> str:
    """Say what no configuration can be better than, with the gap of the best ones here."""

    def bound(figure: str, text: str) -> str:
        least = min(row[figure] for row in document["configurations"])
        return f"{text} (gap {max(0.0, 1 - undone[figure] / least) * 100:.1f} %)"

    fps = 1 / undone["period_s"] if undone["period_s"] else inf
    below = [bound("latency_s", f"{undone['latency_s'] * 1e3:.4g} ms")]
    if "energy" in document["options"]["objectives"]:
        below.append(bound("energy_j", f"{undone['energy_j'] * 1e3:.4g} mJ per frame"))
    above = bound("period_s", f"{fps:.4g} frames/s")
    in_turn = any(row["kind"] == "interleaved" for row in document["configurations"])
    how = "or" if in_turn else "or, with whole stages,"
    return f"proven: no configuration is below {', '.join(below)} {how} above {above}"


def _energy(options: Row, where: str) -> list[str]:
    """Say how near the front comes to that of all schedules, and what helps if it was missed.

    `where` that holds, if not everywhere.
    """
    asked, reached = options["energy_resolution_asked"], options["energy_resolution"]
    if asked is None:
        return ["energy: of the mapper's own schedules only, the shortest that it finds"]
    wanted = f"asked for: {asked * 100:.2g} % (--energy-resolution)"
    helps = "a longer --time-limit helps"
    if reached is None:
        return ["energy: how close to the lowest is not known", f"{wanted}; {helps}"]
    near = f"{reached * 100:.2g} %"
    line = f"energy: every possible schedule {where}is matched to within {near} in all figures"
    if reached <= asked or near == f"{asked * 100:.2g} %":
        return [f"{line} (--energy-resolution)"]
    why = (
        helps
        if options["energy_timed_out"]
        else "the rest is due to rounding to whole microseconds"
    )
    return [line, f"{wanted}; {why}"]


def marks(document: Row, shown: Sequence[Row]) -> list[str]:
    """Say what the columns and marks of a table of these rows mean."""
    fronts = "front: LT = no row has both less latency and more throughput"
    if "energy" in document["options"]["objectives"]:
        fronts += "; LTE = none with less energy too"
    proven = " or ".join(document["options"]["proves"])
    lines = [fronts, f"gap: a subgraph's schedule is at most this far from optimal, in {proven}"]
    turns = any(row["kind"] == "interleaved" for row in shown)
    others = [row["id"] for row in shown if row["kind"] != "interleaved" and row.get("least")]
    if turns or others:
        whose = ["where processors take turns"] * turns + [f"of {', '.join(others)}"] * bool(others)
        lines.append(f"gap, {' and '.join(whose)}: to the least period, or latency or energy at it")
    if memory := document.get("memory"):
        where = ", ".join(each["name"] for each in memory["memories"])
        lines.append(f"peak: most memory at one moment, weights and all frames under way ({where})")
    if robust := document.get("robust"):
        share = f"{robust['quantile'] * 100:g}"
        lines.append(
            f"{share}%: kept in {share} % of the draws of the costs; R = no row keeps less of all "
            f"figures"
        )
    if all(map(has_doubt, shown)):
        lines += doubt_marks(shown, widths=not robust)
    if _shows_sustained(shown):
        lines.append(
            "sust.: throughput when each processor starts the next frame as soon as it can"
        )
    cuts = (re.search(CUT_INSIDE, row["drawing"]) for row in shown)
    if cut := next(filter(None, cuts), None):
        lines.append(f"{cut[1]} │ {cut[3]}: cut inside subgraph {cut[2]}")
    return lines


def search_notes(document: Row) -> list[str]:
    """Say what the search left out, how near to the best it came, and what there is none of."""
    from parapipe.api.checked import absent_texts

    lines = [*filter(None, [document.get("conversion")])]
    if undone := document.get("unfinished"):
        lines += [f"unfinished: {reason}" for reason in undone["reasons"]]
        lines.append(_proven(undone, document))
    if resolution := document["options"]["resolution"]:
        lines.append(
            f"left out: rows that another one matches to within {resolution * 100:g} % in all "
            "figures (--resolution)"
        )
    if limit := document["options"].get("max_memory_bytes"):
        lines.append(_limit(limit))
    lines += _overfull(document)
    if "energy" in document["options"]["objectives"]:
        points = "at the default points " if document.get("dvfs") else ""
        divided = any(each.get("part_of") for each in document.get("processors", ()))
        whole = "on undivided processors " if divided else ""
        lines += _energy(document["options"], points + whole)
    lines += [_points(name, row) for name, row in (document.get("dvfs") or {}).items()]
    lines += absent_texts(document["absent"])
    return lines


def _limit(limit: float | Row) -> str:
    """Say which limit of memory is kept."""
    most = limit if isinstance(limit, Mapping) else {"": limit}
    told = ", ".join(
        f"{size / 1e6:.4g} MB {name and f'in {name}'}".strip() for name, size in most.items()
    )
    return f"memory: at most {told} (--max-memory); the best that was found, others may fit too"


def _overfull(document: Row) -> Iterator[str]:
    """Say where configurations need more memory than the platform says is free."""
    rows = document["configurations"]
    for m, memory in enumerate((document.get("memory") or {"memories": ()})["memories"]):
        if (free := memory["usable_bytes"]) is None:
            continue
        more = sum(row["memories"][m]["peak_bytes"] > free for row in rows)
        if more:
            size = f"{free / 1e6:.4g} MB"
            yield (
                f"memory: {more} of {len(rows)} configurations need more than the {size} that are "
                f"free in {memory['name']} (--max-memory {memory['name']}={free / 1e6:.10g}MB)"
            )


def _points(name: str, row: Row) -> str:
    """Say which points of a processor were considered, and how long it takes to switch."""
    default, *others = (point["frequency_hz"] / 1e9 for point in row["operating_points"])
    considered = "".join(f", {name}@{ghz:.3g}" for ghz in others)
    told = f"{name}: {default:.3g} GHz{considered}, {len(others) + 1} of {row['listed']} points"
    if row["switching_up_s"] is None or row["switching_down_s"] is None:
        return told
    up_ms, down_ms = row["switching_up_s"] * 1e3, row["switching_down_s"] * 1e3
    return f"{told}; another takes effect in {up_ms:.2g} ms (higher) or {down_ms:.2g} ms (lower)"


def coverage_lines(coverage: Row) -> list[str]:
    """Say how much of the operators' number and time rests on which source."""
    parts = [f"{source} {_both(coverage[source])}" for source in ("measured", "fitted", "nominal")]
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
            f"fitted beyond the range of what was measured: {_both(coverage['extrapolated'])}"
        )
    for key, told in (
        ("unmodelled", "unmodelled operator types, priced by their bytes alone"),
        ("ruled", "operator types priced by the work that rules give them"),
    ):
        if coverage[key]:
            lines.append(f"{told}: {', '.join(coverage[key])}")
    return lines


def noisy_text(noisy: Row, where: str = "") -> str:
    """Say how many times are noisy, and how far the rounds behind them are apart."""
    ends = (f"{noisy[key] * 100:.0f} %" for key in ("least_spread", "most_spread"))
    return (
        f"measured, noisy: {noisy['count']}{f' ({where})' if where else ''}, "
        f"{_percent(noisy['time'])} of the time; rounds spread by "
        f"{' to '.join(dict.fromkeys(ends))}"
    )


def _both(share: Row) -> str:
    return f"{_percent(share['operators'])} ({_percent(share['time'])})"


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share * 100:.0f} %"
