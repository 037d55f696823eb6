"""The page of `benchmarks.doubt_here`: everything that it says follows from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from benchmarks.run_page import rank_correlation
from benchmarks.tables import markdown_table
from parapipe.platform.platform import Platform

if TYPE_CHECKING:
    from benchmarks.doubt_here import Predicted

Row = Mapping[str, Any]
Ran = tuple["Predicted", Sequence[Row]]
SEVERAL_FRAMES = ("pipe-only", "hybrid", "replicated", "interleaved")
LEAST, MOST = 0.8, 0.95  # of measured figures that lie in 90 % intervals
WANTED = 0.9  # rank correlation
DISTURBED = 0.02  # share of a run's time in which threads were without a core
PLURAL = {"latency": "latencies", "period": "periods"}
COVERAGE = (
    *("figure", "kind", "measured", "in their intervals", "median half width"),
    *("median error", "median absolute error", "inside by processor time"),
)
HAND_OVERS = (
    *("network", "segments", "µs more in a segment", "µs to wake up"),
    *("measured, ms", "without hand-overs, ms", "error", "as detected, ms", "error"),
)
RANKS = (
    *("network", "configurations", "predicted, ms", "rank correlation", "rounds with each other"),
    "largest error",
)
RUNS = (
    *("network", "kind", "stages", "latency predicted", "measured", "period predicted"),
    "measured",
)


def inside(ran: Sequence[Ran], figure: str, how: str = "") -> list[tuple[Predicted, float, bool]]:
    """Return each measured latency or period with what was predicted, and if it is in the interval.

    A period is what configurations are measured for that work on several frames at once.

    Parameters
    ----------
    how
        `work_` for figures by processor time.
    """
    found = []
    for each, rows in ran:
        if figure == "latency" or each.kind in SEVERAL_FRAMES:
            low, high = getattr(each, figure)
            taken = [row[f"{how}{figure}_s"] for row in rows]
            found += [(each, taken_s, low <= taken_s <= high) for taken_s in taken]
    return found


def half_width(each: Predicted, figure: str) -> float:
    """Return half the width of an interval, as a share of the figure."""
    low, high = getattr(each, figure)
    return float(high - low) / 2 / float(getattr(each, f"{figure}_s"))


def coverage(ran: Sequence[Ran]) -> Iterator[list[str]]:
    """Yield the rows of the table of intervals."""
    for figure in ("latency", "period"):
        found = inside(ran, figure)
        kinds = dict.fromkeys(each.kind for each, _, _ in found)
        for kind in (*kinds, "all"):
            some = [row for row in found if kind in (row[0].kind, "all")]
            worked = [row for row in inside(ran, figure, "work_") if kind in (row[0].kind, "all")]
            errors = [getattr(each, f"{figure}_s") / taken_s - 1 for each, taken_s, _ in some]
            yield [
                figure,
                kind,
                str(len(some)),
                f"{sum(each[2] for each in some)} ({_share(some):.0%})",
                f"±{100 * median(half_width(each, figure) for each, _, _ in some):.1f} %",
                f"{median(errors):+.1%}",
                f"{median(map(abs, errors)):.1%}",
                f"{_share(worked):.0%}",
            ]


def _share(some: Sequence[tuple[Predicted, float, bool]]) -> float:
    return fmean(each[2] for each in some)


def verdict(ran: Sequence[Ran]) -> str:
    """Say how many figures are in their intervals, and what that means."""
    sentences = []
    for figure in ("latency", "period"):
        found = inside(ran, figure)
        if not found:
            continue
        share = _share(found)
        width = median(half_width(each, figure) for each, _, _ in found)
        promise = "as 90 % intervals promise"
        if share > MOST:
            promise = f"more than {MOST:.0%}: the intervals are too wide"
        elif share < LEAST:
            promise = f"less than {LEAST:.0%}: the intervals are too narrow, or off"
        sentences.append(
            f"{sum(each[2] for each in found)} of {len(found)} measured "
            f"{PLURAL[figure]} ({share:.0%}) lie in their intervals, of median half width "
            f"±{100 * width:.1f} %: {promise}."
        )
    return " ".join(sentences)


def hand_overs(ran: Sequence[Ran]) -> tuple[list[list[str]], str]:
    """Return the table of para-only configurations, and what it shows."""
    rows, errors = [], []
    for each, runs in ran:
        if each.kind == "para-only" and runs:
            taken_s = median(row["latency_s"] for row in runs)
            errors.append((each.free_latency_s / taken_s - 1, each.latency_s / taken_s - 1))
            woken = [row["wake_up_s"] for row in runs if row["wake_up_s"] is not None]
            rows.append([
                each.network,
                str(runs[0]["segments"]),
                f"{1e6 * fmean(row['more_than_operators_s'] for row in runs):.0f}",
                f"{1e6 * fmean(woken):.0f}" if woken else "",
                f"{taken_s * 1e3:.2f}",
                f"{each.free_latency_s * 1e3:.2f}",
                f"{errors[-1][0]:+.1%}",
                f"{each.latency_s * 1e3:.2f}",
                f"{errors[-1][1]:+.1%}",
            ])  # fmt: skip
    if not errors:
        return rows, "No network has a para-only configuration."
    free, known = zip(*errors, strict=True)
    return rows, (
        f"With hand-overs that take no time, predicted latencies of para-only configurations are "
        f"off by {median(free):+.1%} (median; from {min(free):+.1%} to {max(free):+.1%}); with "
        f"hand-overs as detected by {median(known):+.1%} (from {min(known):+.1%} to "
        f"{max(known):+.1%}). The mean absolute error goes from {fmean(map(abs, free)):.1%} to "
        f"{fmean(map(abs, known)):.1%}."
    )


def ranked(ran: Sequence[Ran]) -> tuple[list[list[str]], str]:
    """Return the table of rank correlations within each network, and what it shows."""
    rows, below = [], []
    for network in dict.fromkeys(each.network for each, runs in ran if runs):
        mine = [(each, runs) for each, runs in ran if each.network == network and runs]
        told = [each.latency_s for each, _ in mine]
        taken = [median(row["latency_s"] for row in runs) for _, runs in mine]
        found = rank_correlation(told, taken)
        again = _repeated([runs for _, runs in mine])
        worst = max(
            zip(mine, taken, strict=True), key=lambda row: abs(row[0][0].latency_s / row[1] - 1)
        )
        (each, _), taken_s = worst
        rows.append([
            network,
            str(len(mine)),
            f"{min(told) * 1e3:.2f} to {max(told) * 1e3:.2f}",
            f"{found:.3f}",
            f"{again:.3f}",
            f"{each.stages.replace('│', 'then')} ({each.latency_s / taken_s - 1:+.1%})",
        ])  # fmt: skip
        if found < WANTED:
            below.append(
                f"In {network} it is {found:.2f}; rounds agree with each other to {again:.2f}, and "
                f"the prediction that is off most, by {each.latency_s / taken_s - 1:+.1%}, is of a "
                f"{each.kind} configuration."
            )
    if not rows:
        return rows, "No ranks were measured."
    least = min(float(row[3]) for row in rows)
    head = f"Spearman's correlation is {least:.2f} or more within each network."
    return rows, " ".join([head if not below else "", *below]).strip()


def _repeated(runs: Sequence[Sequence[Row]]) -> float:
    """Return the mean rank correlation of two rounds with each other."""
    rounds = list(zip(*([row["latency_s"] for row in each] for each in runs), strict=False))
    found = [rank_correlation(one, other) for one, other in combinations(rounds, 2)]
    return fmean(found) if found else 1.0


def page(
    *,
    intervals: Sequence[Ran],
    ranks: Sequence[Ran],
    factor: float,
    platforms: Sequence[Platform],
    about: Mapping[str, str],
) -> str:
    """Return the page.

    Parameters
    ----------
    intervals, ranks
        Configurations of both parts, each with its runs.
    factor
        By which the second core is slowed.
    platforms
        The machine as it is, and with that core slowed.
    """
    moved, shown = hand_overs(intervals)
    compared, correlated = ranked(ranks)
    runs = [row for _, rows in intervals for row in rows]
    disturbed = sum(row["waited"] > DISTURBED for row in runs)
    spread = platforms[0].spread
    assert spread
    told = "; ".join(_link(each) for each in platforms)
    return f"""# How sure figures are on this machine

Written by `python -m benchmarks.doubt_here`; `benchmarks/doubt_here.py` says how.

{markdown_table(["machine", ""], list(about.items()))}

Detected: the state of a processor has a spread of {spread.state:.1%}, hand-overs of \
{spread.hand_overs or 0:.0%}. A hand-over takes {told}. In {disturbed} of \
{len(runs)} runs of the first part, threads were without a core for \
more than {DISTURBED:.0%} of their time.

## Intervals

{verdict(intervals)}

{markdown_table(COVERAGE, list(coverage(intervals)))}

## Hand-overs

{shown}

*µs more in a segment*: what its thread works beyond the predicted time of its operators, the mean
of segments. *µs to wake up*: from the end of what another processor makes to the begin on a
processor that waits for it, the median.

{markdown_table(HAND_OVERS, moved)}

## Ranks

A program of higher priority slows the second core by a factor of {factor:.2f}. {correlated}

{markdown_table(RANKS, compared)}

## Every run

Times in milliseconds, the intervals in brackets.

{markdown_table(RUNS, list(every_run(intervals)))}
"""


def every_run(ran: Sequence[Ran]) -> Iterator[list[str]]:
    """Yield the rows of the table of runs."""
    for each, rows in ran:
        cells = [each.network, each.kind, each.stages.replace("│", "then")]
        for figure in ("latency", "period"):
            ends = " to ".join(f"{end * 1e3:.2f}" for end in getattr(each, figure))
            known = f"{getattr(each, f'{figure}_s') * 1e3:.2f} ({ends})"
            taken = ", ".join(f"{row[f'{figure}_s'] * 1e3:.2f}" for row in rows)
            counts = figure == "latency" or each.kind in SEVERAL_FRAMES
            cells += [known, taken] if counts else ["", ""]
        yield cells


def _link(platform: Platform) -> str:
    link = platform.links[0]
    rate = link.bandwidth_bytes_per_s or 0
    return f"{link.overhead_s * 1e6:.0f} µs and {1e12 / rate:.0f} µs a megabyte"
