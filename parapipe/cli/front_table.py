"""A Pareto front as a table that is read at a glance; made from the document of front.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import floor, inf, log10
from typing import TYPE_CHECKING

from parapipe.cli.output import Row, plain_table

if TYPE_CHECKING:
    from rich.table import Table

MOST_ROWS = 12
NARROW = 96  # columns below which names stand under the stages
MOST_DECIMALS = 6
CUT_INSIDE = r"(\[[^]]*?(\d+)…\]) │ [^[]*(\[…[^]]*\])"  # two stages that share a subgraph
NOTEWORTHY = 0.005  # by which the sustained period differs from the longest stage


def _less(gain: float) -> str:
    share = 100 - 100 / gain
    if share < 0.05:
        return "as much as"
    return f"{share:.{0 if share >= 1 else 1}f} % less than"


# What is to be least, how a row's figure reads, and how a gain over another row does.
_LEAST: Mapping[str, tuple[str, Callable[[Row], str], Callable[[float], str]]] = {
    "latency": (
        "latency_s",
        lambda row: f"{row['latency_s'] * 1e3:.4g} ms",
        lambda gain: f"{gain:.2f} times as fast as",
    ),
    "throughput": (
        "period_s",
        lambda row: f"{row['throughput_fps']:.4g} frames/s",
        lambda gain: f"{gain:.2f} times that of",
    ),
    "memory": (
        "peak_memory_bytes",
        lambda row: f"{row['peak_memory_bytes'] / 1e6:.4g} MB",
        _less,
    ),
    "energy": (
        "energy_j",
        lambda row: f"{row['energy_j'] * 1e3:.4g} mJ per frame",
        _less,
    ),
}


def headline(configurations: Sequence[Row], objectives: Sequence[str]) -> list[Row]:
    """Return what answers first: the best in each objective, then what has a name.

    At most `MOST_ROWS`; processors alone are left out first, the slowest of them before others.
    """
    named = [row for row in configurations if row["names"]]
    alone = [row for row in named if all(name.endswith("-alone") for name in row["names"])]
    first = [best(configurations, objective) for objective in objectives]
    first += [row for row in named if row not in alone]
    first += sorted(alone, key=lambda row: row["latency_s"])
    shown = {row["id"]: row for row in first}
    return list(shown.values())[:MOST_ROWS]


def best(rows: Sequence[Row], objective: str) -> Row:
    """Return the row that is best in latency, throughput or energy; of equal ones the first."""
    return min(rows, key=lambda row: row[_LEAST[objective][0]])


def answer(document: Row) -> str:
    """Say in one sentence what to take for each objective, and what it gains over one processor."""
    rows = document["configurations"]
    alone = [row for row in rows if row["kind"] == "sequential"]
    parts = []
    for objective in document["options"]["objectives"]:
        row, (key, shown, gain) = best(rows, objective), _LEAST[objective]
        other = best(alone, objective) if alone else row
        processor = other["stages"][0]["processors"][0]["name"]
        if row["kind"] == "sequential":
            told = f", {processor} alone"
        else:
            told = f", {gain(other[key] / row[key])} {processor} alone" if alone else ""
        parts.append(f"for {objective} {row['id']} ({shown(row)}{told})")
    return " ".join([f"Take {', '.join(parts)}.", *_robust_answer(document)])


def _robust_answer(document: Row) -> Iterator[str]:
    """Say what to take at the quantile of the draws that was asked for, and what that gains."""
    if not (robust := document.get("robust")):
        return
    rows, parts = document["configurations"], []
    for name, objective, word in (
        ("robust-L", "latency", "less"),
        ("robust-T", "throughput", "more"),
    ):
        row, nominal = next(row for row in rows if name in row["names"]), best(rows, objective)
        key, shown, _ = _LEAST[objective]
        kept = {**row["quantiles"], "throughput_fps": 1 / row["quantiles"]["period_s"]}
        ratio = nominal["quantiles"][key] / kept[key]
        share = 1 - 1 / ratio if word == "less" else ratio - 1
        gain = f", {share:.1%} {word} than {nominal['id']}" if row is not nominal else ""
        parts.append(f"for {objective} {row['id']} ({shown(kept)}{gain})")
    yield f"In {robust['quantile'] * 100:g} % of the draws: {', '.join(parts)}."


def front_table(configurations: Sequence[Row], *, narrow: bool = False) -> Table:
    """Return the table, least latency first.

    A narrow one of 60 columns has names under the stages, and no gaps if there are none.
    """
    rows = sorted(configurations, key=lambda row: (row["latency_s"], row["period_s"]))
    numbers = {
        "latency\nms": _figures([row["latency_s"] * 1e3 for row in rows]),
        "\nfps": _figures([row["throughput_fps"] for row in rows]),
    }
    if not narrow and _shows_sustained(rows):
        numbers["sust.\nfps"] = _figures([1 / row["sustained_period_s"] for row in rows])
    numbers["mJ per\nframe"] = _figures([row["energy_j"] * 1e3 for row in rows])
    if not narrow and all(row["peak_memory_bytes"] for row in rows):
        numbers["peak\nMB"] = _figures([row["peak_memory_bytes"] / 1e6 for row in rows])
    if not narrow and rows and all(row.get("quantiles") for row in rows):
        kept = [row["quantiles"] for row in rows]
        share = f"{kept[0]['share'] * 100:g}%"
        numbers[f"{share}\nms"] = _figures([each["latency_s"] * 1e3 for each in kept])
        numbers[f"{share}\nfps"] = _figures([1 / each["period_s"] for each in kept])
    elif not narrow and all(row.get("intervals") for row in rows):
        numbers["±\n%"] = [f"{100 * _doubt(row):.0f}" for row in rows]
    if not (narrow and all(row["proven"] for row in rows)):
        gaps = ["0" if row["proven"] else f"{row['gap'] * 100:.1f}" for row in rows]
        numbers["gap\n%"] = gaps
    table = plain_table()
    table.add_column("id", no_wrap=True)
    table.add_column("stages [subgraphs]", min_width=18 if narrow else 22, overflow="fold")
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("front", no_wrap=True)
    if not narrow:
        longest = max((len(name) for row in rows for name in row["names"]), default=1)
        table.add_column("named", min_width=min(longest, 18), overflow="fold")
    for row, *told in zip(rows, *numbers.values(), strict=True):
        names = ", ".join(row["names"])
        table.add_row(
            row["id"],
            f"{row['drawing']}\n  {names}" if narrow and names else row["drawing"],
            *told,
            _fronts(row),
            *([] if narrow else ["\n".join(row["names"])]),
            style="bold" if row["names"] else None,
        )
    return table


def _fronts(row: Row) -> str:
    """Mark the fronts that a row is on."""
    stated = "LT" if row["pareto_latency_throughput"] else "LTE" if row["pareto"] else ""
    return f"{stated} R".strip() if row.get("robust") else stated


def _doubt(row: Row) -> float:
    """Return half the width of the widest interval, as a share of its figure."""
    ends: Iterable[tuple[str, Sequence[float]]] = row["intervals"].items()
    return max((high - low) / 2 / float(row[figure]) for figure, (low, high) in ends)


def _sustains_otherwise(row: Row) -> bool:
    """Tell whether more, or fewer, frames can be sustained than the longest stage says."""
    return bool(abs(row["sustained_period_s"] / row["period_s"] - 1) > NOTEWORTHY)


def _shows_sustained(rows: Sequence[Row]) -> bool:
    """Tell whether a table says what can be sustained; figures at a quantile take its place."""
    robust = all(row.get("quantiles") for row in rows)
    return not robust and any(_sustains_otherwise(row) for row in rows)


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


def _figures(values: Sequence[float]) -> list[str]:
    """Write a column with as many decimals as give its least value three digits, at least one."""
    least = min(values, default=1.0)
    decimals = min(max(1, 2 - floor(log10(least))), MOST_DECIMALS) if least > 0 else 1
    return [f"{value:.{decimals}f}" for value in values]


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
    elif all(row.get("intervals") for row in shown):
        lines.append(
            "±: latency, fps and energy each stay this near in nine of ten draws of the costs"
        )
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
    lines += [f"no {kind} configuration: {reason}" for kind, reason in document["absent"].items()]
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
