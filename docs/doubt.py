"""Writes the tables of doubt.md: whole runs on the A311D against intervals, and two fronts.

python docs/doubt.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import parapipe
from benchmarks.whole_runs import PLATFORM, priced, whole_runs
from parapipe.formats.comparison import METRICS, compare
from parapipe.front.doubt_texts import sources
from parapipe.pipeline.contributions import Doubt
from parapipe.pipeline.options import DRAWS
from parapipe.pipeline.uncertain import Draws, uncertain
from parapipe.platform.load import load_platform

PAGE = Path(__file__).with_name("doubt.md")
MODELS = ("googlenet", "inception-v3")
FIGURE_OF = {"latency": "latency_s", "longest stage": "period_s", "energy": "energy_j"}
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def runs() -> dict[str, tuple[list[bool], list[float]]]:
    """Return for each figure which whole runs lie in their intervals, and half their widths.

    Widths are shares of the figure.
    """
    platform = load_platform(PLATFORM)
    measured = [run.measured for run in whole_runs()]
    orders = dict.fromkeys((run.model, run.order) for run in measured)
    documents = {each: priced(platform, *each) for each in orders}
    found: dict[str, tuple[list[bool], list[float]]] = {metric: ([], []) for metric in METRICS}
    for pair in compare(list(documents.values()), measured).pairs:
        document = documents[pair.model, pair.order]
        figure = FIGURE_OF[pair.metric]
        low, high = (end / getattr(document, figure) for end in getattr(document.intervals, figure))
        inside, widths = found[pair.metric]
        inside.append(low <= pair.measured / pair.predicted <= high)
        widths.append((high - low) / 2)
    return found


def runs_table() -> str:
    """Return the table of whole runs."""
    rows = ["| figure | runs | in their intervals | median half width |", "|---|---:|---:|---:|"]
    for metric, (inside, widths) in runs().items():
        share = f"{sum(inside)} ({sum(inside) / len(inside):.0%})"
        rows.append(f"| {metric} | {len(inside)} | {share} | ±{100 * median(widths):.1f} % |")
    return "\n".join(rows)


def front_table(model: str) -> str:
    """Return the table of a model's configurations with a name."""
    front = parapipe.map(f"zoo:{model}", PLATFORM, interleave="none")
    head = ("named", "stages", "latency, ms", "frames/s", "mJ", "best of its kind", "on the front")
    rows = [f"| {' | '.join(head)} | most of the doubt in latency |"]
    rows += ["|---|---|---:|---:|---:|---|---:|---|"]
    return "\n".join([*rows, *_rows([each for each in front if each.names])])


def _rows(named: Sequence[parapipe.Configuration]) -> Iterator[str]:
    for each in named:
        assert each.intervals
        assert each.chances
        latency = _range(each.latency_s, each.intervals.latency_s, 1e3)
        fps = _range(each.throughput_fps, [1 / s for s in each.intervals.period_s[::-1]], 1)
        energy = _range(each.energy_j, each.intervals.energy_j, 1e3)
        best = ", ".join(f"{name} {chance:.0%}" for name, chance in each.chances.names.items())
        names = [operator.id for operator in each.graph.operators]
        mapping = each.configuration.mapping
        known = uncertain(mapping, each.costs, names)
        doubt = Doubt(mapping, known, Draws(DRAWS, 0), each.latency_s, each.period_s)
        most, share = next(sources(doubt, 0))
        drawing = each.drawing.replace("│", "then")
        yield (
            f"| {', '.join(each.names)} | {drawing} | {latency} | {fps} | {energy} | {best} "
            f"| {each.chances.pareto:.0%} | {most} ({share:.0%}) |"
        )


def _range(value: float, ends: Sequence[float], scale: float) -> str:
    low, high = (end * scale for end in ends)
    return f"{value * scale:.4g} ({low:.4g} to {high:.4g})"


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found.get(match[2], match[0][len(match[1]) :]), text)


if __name__ == "__main__":
    tables = {"runs": runs_table()}
    tables |= {model.replace("-", "_"): front_table(model) for model in MODELS}
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
