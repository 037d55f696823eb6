"""Tables of docs/paper.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean, mean

import parapipe
from benchmarks import granularity
from benchmarks import paper_published as published
from benchmarks.paper_runs import FIGURES, METHODS, Overtaken, Row, Solving
from benchmarks.tables import markdown_table
from parapipe.documents.comparison import METRICS, Errors
from parapipe.graph.partition import partition

NOT_AT_HAND = "not at hand"


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share in per cent with its sign, or that it is not at hand."""
    return NOT_AT_HAND if share is None else f"{100 * share:+.{digits}f} %"


def counts(model: str) -> published.Network:
    """Count a network's operators, subgraphs and parallelism as the paper does."""
    parts = partition(parapipe.load_model(f"zoo:{model}", granularity="onnx"))
    return published.Network(
        sum(len(each.operators) for each in parts.subgraphs),
        len(parts.subgraphs),
        max(each.parallelism for each in parts.subgraphs),
    )


def largest_subgraph(model: str) -> int:
    """Return the operators of a network's largest subgraph."""
    parts = partition(parapipe.load_model(f"zoo:{model}", granularity="onnx"))
    return max(len(each.operators) for each in parts.subgraphs)


def networks_table(counted: Mapping[str, published.Network]) -> str:
    """Return Tables I and III beside the paper's."""
    head = [
        "network", "operators", "the paper's", "subgraphs", "the paper's", "parallelism",
        "the paper's",
    ]  # fmt: skip
    return markdown_table(head, [network_cells(model, ours) for model, ours in counted.items()])


def network_cells(model: str, ours: published.Network) -> list[object]:
    """Return a network's row."""
    paper = published.NETWORKS[model]
    return [
        model, ours.operators, paper.operators, ours.subgraphs, paper.subgraphs,
        ours.parallelism, paper.parallelism,
    ]  # fmt: skip


def estimator_table(errors: Mapping[str, Errors]) -> str:
    """Return the estimator's errors beside the paper's."""
    return markdown_table(
        ["", "parapipe, RMSPE %", "the paper's, RMSPE %"],
        [
            [
                name,
                f"{100 * errors[name].rmspe:.2f}",
                f"{100 * published.ESTIMATOR_RMSPE[name]:.2f}",
            ]
            for name in METRICS
        ],
    )


def methods_table(rows: Sequence[Row], platform: str) -> str:
    """Return latency and throughput of every method on a platform."""
    own = [row for row in rows if row.platform == platform]
    cells = [
        method_cells(own, model, figure)
        for figure in ("ms", "fps")
        for model in dict.fromkeys(row.model for row in own)
    ]
    head = ["network", "", *METHODS]
    return "\n".join(
        [_line(head), _line(["---", "---", *["---:"] * len(METHODS)]), *map(_line, cells)]
    )


def method_cells(rows: Sequence[Row], model: str, figure: str) -> list[str]:
    """Return a network's row in milliseconds ("ms") or frames per second ("fps")."""
    values = {
        row.method: 1e3 * row.latency_s if figure == "ms" else row.throughput_fps
        for row in rows
        if row.model == model
    }
    best = (min if figure == "ms" else max)(values.values())
    shown = {
        name: _bold(f"{x:.4g}" if x < 1e4 else f"{x:.0f}", x == best) for name, x in values.items()
    }
    return [model, figure, *(shown.get(name, "none") for name in METHODS)]


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def method_means(rows: Sequence[Row]) -> str:
    """Return geometric means of latency and throughput, Layer-switched being 1."""
    cells = []
    for platform in dict.fromkeys(row.platform for row in rows):
        one = {r.model: r for r in rows if (r.platform, r.method) == (platform, "Layer-switched")}
        for method in METHODS:
            own = [r for r in rows if (r.platform, r.method) == (platform, method)]
            if own:
                latency = geometric_mean(r.latency_s / one[r.model].latency_s for r in own)
                throughput = geometric_mean(one[r.model].period_s / r.period_s for r in own)
                cells.append([platform, method, len(own), f"{latency:.3f}", f"{throughput:.3f}"])
    return markdown_table(["platform", "method", "networks", "latency", "throughput"], cells)


def heuristics_table(found: Sequence[Overtaken]) -> str:
    """Return what is gained over the better of HEFT and CPOP, by network and in the mean."""
    head = [
        "platform", "network", "latency less by", "subgraphs", "throughput more by",
        "under Layer-switched", "busiest",
    ]  # fmt: skip
    cells: list[list[object]] = []
    for platform, paper in published.OVER_HEFT_CPOP.items():
        own = [each for each in found if each.platform == platform]
        cells += [[platform, each.model, *_overtaken(each)] for each in own]
        together = Overtaken(
            platform,
            "mean",
            mean(each.latency for each in own),
            mean(each.subgraphs for each in own),
            mean(each.throughput for each in own),
            mean(each.sequence for each in own),
            mean(each.busiest for each in own),
        )
        cells.append([platform, "**mean**", *_overtaken(together)])
        cells.append([platform, "the paper's mean", percent(paper), *[NOT_AT_HAND] * 4])
    return markdown_table(head, cells)


def _overtaken(row: Overtaken) -> list[str]:
    shares = (row.latency, row.subgraphs, row.throughput, row.sequence)
    return [*(percent(share) for share in shares), f"{100 * row.busiest:.0f} %"]


def granularity_table(found: Mapping[tuple[str, str], granularity.Row]) -> str:
    """Return the rows of the benchmark of granularity, with the network before the processors."""
    return granularity.table(
        replace(row, processors=f"{model} on {processors}")
        for (model, processors), row in found.items()
    )


def sets_table(found: Mapping[str, Mapping[str, float]]) -> str:
    """Return mean gains of sets of processors beside the paper's."""
    cells = [
        [processors, *(percent(gain[figure]) for figure in FIGURES)]
        for processors, gain in found.items()
    ]
    for processors, paper in published.GAINS.items():
        shares = (paper.latency, paper.throughput, paper.efficiency)
        cells.append([f"{processors}, the paper", *map(percent, shares), "", "", ""])
    head = ["latency", "throughput", "frames/J", "throughput", "frames/J", "frames/J, most"]
    return "\n".join(
        [
            _line(["processors", "one stage:", "", "", "highest throughput:", "", "any:"]),
            _line(["---", *["---:"] * len(FIGURES)]),
            _line(["", *(f"*{name}*" for name in head)]),
            *map(_line, cells),
        ]
    )


def solving_table(found: Sequence[Solving]) -> str:
    """Return what fronts took to solve beside the paper's programmes."""
    head = [
        "network",
        "platform",
        "problems",
        "proven",
        "in all, s",
        "longest, s",
        "gap",
        "paper, s",
    ]
    cells = [
        [
            each.model, each.platform, each.problems, each.proven, f"{each.total_s:.1f}",
            f"{each.longest_s:.2f}", f"{100 * each.gap:.2f} %",
            _seconds(published.SOLVE_S.get(each.model)),
        ]
        for each in found
    ]  # fmt: skip
    return markdown_table(head, cells)


def _seconds(time_s: float | None) -> str:
    return NOT_AT_HAND if time_s is None else f"{time_s:.0f}"


def platforms_table(names: Sequence[str], coverage: Mapping[str, Mapping[str, float]]) -> str:
    """Return processors of platforms, and where times come from."""
    cells = []
    for name in names:
        shares = ", ".join(f"{100 * x:.0f} % {kind}" for kind, x in coverage[name].items())
        for processor in parapipe.load_platform(name).processors:
            hertz = f"{processor.clock.default_frequency_hz / 1e9:.3g} GHz"
            cells.append([name, processor.name, processor.description, hertz, shares])
    return markdown_table(["platform", "processor", "what", "clock", "operator times"], cells)
