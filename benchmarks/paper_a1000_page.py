"""The A1000's part of docs/paper.md: its tables, and the reasons of what differs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean, mean

from benchmarks import paper_published as published
from benchmarks.paper_a1000 import (
    METHODS,
    WAYS,
    Beyond,
    Limits,
    Row,
    change,
    changes_by_network,
    priced,
    stages_line,
)
from benchmarks.paper_page import percent
from benchmarks.paper_published import A1000_RATIOS, A1000_STAGES, Ratio
from benchmarks.paper_verdicts import Judgement, Verdict
from benchmarks.stated_a1000 import RULES
from benchmarks.tables import markdown_table

NEAR = 0.05
"""Percentage points, as a share, within which a ratio counts as the paper's."""
_UNDER_A_MINUTE = "< 60"


def networks_table(limits: Sequence[Limits]) -> str:
    """Return Table I of the source's networks beside the paper's."""
    cells = [
        [
            each.network, each.operators, paper.operators, each.subgraphs, paper.subgraphs,
            each.parallelism, paper.parallelism, each.largest,
        ]
        for each in limits
        for paper in [published.NETWORKS[published.A1000_NETWORKS[each.network]]]
    ]  # fmt: skip
    head = [
        "network", "operators", "the paper's", "subgraphs", "the paper's", "parallelism",
        "the paper's", "largest subgraph",
    ]  # fmt: skip
    return markdown_table(head, cells)


def largest(limits: Sequence[Limits], network: str) -> int:
    """Return the operators of a network's largest subgraph."""
    return next(each.largest for each in limits if each.network == network)


def over_heuristics(rows: Sequence[Row]) -> str:
    """Return by which share para-only is below the better of HEFT and CPOP, by the source."""
    ours = change([row for row in rows if row.rule == RULES[0]], A1000_RATIOS[0])
    return percent(None if ours is None else -ours)


def method_cells(rows: Sequence[Row], network: str, figure: str) -> list[str]:
    """Return a network's row of Fig. 11: a figure of every method over that of para-only."""
    own = {row.method: row for row in rows if row.network == network}
    base = own["para-only"]
    shown = [
        (row.latency_s / base.latency_s if figure == "latency" else base.period_s / row.period_s)
        if (row := own.get(method))
        else None
        for method in METHODS
    ]
    return [
        network, figure, f"{1e3 * base.latency_s:.4g}",
        *("none" if ratio is None else f"{ratio:.3f}" for ratio in shown),
    ]  # fmt: skip


def methods_table(rows: Sequence[Row]) -> str:
    """Return Fig. 11 as a table, with geometric means of the networks that have a method."""
    own = [row for row in rows if row.rule == RULES[0]]
    networks = list(dict.fromkeys(row.network for row in own))
    cells = [
        method_cells(own, network, figure)
        for figure in ("latency", "throughput")
        for network in networks
    ]
    for figure in ("latency", "throughput"):
        columns = zip(*(row[3:] for row in cells if row[1] == figure), strict=True)
        means = [geometric_mean(float(x) for x in column if x != "none") for column in columns]
        cells.append(["**mean**", figure, "", *(f"{each:.3f}" for each in means)])
    return markdown_table(["network", "", "para-only, ms", *METHODS], cells)


def ratios_table(rows: Sequence[Row]) -> str:
    """Return each published change beside ours by every rule for hand-overs."""
    cells = []
    for ratio in A1000_RATIOS:
        ours = [change([row for row in rows if row.rule == rule], ratio) for rule in RULES]
        assert ours[0] is not None
        near = "yes" if abs(ours[0] - ratio.change) <= NEAR else "no"
        cells.append([_ratio_text(ratio), percent(ratio.change), *map(percent, ours), near])
    head = ["", "the paper", *(f"ours, {rule}" for rule in RULES), "within 5 points"]
    return markdown_table(head, cells)


def _ratio_text(ratio: Ratio) -> str:
    which = f", {ratio.network} for PETR" if ratio.network else ", mean"
    return f"{ratio.figure}, {ratio.method} against {ratio.base}{which}"


def heuristics_table(rows: Sequence[Row], limits: Sequence[Limits]) -> str:
    """Return by network what para-only and hybrid-T gain, and what they could at most."""
    own = [row for row in rows if row.rule == RULES[0]]
    gains = [-x for x in changes_by_network(own, A1000_RATIOS[0]).values()]
    hybrids = list(changes_by_network(own, A1000_RATIOS[2]).values())
    bounds = most_gains(rows, limits)
    columns = (gains, bounds, hybrids)
    proven = ["yes" if each.all_proven else "no" for each in limits]
    names = [each.network for each in limits]
    cells = [
        [name, *map(percent, shares), sure]
        for name, sure, *shares in zip(names, proven, *columns, strict=True)
    ]
    cells.append(["**mean**", *(percent(mean(column)) for column in columns), ""])
    head = ["network", "para-only less by", "at most", "hybrid-T more by", "proven"]
    return markdown_table(head, cells)


def most_gains(rows: Sequence[Row], limits: Sequence[Limits]) -> list[float]:
    """Return by which share any one-stage plan may be below the better of HEFT and CPOP."""
    own = [row for row in rows if row.rule == RULES[0]]
    return [
        1
        - each.bound_s
        / min(
            row.latency_s
            for row in own
            if row.network == each.network and row.method in {"HEFT", "CPOP"}
        )
        for each in limits
    ]


def stages_table(rows: Sequence[Row]) -> str:
    """Return Table II: the paper's stages, ours, and what the paper's take with these times."""
    own = {(row.network, row.method): row for row in rows if row.rule == RULES[0]}
    cells = []
    for (network, method), stages in A1000_STAGES.items():
        ours, base = own[network, method], own[network, "para-only"]
        same = published.A1000_NETWORKS[network] in _SAME_SUBGRAPHS
        taken = "other subgraphs"
        if same:
            plan = priced(network, RULES[0], stages)
            taken = "an operator has no time there" if plan is None else _figures(plan, base)
        cells.append(
            [network, method, stages_line(stages), ours.stages, taken, _figures(ours, base)]
        )
    head = ["network", "", "the paper's", "ours", "the paper's here", "ours"]
    return markdown_table(head, cells)


_SAME_SUBGRAPHS = {"googlenet", "inception-v4"}


def _figures(row: Row, base: Row) -> str:
    latency, throughput = row.latency_s / base.latency_s, base.period_s / row.period_s
    return f"latency × {latency:.2f}, throughput × {throughput:.2f}"


def solving_table(limits: Sequence[Limits]) -> str:
    """Return Table III: seconds of the paper's programme, and of all our problems."""
    cells = [
        [
            each.network, _paper_seconds(published.A1000_NETWORKS[each.network]),
            f"{each.solved_s:.1f}", f"{each.longest_s:.2f}", each.problems, each.proven,
        ]
        for each in limits
    ]  # fmt: skip
    head = ["network", "the paper, s", "ours in all, s", "longest, s", "problems", "proven"]
    return markdown_table(head, cells)


def _paper_seconds(model: str) -> str:
    seconds = published.SOLVE_S.get(model)
    return _UNDER_A_MINUTE if seconds is None else f"{seconds:.0f}"


def beyond_table(found: Sequence[Beyond]) -> str:
    """Return least latency and most throughput by way, over those of stages on two DSPs."""
    cells = []
    for figure in ("latency", "throughput"):
        by_way: dict[str, list[float]] = {way: [] for way in WAYS}
        for network in dict.fromkeys(each.network for each in found):
            own = {each.way: each for each in found if each.network == network}
            shares = {way: _gain(each, own["stages"], figure) for way, each in own.items()}
            for way, share in shares.items():
                by_way[way].append(share)
            texts = [percent(shares[way]) if way in shares else "not tried" for way in WAYS]
            cells.append([network, figure, *texts])
        cells.append(["**mean**", figure, *(percent(mean(each)) for each in by_way.values())])
    return markdown_table(["network", "", *WAYS], cells)


def _gain(each: Beyond, base: Beyond, figure: str) -> float:
    if figure == "latency":
        return each.latency_s / base.latency_s - 1
    return base.period_s / each.period_s - 1


def verdicts(rows: Sequence[Row], limits: Sequence[Limits]) -> list[Verdict]:
    """Judge each published change: equal within five points."""
    own = [row for row in rows if row.rule == RULES[0]]
    found = []
    for ratio in A1000_RATIOS:
        ours = change(own, ratio)
        assert ours is not None
        better = ours < ratio.change if ratio.figure == "latency" else ours > ratio.change
        judgement: Judgement = "better" if better else "worse"
        if abs(ours - ratio.change) <= NEAR:
            judgement = "equal"
        found.append(
            Verdict(
                f"A1000, {_ratio_text(ratio)}", percent(ratio.change), percent(ours),
                judgement, reason(ratio, rows, limits),
            )
        )  # fmt: skip
    return found


def reason(ratio: Ratio, rows: Sequence[Row], limits: Sequence[Limits]) -> str:
    """Return what was measured that explains a difference."""
    if ratio.base == "HEFT & CPOP":
        return (
            f"no plan of one stage is more than {percent(mean(most_gains(rows, limits)))[1:]} "
            "shorter than our HEFT and CPOP with these times, which is proven: the paper's "
            "heuristics or its times were others"
        )
    if not ratio.network:
        proven = sum(each.all_proven for each in limits)
        return (
            "a hybrid has one stage with the NPU and others of DSPs, which take many times as long "
            f"for a convolution. All cuts are compared, and in {proven} of {len(limits)} networks "
            "all schedules are proven shortest: the paper's times were others"
        )
    return "bev_conv stands in for PETR, which the source does not have"
